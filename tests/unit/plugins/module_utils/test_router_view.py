# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A router's workers against the plan: what both routers really answered, and each fault named."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.host.http import TIMEOUT, HttpError, Response
from ansible_collections.plumbline.sglang.plugins.module_utils.readiness import router_view as view
from ansible_collections.plumbline.sglang.plugins.module_utils.readiness.addresses import bad_address
from ansible_collections.plumbline.sglang.plugins.module_utils.readiness.verdict import NOT_READY, decide
from ansible_collections.plumbline.sglang.plugins.module_utils.signals import router
from ansible_collections.plumbline.sglang.plugins.module_utils.signals.base import Context, Signal
from ansible_collections.plumbline.sglang.plugins.module_utils.signals.log_view import LogView
from ansible_collections.plumbline.sglang.tests.unit.witness import ADDRESS, PID, RUN, STRANGER, Host, body, entry, records

ROUTER = f"http://{ADDRESS}:30001"
PREFILL, DECODE = f"http://{ADDRESS}:30000", f"http://{ADDRESS}:30002"
NAME = "/srv/models/tiny-llama"
BOTH = pytest.mark.parametrize("name", ["smg", "sglang_router"])


def captured(name: str) -> dict[str, Any]:
    """What the real router answered to /workers."""
    answer: dict[str, Any] = body(f"{name}_endpoints.txt", "GET /workers")
    return answer


def routed(name: str = "smg", **changes: Any) -> Host:
    """A router with the captured workers, both of which answer; ``changes`` are made to the prefill's record."""
    host = Host("router")
    host.sockets[30001] = PID
    workers = captured(name)
    for worker in workers["workers"]:
        if worker["worker_type"] == "prefill":
            told = worker["labels" if name == "smg" else "metadata"]
            told.update(changes.pop("told", {}))
            worker.update(changes)
    host.answers[f"{ROUTER}/workers"] = Response(200, json.dumps(workers).encode())
    host.answers[f"{ROUTER}/readiness"] = Response(200, b'{"status":"ready"}')
    for url in (PREFILL, DECODE):
        host.answers[f"{url}/ready"] = Response(200)
    return host


def judged(host: Host, text: str = "", **changes: Any) -> Signal:
    log = LogView("router")
    log.feed(records(text))
    return router.observe(Context(entry("router", **changes), host, host.state, log, RUN))


def kinds(signal: Signal) -> list[str]:
    return [finding["kind"] for finding in signal.details["findings"]]


@BOTH
def test_router_passes_where_its_workers_are_the_plan(name: str) -> None:
    signal = judged(routed(name))
    assert (signal.state, signal.details["findings"]) == ("passed", [])
    assert signal.details["own_words"] == {PREFILL: "/ready 200", DECODE: "/ready 200"}


@BOTH
@pytest.mark.parametrize(
    ("changes", "state", "kind", "says"),
    [
        ({"worker_type": "decode"}, "failed", "role", "is registered as decode"),
        ({"told": {"disaggregation_mode": "decode"}}, "failed", "mode", "runs as decode"),
        ({"told": {"disaggregation_mode": None}}, "unknown", "not_told", "does not tell its own mode"),
        ({"bootstrap_port": None}, "failed", "bootstrap_port", "has no bootstrap port, planned 8998"),
        ({"bootstrap_port": 9000}, "failed", "bootstrap_port", "has bootstrap port 9000, planned 8998"),
        ({"model_id": "other"}, "failed", "model", f"has model 'other' in the router, planned '{NAME}'"),
        ({"model_id": "unknown"}, "failed", "model", "has it the workers' key?"),
        ({"is_healthy": False}, "pending", "unhealthy", "is not healthy in the router"),
    ],
)
def test_router_says_no_where_readiness_alone_says_yes(name: str, changes: dict[str, Any], state: str, kind: str, says: str) -> None:
    signal = judged(routed(name, **changes))
    assert (signal.state, kinds(signal)) == (state, [kind])
    assert f"the prefill {PREFILL}" in signal.observed and says in signal.observed and signal.next


