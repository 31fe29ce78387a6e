# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan as a person reads it."""

from __future__ import annotations

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.planning.findings import concerned
from ansible_collections.plumbline.sglang.plugins.module_utils.planning.table import gpu_ranges, to_text
from ansible_collections.plumbline.sglang.tests.unit.plan_inventory import plan


def test_one_line_per_instance_in_columns() -> None:
    text = to_text(plan({"p1": {"sglang_prefill_instances": [{"gpus": [0, 1, 3]}]}, "d1": {"sglang_args": {"device": "cpu"}}}))
    lines = text.splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith("HOST"))
    rows = [line.split() for line in lines[start + 1 : start + 4]]
    assert [row[:8] for row in rows] == [
        ["p1", "sglang-prefill-chat-0.service", "prefill", "0-1,3", "0", "30000", "8998", "tiny"],
        ["d1", "sglang-decode-chat-0.service", "decode", "cpu", "-", "30002", "-", "tiny"],
        ["r1", "sglang-router-chat-0.service", "router", "-", "-", "30001", "-", "tiny"],
    ]
    assert len({line.index(cell) for line, cell in zip(lines[start : start + 4], ["ROLE", "prefill ", "decode ", "router "])}) == 1


def test_findings_follow() -> None:
    text = to_text(plan({"p1": {"sglang_nonsense": 1}}))
    assert "ERROR unknown-variable: p1" in text and "next:     remove sglang_nonsense" in text


@pytest.mark.parametrize(("gpus", "text"), [([], ""), ([3], "3"), ([2, 0, 1], "0-2"), ([0, 2, 3, 7], "0,2-3,7")])
def test_gpu_ranges(gpus: list[int], text: str) -> None:
    assert gpu_ranges(gpus) == text


def test_a_concerned_host_is_named_with_its_instances() -> None:
    findings = [{"where": ["a", "main"]}, {"where": ["a", "b/decode-m-0"]}]
    assert concerned(findings, {"a": {"instances": ["prefill-m-0", "router-m-0"]}, "b": {"instances": []}}) == [
        "a (prefill-m-0, router-m-0)",
        "b/decode-m-0",
        "main",
    ]
