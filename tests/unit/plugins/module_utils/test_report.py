# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The outcome of a deploy: who is not ready stands in the message with what was seen and what to do next."""

from __future__ import annotations

from typing import Any

from ansible_collections.plumbline.sglang.plugins.module_utils import report

ENTRIES = [
    {"host": "a", "instance": "prefill-m-0", "unit": "sglang-prefill-m-0.service"},
    {"host": "b", "instance": "decode-m-0", "unit": "sglang-decode-m-0.service"},
]
READY = {"host": "a", "instance": "prefill-m-0", "verdict": "READY", "reason": "all agree", "seconds": 61.2}
FAILED = {
    "host": "b",
    "instance": "decode-m-0",
    "verdict": "FAILED",
    "reason": "its main process exited with status 2",
    "last_lines": [f"line {number}" for number in range(20)],
    "next": ["journalctl -u sglang-decode-m-0"],
}


def the_rows(*results: dict[str, Any]) -> list[dict[str, Any]]:
    return report.rows(ENTRIES, results)


def test_a_failed_instance_is_named_with_reason_and_next_step() -> None:
    table = the_rows(READY, FAILED)
    assert report.failed(table) == ["decode-m-0@b"]
    text = report.failure_text(table)
    for part in ("decode-m-0 on b", "exited with status 2", "next, on b: journalctl -u sglang-decode-m-0", "1 FAILED, 1 READY"):
        assert part in text
    assert "prefill-m-0" not in text


def test_the_last_words_are_the_last_ones_and_few() -> None:
    text = report.details_text(the_rows(FAILED))
    assert "line 19" in text and "line 11" not in text


def test_all_ready_is_no_failure() -> None:
    table = the_rows(READY, {**FAILED, "verdict": "READY"})
    assert report.failed(table) == []
    assert report.details_text(table) == ""


def test_what_nothing_speaks_of_is_not_passed_off_as_ready() -> None:
    table = the_rows(READY)
    assert [row["verdict"] for row in table] == ["READY", "NOT CHECKED"]
    assert report.summary(table) == "1 NOT CHECKED, 1 READY"


def test_check_mode_waits_for_nothing_and_fails_nothing() -> None:
    table = the_rows({**FAILED, "verdict": "NOT_READY", "would_wait": True})
    assert table[1]["verdict"] == "WOULD WAIT"
    assert report.failed(table) == []


def test_a_result_of_the_same_instance_name_on_another_host_is_not_taken() -> None:
    assert the_rows({**READY, "host": "b"})[0]["verdict"] == "NOT CHECKED"


CROSSING = {
    "via": "direct",
    "stream": False,
    "prefill": "prefill-m-0@a",
    "decode": "decode-m-0@b",
    "prompt_tokens": 18,
    "completion_tokens": 8,
    "bytes_moved": 9216,
    "bytes_expected": 9000,
    "seconds": 0.4,
    "live_traffic": False,
}


def test_each_crossing_is_told_with_what_moved_and_what_had_to() -> None:
    text = report.canary_text({"group": "m", "reply": "x", "crossings": [CROSSING, {**CROSSING, "via": "router-m-0", "stream": True, "bytes_expected": None}]})
    assert "1 pairs crossed directly, 1 completions through routers, the last one answered 'x'" in text
    assert "prefill-m-0@a -> decode-m-0@b directly: 18 prompt tokens, 8 completion tokens, 9,216 bytes of KV cache moved (at least 9,000 had to)" in text
    assert "through router-m-0, streaming" in text and "how many had to is not known" in text


def test_bytes_that_did_not_move_are_said() -> None:
    text = report.canary_text({"group": "m", "crossings": [{**CROSSING, "bytes_moved": 0}], "problems": ["nothing left the prefill"]})
    assert "no bytes of KV cache moved" in text and "not proved: nothing left the prefill" in text
