# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Proofs: what was seen when an invocation was found ready for the first time, kept for as long as it runs.

A journal forgets; after weeks the start-up lines of a healthy server are gone. Then the log signal is its proof, plus "no
fatal line since". A proof speaks of one invocation alone, and of nothing that can be observed now.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .instance_entry import run_file

SCHEMA = 1


def path_of(entry: Mapping[str, Any], invocation: str) -> str:
    """Where the proof of an invocation lies; empty where the entry names no state directory."""
    return run_file(entry, "proofs", invocation)


def valid(content: Mapping[str, Any] | None, entry: Mapping[str, Any], invocation: str) -> bool:
    """Whether a file's content is a proof of this invocation of this unit."""
    return bool(
        content
        and content.get("schema") == SCHEMA
        and content.get("unit") == entry["unit"]
        and content.get("role") == entry["role"]
        and content.get("invocation") == invocation
        and isinstance(content.get("stages"), list)
        and isinstance(content.get("ranks"), list)
        and content.get("proved_at")
    )


def make(entry: Mapping[str, Any], result: Mapping[str, Any]) -> dict[str, Any]:
    """The proof that a ready result amounts to. ``proved_at`` is when the process was last looked at, UTC in ISO 8601.

    ``load`` is what explains the start: later the page cache is another one, and would explain nothing. ``ranks`` are the PIDs of the
    schedulers, ``seconds`` runs from the start of the main process to readiness.
    """
    signals = result["signals"]
    return {
        "schema": SCHEMA,
        "instance": entry["instance"],
        "unit": entry["unit"],
        "role": entry["role"],
        "invocation": result["invocation"],
        "render": (entry.get("render") or {}).get("digest"),
        "proved_at": signals["process"]["when"],
        "seconds": result["seconds"],
        "restarts": result["restarts"],
        "ranks": signals["process"]["details"].get("ranks", []),
        "stages": result["stages"],
        "resolved": result["resolved"],
        "load": signals.get("load", {}).get("details", {}),
        "memory": signals.get("memory", {}).get("details", {}),
        "signals": {name: {key: signal[key] for key in ("state", "observed", "when")} for name, signal in signals.items()},
    }