@BOTH
def test_another_address_is_one_worker_missing_and_one_too_many(name: str) -> None:
    signal = judged(routed(name, url="http://127.0.0.1:39999"))
    assert (signal.state, kinds(signal)) == ("failed", ["missing", "surplus"])
    assert f"the prefill {PREFILL} is missing" in signal.observed and "http://127.0.0.1:39999 (prefill) is not in the plan" in signal.observed


def test_a_missing_worker_may_come_unless_the_router_gave_it_up() -> None:
    host = routed()
    host.answers[f"{ROUTER}/workers"] = Response(200, b'{"workers":[],"total":0}')
    assert (judged(host).state, kinds(judged(host))) == ("pending", ["missing", "missing"])
    lost = f"2026-11-30 ERROR smg: Failed job: type=AddWorker, worker=http://{ADDRESS}:30000, error=timeout"
    assert (judged(host, lost).state, kinds(judged(host, lost))) == ("failed", ["given_up", "missing"])
    assert judged(host, lost.replace("30000", "300001")).state == "pending"


@BOTH
def test_swapped_roles_are_named_as_such(name: str) -> None:
    """The router was started with the decode's address as a prefill's and the reverse: /readiness is 200 all the same."""
    host, workers = routed(name), captured(name)
    for worker in workers["workers"]:
        swapped = "decode" if worker["worker_type"] == "prefill" else "prefill"
        worker.update(worker_type=swapped, bootstrap_port=8998 if swapped == "prefill" else None)
    host.answers[f"{ROUTER}/workers"] = Response(200, json.dumps(workers).encode())
    signal = judged(host)
    assert (signal.state, kinds(signal)) == ("failed", ["roles_swapped", "roles_swapped"])
    assert f"roles swapped: the prefill {PREFILL} is registered as decode" in signal.observed
    assert f"roles swapped: the decode {DECODE} is registered as prefill" in signal.observed


def test_servers_that_run_in_each_others_mode_are_swapped_too() -> None:
    workers = captured("smg")
    for worker in workers["workers"]:
        worker["labels"]["disaggregation_mode"] = "decode" if worker["worker_type"] == "prefill" else "prefill"
    planned = view.planned_workers(entry("router"))
    assert {item.kind for item in view.compare(planned, view.worker_facts(workers), NAME)} == {"roles_swapped"}


def test_a_prefill_planned_without_a_port_still_needs_one() -> None:
    planned = {PREFILL: {"role": "prefill", "bootstrap_port": None}, DECODE: {"role": "decode", "bootstrap_port": None}}
    have = view.worker_facts(captured("smg"))
    assert view.compare(planned, have, NAME) == []
    for worker in have:
        worker["bootstrap_port"] = None
    assert [(item.kind, item.worker) for item in view.compare(planned, have, NAME)] == [("bootstrap_port", PREFILL)]


def test_the_ranks_of_a_data_parallel_server_are_one_worker() -> None:
    workers = captured("smg")
    for worker in list(workers["workers"]):
        worker["url"] += "@0"
        workers["workers"].append({**worker, "url": worker["url"].replace("@0", "@1")})
    planned = view.planned_workers(entry("router"))
    assert view.compare(planned, view.worker_facts(workers), NAME) == []
    assert [item.kind for item in view.compare(planned, view.worker_facts(workers), "other")] == ["model", "model"]


def test_readiness_503_and_an_open_breaker_are_waited_for() -> None:
    host = routed()
    host.answers[f"{ROUTER}/readiness"] = Response(503, b'{"status":"not ready","reason":"insufficient healthy workers"}')
    assert "insufficient healthy workers" in judged(host).observed and kinds(judged(host)) == ["readiness"]
    host = routed()
    ports = [{"port": 29000, "address": ADDRESS, "purpose": "metrics"}]
    metrics = 'smg_worker_cb_state{worker="http://127.0.0.1:30000"} %d\n'
    for value, state, word in ((0, "passed", ""), (1, "pending", "is open"), (2, "pending", "is half open")):
        host.answers[f"http://{ADDRESS}:29000/metrics"] = Response(200, (metrics % value).encode())
        assert judged(host, ports=ports).state == state
        assert word in judged(host, ports=ports).observed
    for bad in (HttpError(TIMEOUT, "no answer within 5 s"), Response(500)):
        host.answers[f"http://{ADDRESS}:29000/metrics"] = bad
        assert (judged(host, ports=ports).state, kinds(judged(host, ports=ports))) == ("unknown", ["breaker"])


