# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wait, on a made-up host whose clock only waiting moves: when it ends, with which verdict, and what it did meanwhile."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.host.http import TIMEOUT, HttpError, Response
from ansible_collections.plumbline.sglang.plugins.module_utils.host.journal import JournalError
from ansible_collections.plumbline.sglang.plugins.module_utils.host.systemd import SystemdError
from ansible_collections.plumbline.sglang.plugins.module_utils.readiness.observer import Observer
from ansible_collections.plumbline.sglang.plugins.module_utils.readiness.waiter import (
    Outcome,
    Reporter,
    Settings,
    Watch,
    result,
    status_line,
    wait_all,
)
from ansible_collections.plumbline.sglang.tests.unit.witness import (
    ADDRESS,
    CHILD,
    OTHER_RUN,
    PID,
    RUN,
    STARTED,
    STRANGER,
    Host,
    capture,
    entry,
    records,
    route,
)

HEALTH = f"http://{ADDRESS}:30000/health"
GENERATE = f"http://{ADDRESS}:30000/generate"
READY_AT = 40.0


def starting(role: str = "prefill") -> Host:
    """A good start: half of the log after 10 s, ready after 40 s."""
    host = Host(role)
    head, tail = capture(f"{role}_ready.log").split("SIGTERM")[0].rsplit("Load weight begin", 1)
    host.at(10, lambda there: there.says(head))
    host.at(READY_AT, lambda there: there.says("Load weight begin" + tail))
    host.at(READY_AT, lambda there: there.serves(role))
    return host


#: So long a pause between looks that only news can end a wait sooner.
DROWSY = Settings(pause=120)


def watch(
    host: Host, role: str = "prefill", invocation: str = "", deployment: bool = True, board: Any = None, settings: Settings | None = None, **changes: Any
) -> Watch:
    return Watch(Observer(entry(role, **changes), host, invocation, deployment), host, settings, board)


def waited(host: Host, budget: float = 600, **options: Any) -> Outcome:
    return watch(host, **options).run(budget)


def test_a_good_start_is_ready_after_two_looks_in_a_row() -> None:
    host = starting()
    outcome = waited(host)
    assert outcome.verdict.verdict == "READY"
    assert host.asked.count(f"http://{ADDRESS}:30000/ready") == 2
    assert READY_AT <= host.now - STARTED < READY_AT + 1
    assert outcome.seconds == READY_AT
    assert (host.asked.count(GENERATE), host.asked.count(HEALTH)) == (1, 0)
    assert [hit.row.name for hit in outcome.look.stages][-1] == "warmup-begin"


def test_a_single_good_look_between_bad_ones_is_not_enough() -> None:
    host = starting()
    answers = iter([200, 503, 200, 200])
    host.at(READY_AT, lambda there: there.answers.update({f"http://{ADDRESS}:30000/ready": lambda _host: Response(next(answers))}))
    assert waited(host).verdict.verdict == "READY"
    assert next(answers, None) is None


def test_a_fatal_line_ends_the_wait_at_once_with_the_cause() -> None:
    host = Host()
    host.at(20, lambda there: there.says("Scheduler hit an exception: Traceback (most recent call last):"))
    host.at(21, lambda there: there.says("  File a\nImportError: libibverbs.so.1: cannot open shared object file"))
    outcome = waited(host, settings=DROWSY)
    assert outcome.verdict.verdict == "FAILED"
    assert host.now - STARTED < 25
    assert "libibverbs.so.1" in outcome.verdict.reason


def test_the_end_of_the_process_ends_the_wait_without_waiting_for_the_pause() -> None:
    host = Host()

    def end(there: Host) -> None:
        there.says(capture("bad_flag.log"))
        there.dead.add(PID)
        there.unit_is(active_state="failed", sub_state="failed", result="exit-code", main_pid=0, exec_main_code=1, exec_main_status=2)

    host.at(60, end)
    outcome = waited(host, settings=DROWSY)
    assert outcome.verdict.verdict == "FAILED"
    assert 60 <= host.now - STARTED < 62
    assert "exited with status 2" in outcome.verdict.reason and "--no-such-flag" in outcome.verdict.reason
    assert outcome.look.last_lines[-1].startswith("sglang serve: error")


