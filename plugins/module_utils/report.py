# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a deploy and a verification end with: one table that a glance takes in, then what to do about each instance that is not ready.

Pure: from plan entries and the results of M(plumbline.sglang.wait_for_sglang_ready) and the canary to text and plain data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

NOT_CHECKED = "NOT CHECKED"
#: Check mode: a real run would wait here; what is not ready now says nothing about it.
WOULD_WAIT = "WOULD WAIT"
_NO_FAILURE = ("READY", NOT_CHECKED, WOULD_WAIT)
_UNASKED = "INCONCLUSIVE"

#: The columns of signals, in the order in which a run comes by them.
_SIGNALS = ("process", "log", "http", "memory", "identity", "bootstrap", "router", "load")
_STATES = {"passed": "ok", "pending": "wait", "failed": "FAIL", "unknown": "?"}
_TIMES = {0: "", 1: "once", 2: "twice"}


def rows(entries: Iterable[Mapping[str, Any]], results: Sequence[Mapping[str, Any]], asked: Iterable[str] = ()) -> list[dict[str, Any]]:
    """One row per entry: its verdict, or NOT CHECKED where no result speaks of it (an earlier failure, or ``--limit``).

    ``asked`` are the hosts of which a result was expected: without one, what runs there is INCONCLUSIVE and not passed over.
    """
    by_key = {(result["host"], result["instance"]): result for result in results}
    expected = set(asked)
    # An entry made from plain parameters has no host.
    return [_row(entry, by_key.get((entry.get("host", ""), entry["instance"])), entry.get("host") in expected) for entry in entries]


def _row(entry: Mapping[str, Any], result: Mapping[str, Any] | None, expected: bool) -> dict[str, Any]:
    if result is None:
        verdict, reason = (_UNASKED, "its host could not be asked: unreachable, or an earlier task failed") if expected else (NOT_CHECKED, "")
        result = {"verdict": verdict, "reason": reason, "next": [f"look for {entry['host']} further up in this output"] if expected else []}
    steps = result.get("next", [])
    return {
        "instance": entry["instance"],
        "host": entry.get("host", ""),
        "unit": entry["unit"],
        "verdict": _verdict(result),
        "reason": result.get("reason", ""),
        "seconds": result.get("seconds"),
        "restarts": result.get("restarts"),
        "invocation": result.get("invocation", ""),
        "signals": {name: signal["state"] for name, signal in (result.get("signals") or {}).items()},
        "resolved": dict(result.get("resolved") or {}),
        "last_lines": list(result.get("last_lines", [])),
        "next": [steps] if isinstance(steps, str) else list(steps),
    }


def _verdict(result: Mapping[str, Any]) -> str:
    verdict = str(result.get("verdict", NOT_CHECKED))
    return WOULD_WAIT if result.get("would_wait") and verdict != "READY" else verdict


def table_text(table: Sequence[Mapping[str, Any]]) -> str:
    """The rows as aligned columns under a head: verdict, host, instance, unit, seconds to ready, restarts, each signal, why not READY."""
    shown = [name for name in _SIGNALS if any(name in row["signals"] for row in table)]
    head = ["VERDICT", "HOST", "INSTANCE", "UNIT", "READY AFTER", "RESTARTED", *(name.upper() for name in shown), ""]
    cells = [head, *(_cells(row, shown) for row in table)]
    widths = [max(len(cell[column]) for cell in cells) for column in range(len(head) - 1)]
    return "\n".join("  ".join([*(text.ljust(width) for text, width in zip(cell, widths)), cell[-1]]).rstrip() for cell in cells)


def _cells(row: Mapping[str, Any], signals: Sequence[str]) -> list[str]:
    restarts = row["restarts"] or 0
    return [
        row["verdict"],
        row["host"],
        row["instance"],
        row["unit"],
        "" if row["seconds"] is None else f"{row['seconds']:.0f} s",
        _TIMES.get(restarts, f"{restarts} times"),
        *(_STATES.get(row["signals"].get(name, ""), "") for name in signals),
        _why(row),
    ]


def _why(row: Mapping[str, Any]) -> str:
    """The last column: why it is not READY; of one that is, only that it was restarted."""
    if row["verdict"] != "READY":
        return str(row["reason"])
    restarts = row["restarts"] or 0
    return f"restarted {_TIMES.get(restarts, f'{restarts} times')}" if restarts else ""


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
    """One canary: a line for its PD group, and one for each crossing, with what came back and what moved."""
    crossings = list(canary.get("crossings", []))
    direct = sum(crossing["via"] == "direct" for crossing in crossings)
    said = f", the last one answered {canary['reply']!r}" if canary.get("reply") else ""
    head = f"PD group {canary.get('group', '?')}: {direct} pairs crossed directly, {len(crossings) - direct} completions through routers{said}"
    return "\n".join([head, *(f"  {_crossing(crossing)}" for crossing in crossings), *(f"  not proved: {text}" for text in canary.get("problems", []))])


def _crossing(crossing: Mapping[str, Any]) -> str:
    way = "directly" if crossing["via"] == "direct" else f"through {crossing['via']}{', streaming' if crossing['stream'] else ''}"
    moved, expected = crossing["bytes_moved"], crossing["bytes_expected"]
    bound = "how many had to is not known" if expected is None else f"at least {expected:,} had to"
    return (
        f"{crossing['prefill'] or '?'} -> {crossing['decode'] or '?'} {way}: {crossing['prompt_tokens']} prompt tokens, "
        f"{crossing['completion_tokens']} completion tokens, "
        f"{format(moved, ',') if moved else 'no'} bytes of KV cache moved ({bound}) in {crossing['seconds']:.1f} s"
        f"{', while others used the group' if crossing.get('live_traffic') else ''}"
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
