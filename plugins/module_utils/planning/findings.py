# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with the inventory, as data: every rule reports through this, so that all of it is shown at once.

A finding is a plain dict, part of the plan:
``{"level": "error"|"warning", "rule": "gpu-overlap", "where": ["host/instance"], "seen", "expected", "next"}``.
``where`` names instances (``host/instance``), hosts or PD groups. No finding ever quotes a secret.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Finding = dict[str, Any]

ERROR = "error"
WARNING = "warning"


class Findings:
    """Collects findings; the same finding from several places becomes one that names them all."""

    def __init__(self) -> None:
        self._items: dict[tuple[str, ...], Finding] = {}

    def error(self, rule: str, where: Iterable[str], seen: str, expected: str, next_step: str) -> None:
        """Something that must be mended before any host is touched."""
        self._add(ERROR, rule, where, seen, expected, next_step)

    def warning(self, rule: str, where: Iterable[str], seen: str, expected: str, next_step: str) -> None:
        """Something that works, and that the operator should know of."""
        self._add(WARNING, rule, where, seen, expected, next_step)

    def _add(self, level: str, rule: str, where: Iterable[str], seen: str, expected: str, next_step: str) -> None:
        key = (level, rule, seen, expected, next_step)
        item = self._items.setdefault(key, {"level": level, "rule": rule, "where": [], "seen": seen, "expected": expected, "next": next_step})
        item["where"] = sorted({*item["where"], *where})

    def sorted(self) -> list[Finding]:
        """Errors first, then by rule and place: the order does not depend on the order of the inventory."""
        return sorted(self._items.values(), key=lambda item: (item["level"] != ERROR, item["rule"], item["where"], item["seen"]))


def to_text(finding: Finding) -> str:
    """One finding as a few lines for a person."""
    return "\n".join(
        [
            f"{finding['level'].upper()} {finding['rule']}: {', '.join(finding['where'])}",
            f"    seen:     {finding['seen']}",
            f"    expected: {finding['expected']}",
            f"    next:     {finding['next']}",
        ]
    )


def concerned(findings: Iterable[Finding], hosts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The places that findings name, each once; a host with its instances, since they are what would run wrongly.

    ``hosts`` is the plan's: ``{host: {"instances": [names], ...}}``.
    """
    named = []
    for place in sorted({place for item in findings for place in item["where"]}):
        instances = hosts.get(place, {}).get("instances") or []
        named.append(f"{place} ({', '.join(instances)})" if instances else place)
    return named


def shown(value: Any, limit: int = 80) -> str:
    """A value as a finding quotes it, cut to ``limit`` characters. Never call it with a secret."""
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
