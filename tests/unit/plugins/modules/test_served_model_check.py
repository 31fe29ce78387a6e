# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module around the served name: its parameters, its result, and when it fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.host import http
from ansible_collections.plumbline.sglang.plugins.module_utils.host.http import Response
from ansible_collections.plumbline.sglang.plugins.modules import served_model_check
from ansible_collections.plumbline.sglang.tests.unit.module_run import answer_of
from ansible_collections.plumbline.sglang.tests.unit.witness import ADDRESS, Host, body, entry

PREFILL, DECODE, ROUTER = (f"http://{ADDRESS}:{port}" for port in (30000, 30002, 30001))
#: What the captured servers serve.
NAME = "/srv/models/tiny-llama"
PLAN = {"instances": [entry("prefill"), entry("decode"), entry("router")]}
PLAIN = {
    "served_name": NAME,
    "workers": [{"url": PREFILL, "role": "prefill"}, {"url": DECODE, "role": "decode"}],
    "routers": [{"url": ROUTER, "name": "front"}],
}


class Run:
    """Runs the module against a made-up host on which the captured pair and router answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys
        self.host: Any = Host("router")
        for role, url in (("prefill", PREFILL), ("decode", DECODE)):
            for path in ("/v1/models", "/model_info"):
                self.answer(url + path, body(f"{role}_endpoints.txt", f"GET {path}"))
            self.answer(f"{url}/v1/models/{NAME}", {"id": NAME})
        for path in ("/v1/models", "/workers"):
            self.answer(ROUTER + path, body("smg_endpoints.txt", f"GET {path}"))
        self.answer(f"{ROUTER}/v1/completions", {"model": NAME, "choices": [{"text": "x"}]})

    def answer(self, url: str, content: Any) -> None:
        """Let ``url`` answer 200."""
        self.host.answers[url] = Response(200, json.dumps(content).encode())

    def __call__(self, **options: Any) -> dict[str, Any]:
        self._monkeypatch.setattr(served_model_check, "LocalHost", lambda: self.host)
        return answer_of(served_model_check, options or PLAN, self._capsys)

    @property
    def completions(self) -> int:
        """How many completions were sent."""
        return sum(url.endswith("completions") for url in self.host.asked)


@pytest.fixture(name="run")
def _run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(monkeypatch, capsys)


def test_a_plan_is_checked_with_one_completion(run: Run) -> None:
    answer = run()
    assert (answer.get("failed"), answer["ok"], len(answer["endpoints"]), run.completions) == (None, True, 10, 1)
    assert answer["completion"] == {"sent": True, "sent_to": "router-g-a", "why_not": ""}
    first = answer["endpoints"][0]
    assert (first["instance"], first["host"], first["url"], first["surface"], first["state"]) == ("prefill-g-a", "h1", PREFILL, "/v1/models", "ok")
    assert "served under this name by prefill-g-a, decode-g-a, router-g-a" in answer["msg"]


def test_plain_parameters_say_the_same(run: Run) -> None:
    answer = run(**PLAIN)
    assert answer["ok"] and answer["completion"]["sent_to"] == "front"
    assert [row["instance"] for row in answer["endpoints"]][:1] == [f"{ADDRESS}:30000"]


def test_another_name_fails_with_all_the_data_and_what_to_do(run: Run) -> None:
    answer = run(**{**PLAIN, "served_name": "llama"})
    assert answer["failed"] and not answer["ok"] and run.completions == 0
    states = {(row["instance"], row["surface"]): row["state"] for row in answer["endpoints"]}
    assert states[(f"{ADDRESS}:30000", "/v1/models")] == states[("front", "/v1/models")] == "path_as_name"
    assert f"seen {NAME}; expected llama" in answer["msg"] and "next: " in answer["msg"] and "no completion was sent" in answer["msg"]


def test_a_router_that_kept_an_old_name_is_named(run: Run) -> None:
    workers = body("smg_endpoints.txt", "GET /workers")
    workers["workers"][0]["model_id"] = "old"
    run.answer(f"{ROUTER}/workers", workers)
    answer = run()
    assert answer["failed"] and f"router-g-a on h1 ({ROUTER}): /workers for {PREFILL}: kept_old_name: seen old" in answer["msg"]


@pytest.mark.parametrize(("status", "state"), [(401, "wrong_key"), (403, "wrong_key"), (None, "nothing_there"), (503, "no_answer")])
def test_an_endpoint_that_tells_nothing_fails(run: Run, status: Any, state: str) -> None:
    del run.host.answers[f"{DECODE}/v1/models"]
    if status:
        run.host.answers[f"{DECODE}/v1/models"] = Response(status)
    answer = run()
    assert answer["failed"] and [row["state"] for row in answer["endpoints"] if row["url"] == DECODE] == [state]


def test_it_can_return_instead(run: Run) -> None:
    run.host.answers = {}
    answer = run(**PLAN, on_mismatch="return")
    assert (answer.get("failed"), answer["ok"], answer["would_fail"]) == (None, False, False)
    assert {row["state"] for row in answer["endpoints"]} == {"nothing_there"}


def test_check_mode_asks_sends_nothing_and_says_so(run: Run) -> None:
    answer = run(**PLAN, _ansible_check_mode=True)
    assert (answer["ok"], run.completions, answer["would_fail"]) == (True, 0, False)
    assert answer["completion"]["why_not"] == "check mode" and "no completion was sent: check mode" in answer["msg"]


def test_check_mode_on_an_empty_host_says_that_it_would_fail(run: Run) -> None:
    run.host.answers = {}
    answer = run(**PLAN, _ansible_check_mode=True)
    assert (answer.get("failed"), answer["ok"], answer["would_fail"]) == (None, False, True)


def test_no_completion_where_none_is_wanted(run: Run) -> None:
    answer = run(**PLAN, completion=False)
    assert answer["ok"] and run.completions == 0 and answer["completion"]["why_not"] == "none was asked for"


def test_a_completion_that_fails_fails_the_check(run: Run) -> None:
    run.host.answers[f"{ROUTER}/v1/completions"] = Response(503, b"No available prefill workers")
    answer = run()
    assert answer["failed"] and run.completions == 1 and answer["completion"]["sent"]
    assert "completion: no_answer" in answer["msg"] and "about a minute" in answer["msg"]


def test_the_key_goes_along_and_into_no_result(run: Run, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("s3cret-key\n")
    run.host.answers[f"{PREFILL}/v1/models"] = Response(500, b"s3cret-key is wrong")
    answer = run(**PLAIN, credential_path=str(key))
    assert all(options["credential"].path == str(key) for options in run.host.sent)
    assert answer["failed"] and "s3cret-key" not in json.dumps(answer)


def test_a_key_that_cannot_be_read_is_named_by_its_file(run: Run, tmp_path: Path) -> None:
    """The real request: the key is read before anything is sent."""
    run.host.request = http.request
    answer = run(**PLAIN, credential_path=str(tmp_path / "none"))
    assert answer["failed"] and {row["state"] for row in answer["endpoints"]} == {"key_unreadable"}
    assert f"{tmp_path / 'none'} cannot be read" in answer["msg"] and "as root" in answer["msg"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "one of the following is required"),
        ({"workers": PLAIN["workers"]}, "served_name"),
        ({**PLAN, "workers": PLAIN["workers"], "served_name": "x"}, "mutually exclusive"),
        ({**PLAIN, "served_name": "a:b"}, "without a colon"),
        ({**PLAN, "served_name": "a:b"}, "without a colon"),
        ({"served_name": "x", "workers": []}, "nothing to ask is given"),
        ({"served_name": "x", "workers": [{"url": PREFILL}]}, "role"),
        ({"served_name": "x", "workers": [{"url": PREFILL, "role": "router"}]}, "must be one of"),
        ({"served_name": "x", "workers": [{"url": f"{PREFILL}/v1", "role": "decode"}]}, "nothing behind it"),
        ({"served_name": "x", "routers": [{"url": "https://a:1"}]}, "expected http://address:port"),
        ({"served_name": "x", "routers": [{"url": "http://a:99999"}]}, "no address"),
        ({"instances": [{"role": "prefill"}]}, "url is missing"),
        ({"instances": [entry("prefill", served_name=None)]}, "expected a name"),
        ({**PLAN, "completion_timeout": 0}, "completion_timeout is 0"),
        ({**PLAN, "on_mismatch": "shrug"}, "must be one of"),
    ],
)
def test_a_wrong_parameter_is_explained_and_nothing_is_asked(run: Run, options: dict[str, Any], says: str) -> None:
    answer = run(**(options or {"completion": False}))
    assert answer["failed"] and says in answer["msg"] and "Traceback" not in json.dumps(answer)
    assert run.host.asked == []
