# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checking the instances of one host: what the module, the program on the host and its timers all do, in one place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable

from ..host.local import LocalHost
from . import proof
from .observer import Observer
from .verdict import NOT_READY, READY
from .waiter import Reporter, Settings, Watch, result, wait_all

_DEFAULT_BUDGET = 1800.0


@dataclass(frozen=True)
class Request:
    """What is asked.

    :param timeout: seconds for each instance; None: the start budget of its entry; 0: one look.
    :param invocations: instance -> the run asked about. :param deployment: any restart is a failure.
    :param record: write the proof of an invocation that is found ready for the first time.
    """

    timeout: float | None = None
    invocations: Mapping[str, str] = field(default_factory=dict)
    deployment: bool = False
    record: bool = False
    settings: Settings = field(default_factory=Settings)


def check(entries: Sequence[Mapping[str, Any]], host: LocalHost, request: Request, tell: Callable[[str], None] | None = None) -> list[dict[str, Any]]:
    """Watch all entries at once; one result per entry, in their order, with the same keys on every path. ``tell`` takes lines of progress."""
    board: dict[str, Any] = {}
    observers = {}
    budgets = {}
    for entry in entries:
        name = str(entry["instance"])
        asked = str(request.invocations.get(name) or "")
        observers[name] = Observer(entry, host, asked, request.deployment)
        own = float(entry.get("start_budget_seconds") or _DEFAULT_BUDGET)
        budgets[name] = own if request.timeout is None else float(request.timeout)
    watches = [Watch(observer, host, request.settings, board) for observer in observers.values()]
    outcomes = wait_all(watches, budgets, Reporter(tell, host) if tell else None)
    results = []
    for entry in entries:
        observer = observers[str(entry["instance"])]
        item = result(entry, outcomes[str(entry["instance"])])
        if request.record and item["verdict"] == READY:
            item["proof"] = observer.record(proof.make(entry, item))
        results.append(item)
    return results


def as_trial(item: dict[str, Any]) -> dict[str, Any]:
    """The result of one look as a run that only tries would give it: ``would_wait`` where a real run would wait or fail."""
    waits = item["verdict"] != READY
    if not waits:
        return {**item, "would_wait": False}
    # A unit that does not run yet is no failure of a deploy that has only been tried.
    running = item["signals"]["process"]["details"].get("running")
    verdict = item["verdict"] if running else NOT_READY
    return {**item, "would_wait": True, "verdict": verdict, "reason": f"would wait: {item['reason']}"}


def text_of(results: Sequence[Mapping[str, Any]]) -> str:
    """Every instance on a line of its own; those that are not ready with their reason and what to do."""
    lines = []
    for item in results:
        if item["verdict"] == READY:
            lines.append(f"{item['instance']}: READY")
            continue
        lines.append(f"{item['instance']} ({item['unit']}{' on ' + item['host'] if item['host'] else ''}): {item['verdict']}: {item['reason']}")
        lines += [f"  next: {step}" for step in item["next"]]
    return "\n".join(lines) or "no instance was given"
