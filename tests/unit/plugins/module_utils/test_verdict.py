# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signals to verdicts: every combination of states that decides something."""

from __future__ import annotations

from itertools import product

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.readiness.verdict import (
    DISAGREEMENT_SECONDS,
    FAILED,
    INCONCLUSIVE,
    NOT_READY,
    READY,
    REQUIRED,
    decide,
    worst,
)
from ansible_collections.plumbline.sglang.plugins.module_utils.signals.base import Signal

STATES = ("passed", "pending", "failed", "unknown")


def signal(name: str, state: str, **details: str) -> Signal:
    return Signal(name, state, f"{name} saw {state}", "", "", "", 0.0, f"look at {name}" if state != "passed" else "", details)


def signals(role: str, **states: str) -> dict[str, Signal]:
    return {name: signal(name, states.get(name, "passed")) for name in REQUIRED[role]}


@pytest.mark.parametrize("role", list(REQUIRED))
def test_ready_only_where_every_required_witness_passed(role: str) -> None:
    for states in product(STATES, repeat=len(REQUIRED[role])):
        made = {name: signal(name, state) for name, state in zip(REQUIRED[role], states)}
        verdict = decide(made, role).verdict
        assert (verdict == READY) == (set(states) == {"passed"}), states
        assert (verdict == FAILED) == ("failed" in states), states


@pytest.mark.parametrize("role", list(REQUIRED))
def test_a_witness_that_was_not_heard_never_counts(role: str) -> None:
    for name in REQUIRED[role]:
        made = signals(role)
        del made[name]
        verdict = decide(made, role)
        assert verdict.verdict == INCONCLUSIVE and name in verdict.reason
        verdict = decide(signals(role, **{name: "unknown"}), role)
        assert verdict.verdict == INCONCLUSIVE and f"{name} saw unknown" in verdict.reason
        assert verdict.next == (f"look at {name}",)


def test_what_is_still_to_come_is_not_ready_and_what_is_unknown_is_named_with_it() -> None:
    verdict = decide(signals("prefill", http="pending", identity="unknown"), "prefill")
    assert verdict.verdict == NOT_READY
    assert "http saw pending" in verdict.reason and "identity saw unknown" in verdict.reason


def test_a_failure_of_a_witness_that_is_not_required_counts_and_its_waiting_does_not() -> None:
    assert decide({**signals("router"), "memory": signal("memory", "failed")}, "router").verdict == FAILED
    assert decide({**signals("router"), "memory": signal("memory", "pending")}, "router").verdict == READY


def test_a_failure_says_the_runs_own_last_words() -> None:
    made = signals("prefill", process="failed", http="pending")
    made["log"] = signal("log", "pending", cause="ValueError: the first cause")
    verdict = decide(made, "prefill")
    assert "ValueError: the first cause" in verdict.reason
    assert "log: ValueError: the first cause" in verdict.causes


@pytest.mark.parametrize(("yes", "no"), [("log", "http"), ("http", "log")])
def test_witnesses_that_contradict_each_other_for_long_are_named(yes: str, no: str) -> None:
    made = signals("decode", **{no: "pending"})
    late = DISAGREEMENT_SECONDS + 1
    assert decide(made, "decode", {yes: late, no: late}).verdict == INCONCLUSIVE
    assert decide(made, "decode", {yes: late, no: 1.0}).verdict == NOT_READY
    reason = decide(made, "decode", {yes: late, no: late}).reason
    assert f"{yes} saw passed" in reason and f"{no} saw pending" in reason


def test_the_worst_of_several() -> None:
    assert worst([READY, NOT_READY]) == NOT_READY
    assert worst([NOT_READY, FAILED, READY, INCONCLUSIVE]) == FAILED
    assert worst([]) == READY
