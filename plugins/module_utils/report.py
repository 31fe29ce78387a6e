# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a deploy ends with: one line per instance that a glance takes in, then what to do about each that is not ready.

Pure: from plan entries and the results of M(plumbline.sglang.wait_for_sglang_ready) and the canary to text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

NOT_CHECKED = "NOT CHECKED"
#: Check mode: a real run would wait here; what is not ready now says nothing about it.
WOULD_WAIT = "WOULD WAIT"
_NO_FAILURE = ("READY", NOT_CHECKED, WOULD_WAIT)


def rows(entries: Iterable[Mapping[str, Any]], results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row per entry: its verdict, or NOT CHECKED where no result speaks of it (an earlier failure, or ``--limit``)."""
    by_key = {(result["host"], result["instance"]): result for result in results}
    table = []
    for entry in entries:
        result = by_key.get((entry["host"], entry["instance"]), {})
        table.append(
            {
                "host": entry["host"],
                "instance": entry["instance"],
                "unit": entry["unit"],
                "verdict": _verdict(result),
                "reason": result.get("reason", ""),
                "seconds": result.get("seconds"),
                "last_lines": list(result.get("last_lines", [])),
                "next": list(result.get("next", [])) if not isinstance(result.get("next"), str) else [result["next"]],
            }
        )
    return table


def _verdict(result: Mapping[str, Any]) -> str:
    verdict = str(result.get("verdict", NOT_CHECKED))
    return WOULD_WAIT if result.get("would_wait") and verdict != "READY" else verdict


def table_text(table: Sequence[Mapping[str, Any]]) -> str:
    """The rows as aligned columns: verdict, host, instance, seconds to ready, reason."""
    cells = [
        (row["verdict"], row["host"], row["instance"], "" if row["seconds"] is None else f"{row['seconds']:.0f} s", row["reason"])
        for row in table
    ]
    widths = [max((len(cell[column]) for cell in cells), default=0) for column in range(4)]
    return "\n".join("  ".join([*(cell[i].ljust(widths[i]) for i in range(4)), cell[4]]).rstrip() for cell in cells)


def details_text(table: Sequence[Mapping[str, Any]], *, lines: int = 8) -> str:
    """For each instance that was checked and is not ready: its last words, and the next commands."""
    blocks = []
    for row in table:
        if row["verdict"] in _NO_FAILURE:
            continue
        block = [f"{row['instance']} on {row['host']} ({row['unit']}): {row['verdict']}", f"  seen: {row['reason']}"]
        if row["last_lines"]:
            block += ["  last words of this invocation:", *(f"    {line[:200]}" for line in row["last_lines"][-lines:])]
        block += [f"  next: {step}" for step in row["next"]]
        blocks.append("\n".join(block))
    return "\n".join(blocks)


def canary_text(canary: Mapping[str, Any]) -> str:
    """One canary as two lines: what came back, and what moved."""
    moved = canary.get("bytes_moved")
    return (
        f"PD group {canary.get('group', '?')}: a completion through {canary.get('router', 'the router')} answered "
        f"{canary.get('reply', '')!r}\n"
        f"  {canary.get('prompt_tokens', '?')} prompt tokens, {canary.get('completion_tokens', '?')} completion tokens, "
        f"{'no' if not moved else format(moved, ',')} bytes of KV cache moved from prefill to decode in {canary.get('seconds', 0):.1f} s"
    )


def summary(table: Sequence[Mapping[str, Any]]) -> str:
    """One sentence: how many instances have which verdict."""
    counts: dict[str, int] = {}
    for row in table:
        counts[row["verdict"]] = counts.get(row["verdict"], 0) + 1
    return ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())) or "no instance"


def failed(table: Sequence[Mapping[str, Any]]) -> list[str]:
    """The instances that were checked and are not ready."""
    return [f"{row['instance']}@{row['host']}" for row in table if row["verdict"] not in _NO_FAILURE]


def failure_text(table: Sequence[Mapping[str, Any]]) -> str:
    """The message of a failed deploy: how many, then of each instance that is not ready what was seen and what to do next."""
    lines = [summary(table)]
    for row in table:
        if row["verdict"] in _NO_FAILURE:
            continue
        lines.append(f"{row['instance']} on {row['host']} ({row['unit']}): {row['verdict']}: {row['reason']}")
        lines += [f"  next, on {row['host']}: {step}" for step in row["next"]]
    return "\n".join(lines)