@pytest.mark.parametrize(("address", "asked"), [("0.0.0.0", "127.0.0.1"), ("::", "[::1]"), ("fd00::1", "[fd00::1]"), ("192.0.2.1", "192.0.2.1")])
def test_the_metrics_are_asked_where_they_listen(address: str, asked: str) -> None:
    assert view.metrics_url({"ports": [{"port": 29000, "address": address, "purpose": "metrics"}]}) == f"http://{asked}:29000/metrics"


def test_a_router_on_somebody_elses_socket_fails() -> None:
    host = routed()
    host.sockets[30001] = STRANGER
    assert judged(host).state == "failed"
    assert host.asked == []


@pytest.mark.parametrize("status", [401, 403])
def test_a_router_that_wants_another_key_is_alive(status: int) -> None:
    host = routed()
    host.answers[f"{ROUTER}/workers"] = Response(status)
    assert (judged(host).state, kinds(judged(host))) == ("unknown", ["wrong_key"])
    assert "alive" in judged(host).observed


def test_a_key_that_cannot_be_read_is_no_statement_about_the_router(tmp_path: Any) -> None:
    host = routed()
    path = str(tmp_path / "none")

    def workers(_host: Host) -> Response:
        raise router.CredentialError(f"the credential file {path} cannot be read: No such file or directory")

    host.answers[f"{ROUTER}/workers"] = workers
    signal = judged(host, credentials=[{"name": "api-key", "path": path}])
    assert (signal.state, kinds(signal)) == ("unknown", ["key_unreadable"])


@pytest.mark.parametrize("answer", [b"[]", b"{}", b'{"workers": 3}', b"<html>"])
def test_an_answer_without_workers_is_none(answer: bytes) -> None:
    host = routed()
    host.answers[f"{ROUTER}/workers"] = Response(200, answer)
    assert judged(host).state != "passed"
    assert kinds(judged(host)) == ["no_answer"]


@pytest.mark.parametrize("worker", [{}, {"url": 7, "labels": "x", "metadata": []}, {"url": PREFILL, "worker_type": ["prefill"]}])
def test_a_strange_worker_is_a_finding_and_no_crash(worker: dict[str, Any]) -> None:
    host = routed()
    host.answers[f"{ROUTER}/workers"] = Response(200, json.dumps({"workers": [worker, "x"]}).encode())
    assert judged(host).state == "failed"


def test_a_router_without_planned_workers_is_not_judged() -> None:
    signal = judged(routed(), peers={"prefill": [], "decode": []})
    assert (signal.state, kinds(signal)) == ("unknown", ["nothing_planned"])


# --- what each worker says itself -------------------------------------------------------------------------------------


@BOTH
def test_a_prefill_that_was_stopped_behind_a_router_that_still_says_ready_is_named(name: str) -> None:
    """captures/prefill_killed_timeline.txt: with the prefill gone, /readiness goes on to say "healthy_workers": 2."""
    host = routed(name)
    del host.answers[f"{PREFILL}/ready"]
    signal = judged(host)
    assert (signal.state, kinds(signal)) == ("pending", ["silent"])
    assert f"the prefill {PREFILL} does not answer, though the router counts it as healthy (connection refused)" in signal.observed
    assert f"{PREFILL}/ready" in signal.next
    others = {other: Signal(other, "passed", "", "", "", "", 0.0) for other in ("process", "log")}
    verdict = decide({**others, "router": signal}, "router")
    assert verdict.verdict == NOT_READY and PREFILL in verdict.reason


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (HttpError(TIMEOUT, "no answer within 5 s"), "silent", "no answer within 5 s"),
        (Response(503), "not_ready", f"the decode {DECODE} says that it is not ready, though the router counts it as healthy (/ready 503)"),
        (Response(500), "not_ready", "/ready 500"),
    ],
)
def test_a_worker_that_is_not_ready_itself_is_waited_for(answer: Any, kind: str, says: str) -> None:
    host = routed()
    host.answers[f"{DECODE}/ready"] = answer
    assert (judged(host).state, kinds(judged(host))) == ("pending", [kind])
    assert says in judged(host).observed


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_worker_without_ready_is_alive_and_not_judged(status: int) -> None:
    host = routed()
    host.answers[f"{PREFILL}/ready"] = Response(status)
    assert judged(host).state == "passed"


