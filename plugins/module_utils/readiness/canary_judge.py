# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a completion really went from a prefill to a decode. Pure.

A reply alone proves nothing: the evidence is the growth of the prefill's counters, and the decode's own tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .canary_counters import Growth


@dataclass
class Crossing:
    """One completion. ``via`` is ``direct`` or the router; bytes and seconds; ``problems`` is empty where the transfer is proved."""

    via: str
    stream: bool
    prefill: str
    decode: str
    request_id: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    bytes_moved: int = 0
    bytes_expected: int | None = None
    seconds: float = 0.0
    reply: str = ""
    live_traffic: bool = False
    problems: list[str] = field(default_factory=list)

    @property
    def label(self) -> str:
        """How messages name it."""
        if self.via == "direct":
            return f"{self.prefill} to {self.decode}, asked directly"
        return f"through {self.via}{', streaming' if self.stream else ''}"


@dataclass(frozen=True)
class Evidence:
    """What the servers counted while one completion ran. ``tokens`` are those that the decode gave, or at most could give."""

    prefills: Mapping[str, Growth]
    decodes: Mapping[str, Growth]
    tokens: int

    @property
    def live(self) -> bool:
        """Whether somebody else used the servers too: more transfers or more tokens than ours."""
        transfers = sum(grown.transfers for grown in self.prefills.values())
        tokens = sum(grown.generated_tokens for grown in self.decodes.values())
        return transfers > 1 or tokens > self.tokens

    def source(self) -> str:
        """The prefill from which most left; empty where nothing left any."""
        moved = {name: grown.kv_bytes for name, grown in self.prefills.items() if grown.kv_bytes > 0}
        return max(moved, key=lambda name: moved[name]) if moved else ""

    def sink(self) -> str:
        """The decode that generated most; empty where none did."""
        tokens = {name: grown.generated_tokens for name, grown in self.decodes.items() if grown.generated_tokens > 0}
        return max(tokens, key=lambda name: tokens[name]) if tokens else ""


def moved_enough(moved: float, expected: int | None) -> bool:
    """Whether so many bytes are a transfer: at least the prompt's cache where its weight is known, else any."""
    return moved > 0 if expected is None else moved >= expected


def failures(evidence: Evidence) -> list[str]:
    """Failure counters that grew and servers that were restarted. Under live traffic a failure may be somebody else's: then it is
    not blamed on this completion, and the result is inconclusive."""
    lines = []
    for name, grown in {**evidence.prefills, **evidence.decodes}.items():
        if grown.restarted:
            lines.append(f"{name}: its counters went back, so it was restarted during the canary")
        for what, count in (("bootstrap", grown.bootstrap_failures), ("transfer", grown.transfer_failures)):
            if count > 0 and evidence.live:
                lines.append(f"inconclusive: {name} counted {count:.0f} more {what} failures while others used the group too; they may be theirs")
            elif count > 0:
                lines.append(f"{name}: {count:.0f} more {what} failures, expected none")
    return lines


def judge(crossing: Crossing, evidence: Evidence) -> list[str]:
    """What contradicts a transfer for a completion that came back; empty where it is proved."""
    lines = failures(evidence)
    if not moved_enough(crossing.bytes_moved, crossing.bytes_expected):
        wanted = "more than 0" if crossing.bytes_expected is None else f"at least {crossing.bytes_expected}"
        lines.append(
            f"{crossing.bytes_moved} bytes of KV cache left {crossing.prefill or ', '.join(evidence.prefills)} "
            f"for {crossing.prompt_tokens} prompt tokens, expected {wanted}"
        )
    if crossing.completion_tokens < 2:
        lines.append(f"the decode gave {crossing.completion_tokens} tokens, expected 2 or more: it never ran a step of its own")
    return lines
