# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signals of one invocation → one verdict. Pure.

``READY``         every required signal passed.
``NOT_READY``     nothing failed, and at least one required signal is still to come.
``FAILED``        a signal says that waiting will not help.
``INCONCLUSIVE``  witnesses disagree, or a required one could not be asked. Named, never counted as passed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..signals.base import FAILED as SIGNAL_FAILED
from ..signals.base import PASSED, PENDING, UNKNOWN, Signal

READY = "READY"
NOT_READY = "NOT_READY"
FAILED = "FAILED"
INCONCLUSIVE = "INCONCLUSIVE"
#: Best first.
ORDER = (READY, NOT_READY, INCONCLUSIVE, FAILED)

#: The witnesses that must agree, by role, in the order in which a reason names them.
REQUIRED: Mapping[str, tuple[str, ...]] = {
    "prefill": ("process", "log", "http", "memory", "identity", "bootstrap"),
    "decode": ("process", "log", "http", "memory", "identity", "bootstrap"),
    "regular": ("process", "log", "http", "memory", "identity"),
    "router": ("process", "log", "router"),
    # A rank above 0: its HTTP server answers 200 whatever happens.
    "follower": ("process", "log", "memory"),
}
#: The witness that explains a start. One that it could observe and not explain is no proof; one that it could not observe is not held against it.
EXPLAINS = "load"

#: Two of these that contradict each other for longer than this many seconds are a disagreement, not a start in progress:
#: the ready line is printed about a second around the moment at which /ready turns 200.
DISAGREEMENT_SECONDS = 60.0


@dataclass(frozen=True)
class Verdict:
    """What is held to be true of an invocation, why, and what to do next.

    ``reason`` is one sentence for people, ``causes`` the same in parts (``signal: what was seen``), ``next`` the commands
    and steps that lead further.
    """

    verdict: str
    reason: str
    causes: tuple[str, ...] = ()
    next: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain data for a module's result."""
        return {"verdict": self.verdict, "reason": self.reason, "causes": list(self.causes), "next": list(self.next)}


def decide(signals: Mapping[str, Signal], role: str, held: Mapping[str, float] | None = None) -> Verdict:
    """The verdict for an instance of ``role`` (prefill, decode, regular, router, follower).

    :param signals: by name. A required signal that is missing counts as unknown.
    :param held: for each signal, for how many seconds it has been in its present state.
    """
    required = REQUIRED[role]
    named = [name for name in required if name in signals] + [name for name in signals if name not in required]
    by_state = {
        state: [signals[name] for name in named if signals[name].state == state and (state == SIGNAL_FAILED or name in required)]
        for state in (SIGNAL_FAILED, PENDING, UNKNOWN)
    }
    missing = [name for name in required if name not in signals]
    unknown = _texts(by_state[UNKNOWN]) + [f"{name}: was not observed" for name in missing]

    if by_state[SIGNAL_FAILED]:
        failed = by_state[SIGNAL_FAILED]
        causes = _texts(failed) + _last_words(signals, failed)
        return Verdict(FAILED, "; ".join(signal.observed for signal in failed) + _because(signals, failed), tuple(causes), _next(failed))
    quarrel = disagreement(signals, held or {})
    if quarrel:
        between = [signals[name] for name in quarrel]
        texts = _texts(between)
        return Verdict(INCONCLUSIVE, "the witnesses disagree: " + " — but ".join(texts), tuple(texts + unknown), _next(between))
    if by_state[PENDING]:
        pending = by_state[PENDING]
        return Verdict(NOT_READY, "; ".join(_texts(pending[:2] + by_state[UNKNOWN])), tuple(_texts(pending) + unknown), _next(pending + by_state[UNKNOWN]))
    if unknown:
        return Verdict(INCONCLUSIVE, "could not be observed: " + "; ".join(unknown), tuple(unknown), _next(by_state[UNKNOWN]))
    start = signals.get(EXPLAINS)
    if start is not None and start.details.get("explained") is False:
        return Verdict(INCONCLUSIVE, f"nothing explains this start: {start.observed}", tuple(_texts([start])), _next([start]))
    return Verdict(READY, f"{', '.join(required)} agree", ())


def disagreement(signals: Mapping[str, Signal], held: Mapping[str, float]) -> tuple[str, str] | None:
    """Two witnesses that have contradicted each other for too long, the positive one first.

    The log and the HTTP server speak of the same moment, so one that passed while the other still waits is suspicious.
    """
    for positive, other in (("log", "http"), ("http", "log")):
        yes, no = signals.get(positive), signals.get(other)
        if not yes or not no or yes.state != PASSED or no.state not in (PENDING, UNKNOWN):
            continue
        if min(held.get(positive, 0.0), held.get(other, 0.0)) > DISAGREEMENT_SECONDS:
            return positive, other
    return None


def _texts(signals: list[Signal]) -> list[str]:
    return [f"{signal.name}: {signal.observed}" for signal in signals]


def _next(signals: list[Signal]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(signal.next for signal in signals if signal.next))


def _last_words(signals: Mapping[str, Signal], failed: list[Signal]) -> list[str]:
    """What the run itself said of its trouble, where the log signal did not fail (an end that no row of the table knows)."""
    log = signals.get("log")
    cause = log.details.get("cause") if log and log not in failed else None
    return [f"log: {cause}"] if cause else []


def _because(signals: Mapping[str, Signal], failed: list[Signal]) -> str:
    words = _last_words(signals, failed)
    return f"; its own last words: {words[0][len('log: '):]}" if words else ""


def worst(verdicts: list[str]) -> str:
    """The worst of several verdicts; READY for none."""
    return max(verdicts, key=ORDER.index, default=READY)