def test_where_the_router_knows_already_nothing_is_said_about_its_count() -> None:
    host = routed(is_healthy=False)
    del host.answers[f"{PREFILL}/ready"]
    assert kinds(judged(host)) == ["unhealthy", "silent"]
    assert "though the router" not in judged(host).observed


def test_no_key_goes_to_a_worker() -> None:
    host = routed()
    judged(host, credentials=[{"name": "api-key", "path": "/etc/sglang/credentials/g/api-key"}])
    keyed = [url for url, options in zip(host.asked, host.sent) if options.get("credential")]
    assert keyed == [f"{ROUTER}/workers"]


def test_many_dead_workers_are_asked_at_once() -> None:
    """Each waits until all have been asked: one after the other, none would ever be answered."""
    urls = [f"http://192.0.2.{number}:30000" for number in range(1, 21)]
    all_asked = threading.Barrier(len(urls))

    class Dead(Host):
        def request(self, url: str, **options: Any) -> Response:
            assert options["total"] == 5.0
            all_asked.wait(timeout=60)
            raise HttpError(TIMEOUT, "no connection within 3 s")

    words = router.own_words(Dead(), urls)
    assert list(words) == urls
    assert {word.text for word in words.values()} == {"no connection within 3 s"}


# --- what somebody typed ----------------------------------------------------------------------------------------------


def test_workers_from_text() -> None:
    planned, bad = view.workers_of([f"{PREFILL}/ 8998"], [DECODE])
    assert (planned, bad) == ({PREFILL: {"role": "prefill", "bootstrap_port": 8998}, DECODE: {"role": "decode", "bootstrap_port": None}}, [])


@pytest.mark.parametrize(
    ("prefills", "decodes", "says"),
    [
        ([PREFILL], [], "expected a bootstrap port behind the address"),
        ([f"{PREFILL} none"], [], "expected a bootstrap port behind the address"),
        ([f"{PREFILL} 70000"], [], "expected a bootstrap port behind the address"),
        ([], [f"{DECODE} 8998"], "a decode has no bootstrap port"),
        ([f"{PREFILL} 8998"], [PREFILL], "is given twice"),
        ([], ["192.0.2.1:30000"], "expected http://address:port"),
        ([], [], "no worker is given"),
    ],
)
def test_text_that_is_no_worker_is_refused(prefills: list[str], decodes: list[str], says: str) -> None:
    bad = view.workers_of(prefills, decodes)[1]
    assert len(bad) == 1 and says in bad[0]


@pytest.mark.parametrize(
    "url",
    ["", None, 7, "x", "https://a:1", "http://a", "http://a:b", "http://a:99999", "http://a:1/v1", "http://a:1?x", "http://[::1", "http://a:1 2"],
)
def test_an_address_that_cannot_be_asked_is_refused(url: Any) -> None:
    assert "expected http://address:port" in bad_address("url", url)


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    text = bad_address("url", "http://me:secret@a:1")
    assert text and "secret" not in text


@pytest.mark.parametrize("url", ["http://a:1", "http://a:1/", "http://[::1]:30000"])
def test_a_plain_address_is_taken(url: str) -> None:
    assert bad_address("url", url) == ""


@pytest.mark.parametrize("peers", [None, {}, {"prefill": "x"}, {"prefill": ["x"]}, {"decode": [{"url": "x"}]}, {"prefill": [{}]}])
def test_an_entry_that_names_no_workers_is_refused(peers: Any) -> None:
    assert view.bad_peers({"instance": "router-g-a", "peers": peers})
    assert not view.bad_peers(entry("router"))