def test_the_end_of_a_process_that_says_nothing_ends_the_wait_too() -> None:
    host = Host()

    def kill(there: Host) -> None:
        there.dead.add(PID)
        there.unit_is(active_state="failed", sub_state="failed", result="signal", main_pid=0, exec_main_code=2, exec_main_status=9)

    host.at(60, kill)
    outcome = waited(host, settings=DROWSY)
    assert "killed by SIGKILL" in outcome.verdict.reason
    assert 60 <= host.now - STARTED < 63


def test_a_run_of_another_rendered_set_fails_and_says_how_it_differs() -> None:
    host = Host()
    host.serves("prefill")
    host.environments[PID]["PLUMBLINE_RENDER"] = "e" * 64
    outcome = waited(host, expect={"served_name": "another-name"})
    assert outcome.verdict.verdict == "FAILED"
    assert "the rendered set eeee" in outcome.verdict.reason
    assert "/srv/models/tiny-llama" in outcome.verdict.reason and "another-name" in outcome.verdict.reason


def test_systemd_is_asked_when_there_is_news_and_not_again_and_again() -> None:
    host = starting()
    assert waited(host).verdict.verdict == "READY"
    assert host.now - STARTED >= READY_AT
    # Once at the first look, before there is anything to listen to, and once before it is called ready.
    assert host.shows == 2


def test_what_systemd_says_of_the_unit_is_news() -> None:
    host = Host()

    def stop(there: Host) -> None:
        there.unit_is(active_state="failed", sub_state="failed", result="timeout", exec_main_code=1, exec_main_status=1)
        there.systemd_says("sglang-prefill-g-a.service: Failed with result 'timeout'.")

    host.at(60, stop)
    outcome = waited(host, settings=DROWSY)
    assert outcome.verdict.verdict == "FAILED"
    assert 60 <= host.now - STARTED < 62


def test_the_end_of_a_scheduler_ends_the_wait_while_the_main_process_still_lives() -> None:
    host = Host()
    host.at(60, lambda there: there.dead.add(CHILD))
    outcome = waited(host, settings=DROWSY)
    assert outcome.verdict.verdict == "FAILED"
    assert f"the scheduler PID {CHILD} of this run has ended" in outcome.verdict.reason
    assert 60 <= host.now - STARTED < 62


def test_what_a_scheduler_forks_is_no_scheduler_and_may_end() -> None:
    """A compiler that a scheduler has started bears its name until it is another program."""
    host = starting()
    host.processes[9000] = "/u"
    host.names[9000] = host.names[CHILD]
    host.parents[9000] = CHILD
    host.at(20, lambda there: there.dead.add(9000))
    outcome = waited(host)
    assert outcome.verdict.verdict == "READY"
    assert outcome.look.signals["process"].details["ranks"] == [CHILD]


def test_what_a_schedulers_child_has_left_behind_is_no_scheduler_either() -> None:
    host = starting()
    host.processes[9000] = "/u"
    host.names[9000] = host.names[CHILD]
    host.parents[9000] = 1
    host.at(20, lambda there: there.dead.add(9000))
    assert waited(host).verdict.verdict == "READY"


def test_another_checks_generation_costs_a_moment_and_not_a_pause() -> None:
    host = starting()
    host.probe_is_free = False
    host.at(READY_AT + 1, lambda there: setattr(there, "probe_is_free", True))
    assert waited(host, settings=DROWSY).verdict.verdict == "READY"
    assert host.now - STARTED < READY_AT + 2


def test_one_look_that_finds_readiness_asks_systemd_again_before_it_says_so() -> None:
    host = starting()
    while host.now < STARTED + READY_AT:
        host.wait([], 100)
    shows = host.shows

    def restart(there: Host) -> Response:
        there.unit_is(invocation_id=OTHER_RUN)
        return Response(200, route())

    host.answers[f"http://{ADDRESS}:8998/route"] = restart
    outcome = waited(host, budget=0, invocation=RUN)
    assert outcome.verdict.verdict == "FAILED" and OTHER_RUN in outcome.verdict.reason
    assert host.shows == shows + 2


def test_a_verification_waits_for_the_run_that_follows_a_dead_scheduler() -> None:
    host = starting()
    one = watch(host, deployment=False)
    while host.now < STARTED + READY_AT:
        host.wait([], 100)
    assert one.observer.look().verdict.verdict == "READY"
    host.dead.add(CHILD)
    look = one.observer.look()
    assert look.verdict.verdict == "NOT_READY" and f"PID {CHILD}" in look.verdict.reason


