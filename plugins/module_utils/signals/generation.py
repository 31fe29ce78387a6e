# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One token through the scheduler of a server that says it is ready, without harm and once.

A server that has just started is idle, so it is asked for a token of our own, as its warm-up does it: with the stand-in for a
peer that the engine brings (FAKE_BOOTSTRAP_HOST, srt/disaggregation/utils.py:53), so that nothing is transferred. That is the
reply to this very request, and comes in some hundredths of a second.

A server that was proved ready before may be busy, and our request would wait behind all others. It is asked for ``/health``,
for which any token of any request counts (srt/entrypoints/http_server.py:756-785), after a second at the earliest. The same
where our own request got no token.

Such a request is a real one: one that times out may go on in the scheduler, and piled-up ones can crash a prefill. So none is
sent while another is in flight, and none within 30 s after one that was not answered. One that succeeded is remembered for a
minute: a server that waits long for its peer may have got stuck since.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Callable

from ..host.credentials import CredentialError
from ..host.http import HttpError, Response
from .base import PENDING, UNKNOWN, Context, Say, Signal

#: The server itself gives up after SGLANG_HEALTH_CHECK_TIMEOUT, 20 s.
SECONDS = 25.0
#: Seconds without a generating probe after one that got no answer, and after one that was turned away at once.
BACK_OFF_SECONDS = 30.0
SHORT_BACK_OFF_SECONDS = 5.0

#: For how long a generation that succeeded speaks for the scheduler.
FRESH_SECONDS = 60.0

_STAND_IN_PEER = "2.2.2.2"
_TRUE = ("1", "true", "yes", "y")
_FALSE = ("0", "false", "no", "n")


@dataclass(frozen=True)
class Probe:
    """A request that generates. ``own`` is true where the reply must be its own token."""

    path: str
    own: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


def observe(context: Context, say: Say, meanwhile: Callable[[], None]) -> Signal | None:
    """None once a generation has succeeded in this run; else the signal to give. Calls ``meanwhile`` once, while it waits for a token."""
    memory, host = context.memory, context.host
    known = memory.get("generation", {})
    passed = bool(known.get("passed")) and host.monotonic() - known["monotonic"] < FRESH_SECONDS
    probe = _probe(context, known)
    wait = memory.get("probe_after", 0.0) - host.monotonic()
    if passed or probe is None or wait > 0:
        meanwhile()
    if passed:
        return None
    if probe is None:
        return say(
            UNKNOWN,
            "the unit's environment lets /health answer without generating (SGLANG_DIAG_BYPASS_HEALTH_GENERATE)",
            "take SGLANG_DIAG_BYPASS_HEALTH_GENERATE out of the instance's env",
        )
    if wait > 0:
        return say(PENDING, f"{known['text']}; the next generation in {wait:.0f} s")
    with host.probing(context.unit.unit) as free:
        memory["busy"] = not free
        if not free:
            meanwhile()
            return say(PENDING, "another check has a generation in flight on this server")
        with ThreadPoolExecutor(max_workers=1) as pool:
            asked = pool.submit(_ask, context, probe)
            meanwhile()
            answer, text = asked.result()
    passed = answer is not None and answer.status == 200 and (not probe.own or _token(answer))
    memory["generation"] = {"passed": passed, "text": text, "at": host.utc(), "monotonic": host.monotonic(), "own": probe.own}
    if passed:
        return None
    # An answer at once is a status, not a generation that is still running in the scheduler.
    quick = answer is not None and answer.seconds < SHORT_BACK_OFF_SECONDS
    turned_away = quick and probe.own and answer is not None and not answer.refused_key
    memory["probe_after"] = host.monotonic() + (0.0 if turned_away else SHORT_BACK_OFF_SECONDS if quick else BACK_OFF_SECONDS)
    if answer is not None and answer.refused_key:
        return say(UNKNOWN, f"{probe.path} answered {answer.status}: alive, but the key is wrong or missing", wrong_key(context))
    return say(PENDING, text, f"curl -m 25 {context.url}/health")


def wrong_key(context: Context) -> str:
    """What to do where a server does not accept the plan's key."""
    credential = context.credential
    if credential is None:
        return "the plan has no key for this instance: set sglang_api_key, or take the server's own key away"
    return f"compare the key in {credential.path} with the one the server was started with, then restart the unit"


def _probe(context: Context, known: Mapping[str, Any]) -> Probe | None:
    """The request to send; None where ``/health`` would have to do and the unit's environment turns generation off on both its paths."""
    if context.proof is None and not known:
        return _own(context)
    environment = context.entry.get("environment") or {}

    def setting(name: str) -> str:
        return str(environment.get(name, "")).lower()

    if setting("SGLANG_DIAG_BYPASS_HEALTH_GENERATE") in _TRUE:
        return None
    # srt/entrypoints/http_server.py:744: only /health becomes passive.
    return Probe("/health_generate" if setting("SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION") in _FALSE else "/health")


def _own(context: Context) -> Probe:
    payload: dict[str, Any] = {"input_ids": [10, 11, 12, 13], "sampling_params": {"temperature": 0.0, "max_new_tokens": 1, "ignore_eos": True}}
    if context.role != "regular":
        # A room that was used before would crash the scheduler.
        payload.update(bootstrap_host=_STAND_IN_PEER, bootstrap_room=secrets.randbits(63))
    return Probe("/generate", own=True, options={"method": "POST", "payload": payload, "credential": context.credential})


def _ask(context: Context, probe: Probe) -> tuple[Response | None, str]:
    """The answer, None where there was none, and what to say of it."""
    try:
        answer: Response = context.host.request(f"{context.url}{probe.path}", total=SECONDS, **probe.options)
    except (HttpError, CredentialError) as error:
        return None, f"{probe.path}: {error}"
    token = "" if not probe.own else ", a token" if answer.status == 200 and _token(answer) else ", no token"
    return answer, f"{probe.path} {answer.status}{token} in {answer.seconds:.1f} s"


def _token(answer: Response) -> bool:
    """Whether the reply holds at least one token that was generated for it."""
    try:
        return int(answer.json()["meta_info"]["completion_tokens"]) >= 1
    except (HttpError, LookupError, TypeError, ValueError):
        return False
