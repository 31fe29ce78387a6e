# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module around the canary: what it refuses, what it says in check mode, and its result."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.plumbline.sglang.plugins.module_utils.host.http import Response
from ansible_collections.plumbline.sglang.plugins.modules import pd_canary
from ansible_collections.plumbline.sglang.tests.unit.witness import ADDRESS, Host, entry

GROUP = [entry("prefill"), entry("decode"), entry("router")]


def run(host: Host, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], **options: Any) -> dict[str, Any]:
    monkeypatch.setattr(pd_canary, "LocalHost", lambda: host)
    with patch_module_args({"router": entry("router"), "instances": GROUP, **options}), pytest.raises(SystemExit):
        pd_canary.main()
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def group(moved: int) -> Host:
    host = Host("router")
    done: list[int] = []

    def complete(_host: Host) -> Response:
        done.append(1)
        return Response(200, json.dumps({"choices": [{"text": "x"}], "usage": {"prompt_tokens": 9, "completion_tokens": 8}}).encode())

    def counters(_host: Host) -> Response:
        grown = moved / (1 << 20) * len(done)
        return Response(200, f"sglang:kv_transfer_total_mb_sum {grown!r}\nsglang:kv_transfer_latency_ms_count {float(len(done))}\n".encode())

    host.answers[f"http://{ADDRESS}:30001/v1/completions"] = complete
    host.answers[f"http://{ADDRESS}:30000/metrics"] = counters
    host.answers[f"http://{ADDRESS}:30002/metrics"] = Response(200, b"sglang:num_running_reqs 0.0\n")
    return host


def test_a_transfer_passes_and_nothing_is_changed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    answer = run(group(4608), monkeypatch, capsys, expected_bytes_per_token=512)
    assert (answer.get("failed"), answer["changed"], answer["bytes_moved"], answer["bytes_expected"]) == (None, False, 4608, 4608)


def test_a_reply_without_a_transfer_fails_and_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    answer = run(group(0), monkeypatch, capsys)
    assert answer["failed"] and "0 bytes of KV cache" in answer["msg"] and answer["reply"] == "x"
    assert answer["next"]


def test_check_mode_sends_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    host = group(4608)
    answer = run(host, monkeypatch, capsys, _ansible_check_mode=True)
    assert answer["skipped"] and "prefill-g-a, decode-g-a" in answer["msg"]
    assert host.asked == []


def test_a_refused_canary_sends_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    host = group(4608)
    answer = run(host, monkeypatch, capsys, timeout=90)
    assert answer["failed"] and "breaker window" in answer["msg"]
    assert host.asked == []


def test_a_completion_that_fails_is_explained(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    host = group(4608)
    host.answers[f"http://{ADDRESS}:30001/v1/completions"] = Response(503, b"No prefill workers available")
    answer = run(host, monkeypatch, capsys)
    assert answer["failed"] and "503" in answer["msg"] and answer["next"]