def test_a_stopped_scheduler_is_not_ready_and_named() -> None:
    host = starting()
    host.stopped.add(CHILD)
    outcome = waited(host, budget=100)
    assert outcome.verdict.verdict == "NOT_READY"
    assert f"PID {CHILD} (sglang::schedul) is stopped" in outcome.verdict.reason


def test_between_the_ready_line_and_ready_itself_it_is_asked_often() -> None:
    host = starting()
    host.at(READY_AT, lambda there: there.answers.update({f"http://{ADDRESS}:30000/ready": Response(503)}))
    host.at(READY_AT + 1, lambda there: there.answers.update({f"http://{ADDRESS}:30000/ready": Response(200)}))
    assert waited(host, settings=DROWSY).verdict.verdict == "READY"
    assert host.now - STARTED < READY_AT + 2


def test_a_child_that_outlives_a_pending_restart_is_asked_nothing() -> None:
    host = Host()
    host.serves("prefill")
    host.sockets[30000] = CHILD
    host.unit_is(active_state="activating", sub_state="auto-restart", main_pid=0, exec_main_code=1, exec_main_status=1)
    assert waited(host, budget=10, deployment=False).verdict.verdict == "NOT_READY"
    assert host.asked == []


def test_the_orphan_that_took_the_port_fools_log_and_http_but_not_the_verdict() -> None:
    host = Host()
    host.serves("prefill")
    host.sockets[30000] = STRANGER
    host.says(capture("prefill_ready.log").split("SIGTERM")[0])
    outcome = waited(host)
    assert outcome.look.signals["log"].state == "passed"
    assert outcome.verdict.verdict == "FAILED"
    assert f"PID {STRANGER}" in outcome.verdict.reason
    assert host.asked == []


def test_a_restart_in_a_deployment_fails_although_the_new_run_is_ready() -> None:
    host = starting()

    def again(there: Host) -> None:
        there.unit_is(invocation_id=OTHER_RUN, n_restarts=1)
        there.says(capture("prefill_ready.log").split("SIGTERM")[0], invocation=OTHER_RUN)
        there.serves("prefill")

    host.at(5, again)
    outcome = waited(host)
    assert outcome.verdict.verdict == "FAILED"
    assert OTHER_RUN in outcome.verdict.reason
    assert outcome.look.invocation == RUN


def test_a_run_that_restarted_before_the_first_look_is_explained_by_the_words_of_the_run_that_ended() -> None:
    host = Host()
    host.log = records(capture("port_taken.log"), invocation=OTHER_RUN)
    host.previous = OTHER_RUN
    host.unit_is(n_restarts=1)
    outcome = waited(host)
    assert outcome.verdict.verdict == "FAILED"
    assert "address already in use" in outcome.verdict.reason
    assert outcome.look.invocation == OTHER_RUN


def test_restarts_before_the_run_asked_about_are_of_no_interest() -> None:
    host = starting()
    host.unit_is(n_restarts=1)
    assert waited(host, invocation=RUN).verdict.verdict == "READY"


def test_a_verification_takes_up_the_new_run_after_a_pending_restart() -> None:
    host = Host()
    host.unit_is(active_state="activating", sub_state="auto-restart", main_pid=0, exec_main_code=1, exec_main_status=1)
    host.says("Scheduler hit an exception in words of an older kind")

    def again(there: Host) -> None:
        there.unit_is(active_state="active", sub_state="running", invocation_id=OTHER_RUN, main_pid=PID, n_restarts=1)
        there.says(capture("prefill_ready.log").split("SIGTERM")[0], invocation=OTHER_RUN)
        there.serves("prefill")

    host.at(10, again)
    host.log = []
    outcome = waited(host, deployment=False)
    assert outcome.verdict.verdict == "READY"
    assert outcome.look.invocation == OTHER_RUN


