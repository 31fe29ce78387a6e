# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The http signal: what is asked of a server, when, how often, and where it says no."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.host.http import TIMEOUT, HttpError, Response
from ansible_collections.plumbline.sglang.plugins.module_utils.signals import http
from ansible_collections.plumbline.sglang.tests.unit.witness import ADDRESS, STRANGER, TOKEN, Host, capture, context, ready

PREFILL = f"http://{ADDRESS}:30000"
HEALTH = f"{PREFILL}/health"
GENERATE = f"{PREFILL}/generate"
PROOF: dict[str, Any] = {"ranks": [], "proved_at": "2026-11-30T21:41:05Z"}


def generations(host: Host) -> list[str]:
    """The generating requests, in their order."""
    return [url[len(PREFILL) :] for url in host.asked if url.startswith((HEALTH, GENERATE))]


def test_a_server_that_has_just_started_gives_a_token_of_our_own_and_only_once() -> None:
    host = ready()
    looked = context(host)
    assert [http.observe(looked).state for _look in range(2)] == ["passed", "passed"]
    assert generations(host) == ["/generate"]
    assert host.asked.count(f"{PREFILL}/ready") == 2
    sent = host.sent[host.asked.index(GENERATE)]
    assert sent["total"] > 20
    assert sent["payload"]["bootstrap_host"] == "2.2.2.2" and sent["payload"]["sampling_params"]["max_new_tokens"] == 1


def test_a_generation_speaks_for_the_scheduler_for_a_minute_and_then_another_is_asked_for() -> None:
    host = ready()
    looked = context(host)
    assert http.observe(looked).state == "passed"
    host.now += 59
    assert http.observe(looked).state == "passed"
    assert generations(host) == ["/generate"]
    host.now += 2
    host.answers[HEALTH] = HttpError(TIMEOUT, "no answer within 25 s")
    assert http.observe(looked).state == "pending"
    assert generations(host) == ["/generate", "/health"]


def test_no_room_is_used_twice() -> None:
    rooms = set()
    for _time in range(50):
        host = ready()
        http.observe(context(host))
        rooms.add(host.sent[host.asked.index(GENERATE)]["payload"]["bootstrap_room"])
    assert len(rooms) == 50


def test_a_regular_server_has_no_peer_to_stand_in_for() -> None:
    host = ready()
    http.observe(_regular(host))
    assert "bootstrap_room" not in host.sent[host.asked.index(GENERATE)]["payload"]


def _regular(host: Host) -> Any:
    made = context(host)
    made.entry = {**made.entry, "role": "regular"}
    return made


@pytest.mark.parametrize(
    "answer", [Response(200, b""), Response(200, b"[]"), Response(200, json.dumps({"meta_info": {"completion_tokens": 0}}).encode()), Response(400, b"no")]
)
def test_an_answer_without_a_token_is_no_generation_and_health_is_asked_next(answer: Response) -> None:
    host = ready()
    host.answers[GENERATE] = answer
    looked = context(host)
    assert http.observe(looked).state == "pending"
    assert http.observe(looked).state == "passed"
    assert generations(host) == ["/generate", "/health"]


def test_a_server_that_was_proved_before_may_be_busy_and_is_asked_for_health() -> None:
    host = ready()
    assert http.observe(context(host, proof=PROOF)).state == "passed"
    assert generations(host) == ["/health"]


def test_no_generation_while_the_server_is_not_ready() -> None:
    host = ready()
    host.answers[f"{PREFILL}/ready"] = Response(503)
    called: list[bool] = []
    assert http.observe(context(host), lambda: called.append(True)).state == "pending"
    assert generations(host) == [] and not called


def test_a_release_without_ready_is_judged_once_the_ready_line_has_come() -> None:
    host = ready()
    host.answers[f"{PREFILL}/ready"] = Response(404)
    assert http.observe(context(host)).state == "pending"
    assert generations(host) == []
    assert http.observe(context(host, text=capture("prefill_ready.log"))).state == "passed"


def test_a_generation_that_timed_out_is_not_repeated_within_30_seconds() -> None:
    host = ready()
    host.answers[GENERATE] = host.answers[HEALTH] = HttpError(TIMEOUT, "no answer within 25 s")
    looked = context(host)
    states = []
    for _second in range(40):
        states.append(http.observe(looked).state)
        host.now += 1
    assert set(states) == {"pending"}
    assert generations(host) == ["/generate", "/health"]


def test_no_generation_while_another_check_has_one_in_flight() -> None:
    host = ready()
    host.probe_is_free = False
    assert http.observe(context(host)).state == "pending"
    assert generations(host) == []


@pytest.mark.parametrize("proof", [None, PROOF])
def test_what_else_is_worth_asking_is_asked_once_in_every_look(proof: Any) -> None:
    host = ready()
    looked = context(host, proof=proof)
    called: list[bool] = []
    for looks in range(1, 4):
        http.observe(looked, lambda: called.append(True))
        assert len(called) == looks


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("path", ["/ready", "/generate"])
def test_a_refused_key_means_alive_and_not_down(status: int, path: str) -> None:
    host = ready()
    host.answers[PREFILL + path] = Response(status)
    signal = http.observe(context(host))
    assert (signal.state, "alive" in signal.observed) == ("unknown", True)
    assert "key" in signal.next


def test_a_server_that_is_told_not_to_generate_for_health_proves_nothing_with_it() -> None:
    host = ready()
    signal = http.observe(context(host, proof=PROOF, environment={"SGLANG_DIAG_BYPASS_HEALTH_GENERATE": "1"}))
    assert signal.state == "unknown"
    assert generations(host) == []


def test_the_other_path_generates_where_health_is_passive() -> None:
    host = ready()
    host.answers[f"{PREFILL}/health_generate"] = Response(200)
    assert http.observe(context(host, proof=PROOF, environment={"SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION": "false"})).state == "passed"
    assert generations(host) == ["/health_generate"]


def test_a_stranger_on_the_port_is_not_even_asked() -> None:
    host = ready()
    host.sockets[30000] = STRANGER
    assert http.observe(context(host)).state == "failed"
    assert host.asked == []


def test_a_socket_that_changes_hands_during_the_generation_fails() -> None:
    host = ready()

    def usurp(there: Any) -> Response:
        there.sockets[30000] = STRANGER
        return Response(200, TOKEN, seconds=1.0)

    host.answers[GENERATE] = usurp
    assert http.observe(context(host)).state == "failed"
