# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module around the canary: what it refuses, what it says in check mode, and its result."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from ansible_collections.plumbline.sglang.plugins.module_utils import report
from ansible_collections.plumbline.sglang.plugins.module_utils.host.http import Response
from ansible_collections.plumbline.sglang.plugins.modules import pd_canary
from ansible_collections.plumbline.sglang.tests.unit.module_run import answer_of
from ansible_collections.plumbline.sglang.tests.unit.witness import ADDRESS, Host, entry

GROUP = [entry("prefill"), entry("decode"), entry("router")]
PREFILL, ROUTER, DECODE = (f"http://{ADDRESS}:{port}" for port in (30000, 30001, 30002))


def run(host: Host, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], **options: Any) -> dict[str, Any]:
    monkeypatch.setattr(pd_canary, "LocalHost", lambda: host)
    return answer_of(pd_canary, {"instances": GROUP, **options}, capsys)


def pair(moved: int) -> Host:
    """A pair in which a completion of 9 prompt tokens moves so many bytes."""
    host = Host("router")
    done: list[int] = []

    def complete(there: Host) -> Response:
        if there.asked[-1].startswith(ROUTER):
            done.append(1)
            if there.sent[-1]["payload"]["stream"]:
                event = json.dumps({"choices": [{"text": "x"}], "usage": {"prompt_tokens": 9, "completion_tokens": 8}})
                return Response(200, f"data: {event}\n\ndata: [DONE]\n\n".encode())
        return Response(200, json.dumps({"choices": [{"text": "x"}], "usage": {"prompt_tokens": 9, "completion_tokens": 8}}).encode())

    def crossed(_host: Host) -> Response:
        done.append(1)
        return Response(200, b"{}")

    def counters(_host: Host) -> Response:
        grown = moved / (1 << 20) * len(done)
        return Response(200, f"sglang:kv_transfer_total_mb_sum {grown!r}\nsglang:kv_transfer_latency_ms_count {float(len(done))}\n".encode())

    host.answers.update({f"{PREFILL}/v1/completions": crossed, f"{DECODE}/v1/completions": complete, f"{ROUTER}/v1/completions": complete})
    host.answers.update({f"{PREFILL}/metrics": counters, f"{DECODE}/metrics": Response(200, b"sglang:num_running_reqs 0.0\n")})
    host.answers.update({f"{url}/v1/models": Response(200, b"{}") for url in (PREFILL, DECODE)})
    host.answers[f"{PREFILL}/server_info"] = Response(200, json.dumps({"page_size": 1, "api_key": "s3cret"}).encode())
    return host


def test_a_transfer_passes_and_nothing_is_changed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    answer = run(pair(4608), monkeypatch, capsys, expected_bytes_per_token=512)
    assert (answer.get("failed"), answer["changed"], answer["problems"]) == (None, False, [])
    assert [(item["via"], item["stream"], item["bytes_moved"], item["bytes_expected"]) for item in answer["crossings"]] == [
        ("direct", False, 4608, 4608),
        ("router-g-a", False, 4608, 4608),
        ("router-g-a", True, 4608, 4608),
    ]
    assert answer["bytes_moved"] == 13824
    assert report.canary_text(answer).count("4,608 bytes of KV cache moved (at least 4,608 had to)") == 3


def test_the_result_is_what_the_documentation_says(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    answer = run(pair(4608), monkeypatch, capsys)
    told = yaml.safe_load(pd_canary.RETURN)
    assert set(answer) - {"changed", "invocation"} == set(told)
    assert set(answer["crossings"][0]) == set(told["crossings"]["contains"])
    refused = run(pair(0), monkeypatch, capsys, words=0)
    assert {name for name, value in told.items() if value["returned"] == "always"} <= set(refused)


def test_nothing_of_server_info_is_returned(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    answer = run(pair(4608), monkeypatch, capsys)
    assert answer["bytes_expected_source"] == "unknown: /server_info tells no memory_usage"
    assert "s3cret" not in json.dumps(answer)


def test_a_reply_without_a_transfer_fails_and_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    answer = run(pair(0), monkeypatch, capsys)
    assert answer["failed"] and answer["reply"] == "x" and answer["next"]
    assert "prefill-g-a@h1 to decode-g-a@h1, asked directly: 0 bytes of KV cache" in answer["msg"] and "next: curl" in answer["msg"]


def test_check_mode_sends_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    host = pair(4608)
    answer = run(host, monkeypatch, capsys, _ansible_check_mode=True)
    assert answer["skipped"] and "cross prefill-g-a@h1 to decode-g-a@h1 and send two completions through router-g-a@h1" in answer["msg"]
    assert "reply" not in answer and host.asked == []
    answer = run(host, monkeypatch, capsys, _ansible_check_mode=True, direct=False)
    assert "cross" not in answer["msg"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"timeout": 90}, "breaker window"),
        ({"timeout": 0}, "timeout is 0"),
        ({"instances": GROUP[1:]}, "no prefill"),
        ({"instances": [{}]}, "an entry: instance is missing"),
        ({"instances": []}, "no prefill"),
        ({"instances": [*GROUP, entry("decode", group="other")]}, "2 PD groups"),
    ],
)
def test_a_refused_canary_sends_nothing(options: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    host = pair(4608)
    answer = run(host, monkeypatch, capsys, **options)
    assert answer["failed"] and says in answer["msg"] and answer["msg"].startswith("nothing was sent: ")
    assert host.asked == []


def test_a_wrong_parameter_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    host = pair(4608)
    answer = run(host, monkeypatch, capsys, words="many")
    assert answer["failed"] and "words" in answer["msg"] and host.asked == []


def test_a_completion_that_fails_is_explained(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    host = pair(4608)
    host.answers[f"{ROUTER}/v1/completions"] = Response(503, b"No prefill workers available")
    answer = run(host, monkeypatch, capsys)
    assert answer["failed"] and "through router-g-a: " in answer["msg"] and "503" in answer["msg"] and answer["next"]