@pytest.mark.parametrize(("deployment", "verdict"), [(False, "NOT_READY"), (True, "FAILED")])
def test_the_last_words_of_a_run_that_will_be_followed_by_another_are_a_failure_in_a_deployment_only(deployment: bool, verdict: str) -> None:
    host = Host()
    host.unit_is(active_state="activating", sub_state="auto-restart", main_pid=0, exec_main_code=2, exec_main_status=9)
    host.says("Subprocess scheduler_0 (pid=1) crashed with exit code -9.")
    outcome = waited(host, budget=5, deployment=deployment)
    assert outcome.verdict.verdict == verdict
    assert "crashed with exit code -9" in outcome.verdict.reason and "systemd will start it again" in outcome.verdict.reason


def test_the_run_asked_about_is_the_only_one_that_counts() -> None:
    host = Host()
    host.serves("prefill")
    host.says(capture("prefill_ready.log").split("SIGTERM")[0])
    assert waited(host, invocation=RUN).verdict.verdict == "READY"
    outcome = waited(host, invocation=OTHER_RUN, deployment=False)
    assert outcome.verdict.verdict == "FAILED"
    assert outcome.look.signals["log"].details["records"] == 0


def test_the_marker_of_an_earlier_run_makes_nobody_ready() -> None:
    host = Host()
    host.serves("prefill")
    host.says(capture("prefill_ready.log").split("SIGTERM")[0], invocation=OTHER_RUN)
    assert waited(host, budget=30).verdict.verdict == "NOT_READY"


def test_the_budget_ends_the_wait_with_what_is_missing() -> None:
    host = Host()
    host.at(10, lambda there: there.says(capture("prefill_ready.log").split("Load weight end")[0]))
    outcome = waited(host, budget=100)
    assert outcome.verdict.verdict == "NOT_READY"
    assert 100 <= host.now - STARTED < 103
    assert "100 s" in outcome.verdict.reason and "nothing listens" in outcome.verdict.reason
    assert any("Load weight begin" in line for line in outcome.look.last_lines)


def test_a_server_that_never_generates_is_asked_seldom_and_called_a_disagreement() -> None:
    host = starting()
    late = HttpError(TIMEOUT, "no answer within 25 s")
    host.at(READY_AT, lambda there: there.answers.update({HEALTH: late, GENERATE: late}))
    outcome = waited(host, budget=300)
    assert outcome.verdict.verdict == "INCONCLUSIVE"
    assert "log:" in outcome.verdict.reason and "http:" in outcome.verdict.reason
    assert 5 <= host.asked.count(HEALTH) + host.asked.count(GENERATE) <= (300 - READY_AT) / 30 + 1


def test_the_first_generation_may_time_out() -> None:
    host = starting()
    host.at(READY_AT, lambda there: there.answers.update({GENERATE: HttpError(TIMEOUT, "no answer within 25 s")}))
    outcome = waited(host)
    assert outcome.verdict.verdict == "READY"
    assert 30 <= host.now - STARTED - READY_AT < 45


def test_a_decode_waits_for_a_prefill_that_loads_and_not_for_one_that_is_not_there() -> None:
    registry = f"http://{ADDRESS}:8998/route"
    host = starting("decode")
    host.at(READY_AT, lambda there: there.answers.update({registry: Response(503, b"not fully registered yet")}))
    host.at(800, lambda there: there.answers.update({registry: Response(200, route())}))
    assert waited(host, role="decode", budget=1800).verdict.verdict == "READY"

    host = starting("decode")
    host.at(READY_AT, lambda there: there.answers.pop(registry))
    outcome = waited(host, role="decode", budget=1800)
    assert outcome.verdict.verdict == "NOT_READY"
    assert "prefill-g-a@h1 has not answered for 300 s" in outcome.verdict.reason
    assert 300 <= host.now - STARTED - READY_AT < 310


def test_a_decode_does_not_wait_for_a_prefill_that_failed_beside_it() -> None:
    bad = Host()
    bad.unit_is(active_state="failed", sub_state="failed", main_pid=0, exec_main_code=1, exec_main_status=1)
    board: dict[str, Outcome] = {}
    watch(bad, board=board).run(600)
    host = starting("decode")
    host.at(READY_AT, lambda there: there.answers.pop(f"http://{ADDRESS}:8998/route"))
    outcome = watch(host, "decode", board=board).run(1800)
    assert outcome.verdict.verdict == "NOT_READY" and "has failed" in outcome.verdict.reason
    assert host.now - STARTED < READY_AT + 5


