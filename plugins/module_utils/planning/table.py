# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan as a text table for a person: one line per instance, then the findings. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .findings import to_text as finding_text

_HEAD = ("HOST", "UNIT", "ROLE", "GPUS", "NUMA", "PORT", "BOOTSTRAP", "SERVED NAME", "RELEASE")


def _row(entry: Mapping[str, Any]) -> list[str]:
    return [
        entry["host"],
        entry["unit"],
        entry["role"],
        "cpu" if entry["device"] == "cpu" and entry["role"] != "router" else gpu_ranges(entry["gpus"]) or "-",
        _text(entry["numa_node"]),
        str(entry["port"]),
        _text(entry["bootstrap_port"]),
        entry["served_name"],
        entry["release"]["id"],
    ]


def _text(value: Any) -> str:
    return "-" if value is None else str(value)


def _count(items: Sequence[Any] | Mapping[str, Any], noun: str) -> str:
    return f"{len(items)} {noun}" + ("" if len(items) == 1 else "s")


def gpu_ranges(gpus: Sequence[int]) -> str:
    """Indices as ranges: [0, 1, 2, 3, 6] -> ``0-3,6``."""
    runs: list[list[int]] = []
    for gpu in sorted(gpus):
        if runs and gpu == runs[-1][-1] + 1:
            runs[-1].append(gpu)
        else:
            runs.append([gpu])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows in columns, the first one as the head."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def to_text(plan: Mapping[str, Any]) -> str:
    """The whole plan as text, without a line break at its end."""
    parts = [f"plan {plan['digest'][:12]}: {_count(plan['instances'], 'instance')} on {_count(plan['hosts'], 'host')}"]
    if plan["instances"]:
        parts.append(table([_HEAD, *(_row(entry) for entry in plan["instances"])]))
    parts += [finding_text(item) for item in plan["findings"]]
    return "\n\n".join(parts)
