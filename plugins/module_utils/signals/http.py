# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The http signal: the server says it is ready, and one generation through it succeeded, on a socket of this unit.

``/ready`` is a flag; ``/health`` sends one token through the scheduler (srt/entrypoints/http_server.py:714-799). A
generation is a real request: one that times out goes on in the scheduler, and piled-up ones can crash a prefill. So one
is sent when ``/ready`` or the ready line allows it, none while another is in flight, and none within 30 s after one that
was not answered. A generation that succeeded is remembered for the invocation.

Alone it is fooled by an orphan on the port (hence the owner is checked before and after) and says nothing of the transfer.
"""

from __future__ import annotations

from ..host.credentials import CredentialError
from ..host.http import REFUSED, TIMEOUT, HttpError, Response
from .base import FAILED, PASSED, PENDING, UNKNOWN, Context, Say, Signal
from .ownership import FOREIGN, NOBODY, OWN, owner

NAME = "http"
PROVES = "the server takes requests and its scheduler generated a token, on a socket of this unit"

#: The server itself gives up after SGLANG_HEALTH_CHECK_TIMEOUT, 20 s.
GENERATION_SECONDS = 25.0
#: Seconds without a generating probe after one that got no answer, and after one that was turned away at once.
BACK_OFF_SECONDS = 30.0
SHORT_BACK_OFF_SECONDS = 5.0

_TRUE = ("1", "true", "yes", "y")
_FALSE = ("0", "false", "no", "n")


def observe(context: Context) -> Signal:
    """Ask ``/ready``, then at most one generation."""

    def say(state: str, observed: str, then: str = "") -> Signal:
        return context.signal(
            NAME,
            state,
            observed,
            f"{context.url}/ready answers 200 and one /health generation succeeds",
            PROVES,
            then,
            ready=context.memory.get("ready_status"),
            generation=context.memory.get("generation"),
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
        return say(UNKNOWN, f"/ready answered {ready.status}: alive, but the key is wrong or missing", _key(context))
    # Releases before /ready existed answer 404; then /health decides alone.
    if ready.status not in (200, 404):
        return say(PENDING, f"/ready answered {ready.status}")
    if ready.status == 404 and not context.log.ready:
        return say(PENDING, "/ready is not supported by this release, and the ready line has not come")
    failure = _generation(context, say)
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


def _probe(context: Context) -> str | None:
    """The path that generates in this run; None where the unit's environment turns generation off on both."""
    environment = context.entry.get("environment") or {}

    def setting(name: str) -> str:
        return str(environment.get(name, "")).lower()

    if setting("SGLANG_DIAG_BYPASS_HEALTH_GENERATE") in _TRUE:
        return None
    # srt/entrypoints/http_server.py:744: only /health becomes passive.
    return "/health_generate" if setting("SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION") in _FALSE else "/health"


def _generation(context: Context, say: Say) -> Signal | None:
    """Send the generating probe where none has succeeded yet and none is barred; None where one has succeeded."""
    memory, host = context.memory, context.host
    if memory.get("generation", {}).get("passed"):
        return None
    path = _probe(context)
    if path is None:
        return say(
            UNKNOWN,
            "the unit's environment lets /health answer without generating (SGLANG_DIAG_BYPASS_HEALTH_GENERATE)",
            "take SGLANG_DIAG_BYPASS_HEALTH_GENERATE out of the instance's env",
        )
    wait = memory.get("probe_after", 0.0) - host.monotonic()
    if wait > 0:
        return say(PENDING, f"{memory['generation']['text']}; the next generation in {wait:.0f} s")
    with host.probing(context.unit.unit) as free:
        if not free:
            return say(PENDING, "another check has a generation in flight on this server")
        begun = host.monotonic()
        try:
            answer: Response | None = host.request(f"{context.url}{path}", total=GENERATION_SECONDS)
            text = f"{path} {answer.status} in {answer.seconds:.1f} s" if answer else ""
        except (HttpError, CredentialError) as error:
            answer, text = None, f"{path}: {error}"
    passed = answer is not None and answer.status == 200
    memory["generation"] = {"passed": passed, "text": text, "at": host.utc()}
    if passed:
        return None
    # An answer at once is a status, not a generation that is still running in the scheduler.
    quick = answer is not None and host.monotonic() - begun < SHORT_BACK_OFF_SECONDS
    memory["probe_after"] = host.monotonic() + (SHORT_BACK_OFF_SECONDS if quick else BACK_OFF_SECONDS)
    if answer is not None and answer.refused_key:
        return say(UNKNOWN, f"{path} answered {answer.status}: alive, but the key is wrong or missing", _key(context))
    return say(PENDING, text, f"curl -m 25 {context.url}{path}")


def _key(context: Context) -> str:
    credential = context.credential
    if credential is None:
        return "the plan has no key for this instance: set sglang_api_key, or take the server's own key away"
    return f"compare the key in {credential.path} with the one the server was started with, then restart the unit"