def test_a_rank_above_0_is_never_asked_over_http() -> None:
    host = Host()
    host.sockets[30000] = CHILD
    host.at(30, lambda there: there.says(capture("multinode_rank1_ready.log")))
    outcome = waited(host, argv=[["--node-rank", "1"]])
    assert outcome.verdict.verdict == "READY"
    assert host.asked == []


def test_systemd_that_does_not_answer_is_inconclusive_and_nothing_else_is_asked() -> None:
    host = Host()

    def silent(name: str) -> Any:
        raise SystemdError("systemctl is not installed on this host")

    host.unit = silent  # type: ignore[method-assign]
    outcome = waited(host, budget=10)
    assert outcome.verdict.verdict == "INCONCLUSIVE"
    assert "systemctl is not installed" in outcome.verdict.reason
    assert host.asked == []


def test_what_this_user_may_not_see_is_not_waited_for_until_the_budget_is_over() -> None:
    host = starting()
    host.visible = False
    outcome = waited(host, budget=1800)
    assert outcome.verdict.verdict == "INCONCLUSIVE"
    assert "not visible to this user" in outcome.verdict.reason and "run this as root" in outcome.verdict.next
    assert 30 <= host.now - STARTED - READY_AT < 35


def test_a_journal_that_may_not_be_read_is_named_and_its_silence_is_no_evidence() -> None:
    host = starting()

    def closed(invocation: str, cursor: str = "") -> Any:
        raise JournalError("this user may not see the messages")

    host.journal = closed  # type: ignore[method-assign]
    outcome = waited(host, budget=1800)
    assert outcome.verdict.verdict == "INCONCLUSIVE"
    assert "this user may not see the messages" in outcome.verdict.reason
    assert host.now - STARTED < 40


def test_a_check_that_breaks_takes_nobody_elses_result_away() -> None:
    broken, fine = Host(), starting()
    broken.listeners = None  # type: ignore[assignment]
    watches = [watch(broken), watch(fine, instance="other")]
    outcomes = wait_all(watches, {"prefill-g-a": 600, "other": 600})
    assert outcomes["other"].verdict.verdict == "READY"
    assert outcomes["prefill-g-a"].verdict.verdict == "INCONCLUSIVE"
    assert "TypeError" in outcomes["prefill-g-a"].verdict.reason


def test_one_look_neither_waits_nor_follows() -> None:
    host = starting()
    outcome = waited(host, budget=0)
    assert outcome.verdict.verdict == "NOT_READY"
    assert host.now == STARTED


def test_a_result_has_the_same_keys_on_every_path_and_is_plain_data() -> None:
    ready = result(entry(), waited(starting()))
    failed = result(entry(), waited(Host(), invocation=OTHER_RUN))
    assert set(ready) == set(failed)
    json.dumps([ready, failed])
    assert failed["seconds"] is None and failed["next"]


def test_progress_names_each_stage_once_and_never_falls_silent_for_long() -> None:
    host = starting()
    lines: list[tuple[float, str]] = []
    reporter = Reporter(lambda text: lines.append((host.now, text)), host)
    one = watch(host)
    for _second in range(60):
        one.look = one.observer.look()
        reporter.tick([one], {})
        host.wait([], 1)
    texts = [text for _at, text in lines]
    assert len([text for text in texts if "loading weights," in text and "after the start" in text]) == 1
    assert max(after[0] - before[0] for before, after in zip(lines, lines[1:])) <= 8
    assert any(text.startswith("prefill-g-a: starting, ") and "http: not asked" not in text for text in texts)
    outcome = Outcome(one.look, one.look.verdict, 60)
    reporter.tick([one], {"prefill-g-a": outcome})
    reporter.tick([one], {"prefill-g-a": outcome})
    assert [text for text in (line for _at, line in lines) if "READY:" in text] == [lines[-1][1]]


def test_the_line_that_is_read_at_three_in_the_morning() -> None:
    host = starting()
    host.says("Load weight begin. avail mem=20.62 GB\nMulti-thread loading shards:  42% Completed | 3/7")
    host.now += 14
    one = watch(host)
    look = one.observer.look()
    assert status_line(one.name, look, host.now, one.began) == (
        "prefill-g-a: loading weights 42 %, 14 s, process ok, log: load-begin, http: connection refused"
    )
