# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module around the router's view: its parameters, its result, and when it fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.host import http
from ansible_collections.plumbline.sglang.plugins.module_utils.host.http import Response
from ansible_collections.plumbline.sglang.plugins.modules import router_check
from ansible_collections.plumbline.sglang.tests.unit.module_run import answer_of
from ansible_collections.plumbline.sglang.tests.unit.witness import ADDRESS, Host, body, entry

ROUTER = f"http://{ADDRESS}:30001"
PREFILL, DECODE = f"http://{ADDRESS}:30000", f"http://{ADDRESS}:30002"
PLAIN = {"url": ROUTER, "prefill_workers": [f"{PREFILL} 8998"], "decode_workers": [DECODE]}


class Run:
    """Runs the module against a made-up host."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys
        self.host: Any = Host("router")
        self.host.answers = {
            f"{ROUTER}/readiness": Response(200, b'{"status":"ready"}'),
            f"{ROUTER}/workers": Response(200, json.dumps(body("smg_endpoints.txt", "GET /workers")).encode()),
            f"{PREFILL}/ready": Response(200),
            f"{DECODE}/ready": Response(200),
        }

    def __call__(self, **options: Any) -> dict[str, Any]:
        self._monkeypatch.setattr(router_check, "LocalHost", lambda: self.host)
        return answer_of(router_check, options or {"router": entry("router")}, self._capsys)


@pytest.fixture(name="run")
def _run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(monkeypatch, capsys)


def test_a_router_as_planned_passes_and_tells_what_was_not_judged(run: Run) -> None:
    answer = run()
    assert (answer["ok"], answer["state"], answer["findings"], answer["readiness"]) == (True, "passed", [], 200)
    assert (answer["instance"], answer["host"], answer["url"]) == ("router-g-a", "h1", ROUTER)
    assert {worker["url"]: worker["role"] for worker in answer["workers"]} == {PREFILL: "prefill", DECODE: "decode"}
    assert answer["breakers"] is None and "breakers were not judged" in answer["msg"]


def test_plain_parameters_say_the_same(run: Run) -> None:
    metrics = f"http://{ADDRESS}:29000/metrics"
    run.host.answers[metrics] = Response(200, f'smg_worker_cb_state{{worker="{PREFILL}"}} 0\n'.encode())
    answer = run(**PLAIN, served_name="/srv/models/tiny-llama", metrics_url=metrics)
    assert (answer["ok"], answer["instance"], answer["breakers"]) == (True, ROUTER, {PREFILL: 0})
    assert "not judged" not in answer["msg"]


def test_each_difference_fails_and_is_named_with_the_data(run: Run) -> None:
    answer = run(**{**PLAIN, "prefill_workers": [f"{PREFILL} 9000", "http://192.0.2.9:30000 8998"]}, served_name="other")
    assert answer["failed"] and answer["state"] == "failed"
    assert [finding["kind"] for finding in answer["findings"]] == ["bootstrap_port", "model", "missing", "model", "silent"]
    assert "the prefill http://192.0.2.9:30000 is missing so far" in answer["msg"] and "next: " in answer["msg"]
    assert answer["next"] and len(answer["workers"]) == 2


def test_a_stopped_prefill_fails_though_the_router_says_ready(run: Run) -> None:
    del run.host.answers[f"{PREFILL}/ready"]
    answer = run()
    assert answer["failed"] and answer["state"] == "pending" and answer["readiness"] == 200
    assert f"the prefill {PREFILL} does not answer, though the router counts it as healthy" in answer["msg"]
    assert answer["own_words"][PREFILL] == "connection refused"


def test_an_open_breaker_fails(run: Run) -> None:
    metrics = f"http://{ADDRESS}:29000/metrics"
    run.host.answers[metrics] = Response(200, f'smg_worker_cb_state{{worker="{DECODE}"}} 1\n'.encode())
    answer = run(**PLAIN, metrics_url=metrics)
    assert answer["failed"] and "the circuit breaker of the decode" in answer["msg"]


@pytest.mark.parametrize(("options", "failed", "would"), [({"on_mismatch": "return"}, None, False), ({"_ansible_check_mode": True}, None, True)])
def test_it_can_return_instead(run: Run, options: dict[str, Any], failed: Any, would: bool) -> None:
    run.host.answers = {}
    answer = run(router=entry("router"), **options)
    assert (answer.get("failed"), answer["ok"], answer["would_fail"]) == (failed, False, would)
    assert answer["findings"][0]["kind"] == "nothing_there"


def test_check_mode_passes_where_all_is_right(run: Run) -> None:
    answer = run(router=entry("router"), _ansible_check_mode=True)
    assert (answer["ok"], answer["would_fail"]) == (True, False)


def test_nothing_there_says_where_to_look(run: Run) -> None:
    run.host.answers = {}
    answer = run()
    assert answer["failed"] and "connection refused" in answer["msg"] and answer["workers"] is None
    assert answer["next"] == ["systemctl status sglang-router-g-a.service"]


def test_another_key_is_alive_and_no_key_is_shown(run: Run, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("s3cret-key\n")
    run.host.answers[f"{ROUTER}/workers"] = Response(401, b"s3cret-key is wrong")
    answer = run(**PLAIN, credential_path=str(key))
    assert answer["failed"] and "alive, but the key is wrong" in answer["msg"] and str(key) in answer["next"][0]
    run.host.answers[f"{ROUTER}/workers"] = Response(500, b"s3cret-key is wrong")
    assert "s3cret-key" not in json.dumps(run(**PLAIN, credential_path=str(key)))


def test_a_key_that_cannot_be_read_is_named_by_its_file(run: Run, tmp_path: Path) -> None:
    """The real request, on a port where nobody listens: the key is read before anything is sent."""
    answers = run.host.answers

    def request(url: str, **options: Any) -> Response:
        if options.get("credential"):
            return http.request(url.replace(":30001", ":1"), **options)
        answer: Response = answers[url]
        return answer

    run.host.request = request
    answer = run(**PLAIN, credential_path=str(tmp_path / "none"))
    assert answer["failed"] and answer["findings"][0]["kind"] == "key_unreadable"
    assert f"{tmp_path / 'none'} cannot be read" in answer["msg"] and "as root" in answer["msg"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"router": entry("prefill")}, "expected a router's entry of the plan"),
        ({"router": {"role": "router"}}, "url is missing"),
        ({"router": entry("router", peers={})}, "names no prefill and no decode"),
        ({"router": entry("router", peers={"prefill": [{}]})}, "expected http://address:port"),
        ({"url": ROUTER}, "no worker is given"),
        ({**PLAIN, "url": "http://127.0.0.1:x"}, "url is no address"),
        ({**PLAIN, "prefill_workers": [PREFILL]}, "expected a bootstrap port"),
        ({**PLAIN, "served_name": "a:b"}, "without a colon"),
        ({**PLAIN, "metrics_url": "29000"}, "metrics_url is '29000'"),
        ({"router": entry("router"), "url": ROUTER}, "mutually exclusive"),
        ({"router": entry("router"), "served_name": "x"}, "mutually exclusive"),
        ({"served_name": "x"}, "one of the following is required"),
        ({**PLAIN, "on_mismatch": "shrug"}, "must be one of"),
    ],
)
def test_a_wrong_parameter_is_explained_and_nothing_is_asked(run: Run, options: dict[str, Any], says: str) -> None:
    answer = run(**options)
    assert answer["failed"] and says in answer["msg"] and "Traceback" not in json.dumps(answer)
    assert run.host.asked == []


def test_a_password_in_an_address_is_in_no_result(run: Run) -> None:
    answer = run(**{**PLAIN, "url": "http://me:hunter2@127.0.0.1:30001"})
    answer.pop("invocation", None)
    assert answer["failed"] and "hunter2" not in json.dumps(answer)
