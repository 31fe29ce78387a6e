# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The http signal: the server says it is ready, and one generation through it succeeded, on a socket of this unit.

``/ready`` is a flag (srt/entrypoints/http_server.py:714); whether the scheduler computes is asked by generation.py. What else
may be asked of a server that is ready is asked meanwhile.

Alone it is fooled by an orphan on the port (hence the owner is checked before and after) and says nothing of the transfer.
"""

from __future__ import annotations

from typing import Callable

from ..host.http import REFUSED, TIMEOUT, HttpError
from . import generation
from .base import FAILED, PASSED, PENDING, UNKNOWN, Context, Say, Signal
from .ownership import FOREIGN, NOBODY, OWN, owner

NAME = "http"
PROVES = "the server takes requests and its scheduler generated a token, on a socket of this unit"


def _nothing() -> None:
    """What is done meanwhile where there is nothing to do."""


def observe(context: Context, meanwhile: Callable[[], None] = _nothing) -> Signal:
    """Ask ``/ready``, then at most one generation. ``meanwhile`` is called once, where the server is ready to be asked more."""

    def say(state: str, observed: str, then: str = "") -> Signal:
        return context.signal(
            NAME,
            state,
            observed,
            f"{context.url}/ready answers 200 and one generation succeeds",
            PROVES,
            then,
            ready=context.memory.get("ready_status"),
            generation=context.memory.get("generation"),
            busy=bool(context.memory.get("busy")),
        )

    before = _holder(context, say)
    if before:
        return before
    try:
        ready = context.host.request(f"{context.url}/ready")
    except HttpError as error:
        state = PENDING if error.kind in (REFUSED, TIMEOUT) else UNKNOWN
        return say(state, f"/ready: {error}", f"curl -m 5 {context.url}/ready")
    context.memory["ready_status"] = ready.status
    if ready.refused_key:
        return say(UNKNOWN, f"/ready answered {ready.status}: alive, but the key is wrong or missing", generation.wrong_key(context))
    # Releases before /ready existed answer 404; then /health decides alone.
    if ready.status not in (200, 404):
        return say(PENDING, f"/ready answered {ready.status}")
    if ready.status == 404 and not context.log.ready:
        return say(PENDING, "/ready is not supported by this release, and the ready line has not come")
    failure = generation.observe(context, say, meanwhile)
    if failure:
        return failure
    after = _holder(context, say)
    if after:
        return after
    return say(PASSED, f"/ready {ready.status}, {context.memory['generation']['text']}")


def _holder(context: Context, say: Say) -> Signal | None:
    """None where this unit holds the port; else the signal to give."""
    holder = owner(context, int(context.entry["port"]), str(context.entry["address"]))
    if holder.state == OWN:
        return None
    if holder.state == NOBODY:
        return say(PENDING, "connection refused")
    if holder.state == FOREIGN:
        return say(FAILED, f"not asked: {holder.text}", f"ss -ltnp 'sport = :{context.entry['port']}'")
    return say(UNKNOWN, f"not asked: {holder.text}", "run this as root")
