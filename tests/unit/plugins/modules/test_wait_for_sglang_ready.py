# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module around the wait: its result on every path, check mode, progress, and a planted key that appears nowhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.plumbline.sglang.plugins.module_utils.host.http import Response
from ansible_collections.plumbline.sglang.plugins.modules import wait_for_sglang_ready
from ansible_collections.plumbline.sglang.tests.unit.module_run import answer_of
from ansible_collections.plumbline.sglang.tests.unit.witness import ADDRESS, PID, Host, body, capture, entry

KEY = "sk-planted-2342"
#: What a result always has.
KEYS = {"ready", "verdict", "would_wait", "instances", "msg"}


def run(host: Host, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], **options: Any) -> dict[str, Any]:
    monkeypatch.setattr(wait_for_sglang_ready, "LocalHost", lambda: host)
    answer = answer_of(wait_for_sglang_ready, options, capsys)
    assert set(answer) >= KEYS
    return answer


def ready() -> Host:
    host = Host()
    host.serves("prefill")
    host.says(capture("prefill_ready.log").split("SIGTERM")[0])
    return host


def test_a_ready_instance(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    answer = run(ready(), monkeypatch, capsys, instances=[entry()])
    assert (answer["ready"], answer["verdict"], answer.get("failed"), answer["changed"]) == (True, "READY", None, False)
    (item,) = answer["instances"]
    assert set(item["signals"]) == {"process", "log", "http", "memory", "identity", "bootstrap", "load"}


def test_an_instance_that_cannot_become_ready_fails_with_what_to_do(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    host = Host()
    host.says(capture("bad_flag.log"))
    host.unit_is(active_state="failed", sub_state="failed", result="exit-code", main_pid=0, exec_main_code=1, exec_main_status=2)
    answer = run(host, monkeypatch, capsys, instances=[entry()])
    assert (answer["failed"], answer["ready"], answer["verdict"]) == (True, False, "FAILED")
    for part in ("prefill-g-a", "sglang-prefill-g-a.service on h1", "--no-such-flag", "next: "):
        assert part in answer["msg"]
    answer = run(host, monkeypatch, capsys, instances=[entry()], on_not_ready="return")
    assert (answer.get("failed"), answer["ready"], answer["verdict"]) == (None, False, "FAILED")


def test_check_mode_looks_once_and_never_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    host = Host()
    host.unit_is(load_state="not-found", active_state="inactive", sub_state="dead", invocation_id="", main_pid=0)
    before = host.now
    answer = run(host, monkeypatch, capsys, instances=[entry()], _ansible_check_mode=True)
    assert (answer.get("failed"), answer["would_wait"], answer["verdict"]) == (None, True, "NOT_READY")
    assert answer["instances"][0]["reason"] == "would wait: the unit is not installed"
    assert host.now == before and host.asked == []
    answer = run(ready(), monkeypatch, capsys, instances=[entry()], _ansible_check_mode=True)
    assert (answer["would_wait"], answer["verdict"]) == (False, "READY")


def test_entries_with_holes_are_refused_before_anything_is_looked_at(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    host = Host()
    answer = run(host, monkeypatch, capsys, instances=[{"instance": "x", "role": "decode"}])
    assert answer["failed"] and "x: unit is missing" in answer["msg"]
    assert host.asked == []


def test_a_single_instance_by_plain_parameters(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    options = {"unit": "sglang-prefill-g-a", "role": "prefill", "port": 30000, "bootstrap_port": 8998, "served_name": "/srv/models/tiny-llama", "device": "cpu"}
    assert run(ready(), monkeypatch, capsys, **options)["verdict"] == "READY"
    assert run(ready(), monkeypatch, capsys, **{**options, "served_name": "other"}, timeout=5)["verdict"] == "FAILED"


def test_a_time_that_cannot_be_waited_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    host = Host()
    answer = run(host, monkeypatch, capsys, instances=[entry()], timeout=-3)
    assert answer["failed"] and "timeout is -3, expected seconds to wait, or 0 to look once" in answer["msg"]
    assert host.asked == []


def test_workers_that_are_no_addresses_are_refused_before_anything_is_looked_at(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    host = Host("router")
    options = {"unit": "sglang-router-g-a", "role": "router", "port": 30001}
    for bad in ("http://192.0.2.11:port 8998", "http://192.0.2.11:30000", "nonsense"):
        answer = run(host, monkeypatch, capsys, **options, prefill_workers=[bad])
        assert answer["failed"] and "nothing was looked at" in answer["msg"] and "prefill_workers" in answer["msg"]
    assert host.asked == []


def test_the_planted_key_is_nowhere_in_the_result_and_the_progress(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "api-key"
    path.write_text(KEY)
    host = ready()
    host.says(f"server_args={{'api_key': '{KEY}'}}\na stray {KEY}\nsglang serve: error: unrecognized arguments: --api-kei {KEY}")
    info = body("prefill_endpoints.txt", "GET /server_info")
    info.update(api_key=KEY, internal_states=[{"api_key": KEY}], launch_command=f"{info['launch_command']} --api-key {KEY}")
    host.answers[f"http://{ADDRESS}:30000/server_info"] = Response(200, json.dumps(info).encode())
    host.environments[PID]["SECRET"] = KEY
    progress = tmp_path / "progress"
    credentials = [{"name": "api-key", "flag": "--api-key", "path": str(path), "variable": "sglang_api_key"}]
    answer = run(host, monkeypatch, capsys, instances=[entry(credentials=credentials)], progress_file=str(progress), on_not_ready="return")
    assert answer["verdict"] == "FAILED"
    assert KEY not in json.dumps(answer)
    assert "prefill-g-a: FAILED" in progress.read_text() and KEY not in progress.read_text()


def test_the_documented_options_are_the_real_ones() -> None:
    documented = yaml.safe_load(wait_for_sglang_ready.DOCUMENTATION)["options"]
    for name, real in wait_for_sglang_ready.spec().items():
        real.pop("no_log", None)
        assert {key: documented[name][key] for key in ("type", "default", "choices", "elements") if key in documented[name]} == real
    assert set(documented) == set(wait_for_sglang_ready.spec())
