# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bootstrap signal: every rank of a prefill has registered, so that a decode can be paired with it.

A prefill asks its own registry; a decode asks the registry of every prefill of its group, since only that shows that the
address is reachable from there, and compares the fields that the engine compares at the first request
(srt/disaggregation/common/conn.py:1318, 3201). ``/health`` on that port is always OK and is not asked.

Alone it is fooled by another prefill's registry on the same port.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..host.http import HttpError
from .base import FAILED, PASSED, PENDING, UNKNOWN, Context, Signal
from .ownership import FOREIGN, NOBODY, OWN, owner

NAME = "bootstrap"
QUERY = "/route?prefill_dp_rank=-1&prefill_cp_rank=-1&target_tp_rank=-1&target_pp_rank=-1"

#: Worst first: what the signal of a decode says of several prefills.
_ORDER = (FAILED, UNKNOWN, PENDING, PASSED)


def observe(context: Context) -> Signal:
    """Own registry of a prefill, every prefill's registry from a decode."""
    return _of_prefill(context) if context.role == "prefill" else _from_decode(context)


def _of_prefill(context: Context) -> Signal:
    entry = context.entry
    port = int(entry["bootstrap_port"])

    def say(state: str, observed: str, then: str = "", fields: Mapping[str, Any] | None = None) -> Signal:
        return context.signal(
            NAME,
            state,
            observed,
            f"every rank registered at {entry['address']}:{port}, held by this unit",
            "every rank of this prefill can be paired with",
            then,
            fields=fields or {},
        )

    holder = owner(context, port, str(entry["address"]))
    look = f"ss -ltnp 'sport = :{port}'"
    if holder.state == NOBODY:
        return say(PENDING, f"nothing listens on the bootstrap port {port}", look)
    if holder.state != OWN:
        return say(FAILED if holder.state == FOREIGN else UNKNOWN, holder.text, look)
    registry = ask(context, str(entry["address"]), port)
    if registry.state == PASSED:
        differences = own_differences(registry.fields, context.expect, int(entry["port"]))
        if differences:
            return say(FAILED, "; ".join(differences), look, registry.fields)
    return say(registry.state, registry.text, registry.next, registry.fields)


def _from_decode(context: Context) -> Signal:
    peers = (context.entry.get("peers") or {}).get("prefill") or []
    mine = context.memory.get("server_info") or {}
    results = {f"{peer['instance']}@{peer['host']}": _peer(context, peer, mine) for peer in peers}
    worst = next((state for state in _ORDER if any(result.state == state for result in results.values())), UNKNOWN)
    waiting = {name: result for name, result in results.items() if result.state != PASSED}
    text = "; ".join(f"{name}: {result.text}" for name, result in waiting.items())
    return context.signal(
        NAME,
        worst,
        text or (f"{len(peers)} of {len(peers)} prefills registered and compatible" if peers else "the plan names no prefill"),
        f"every rank of {len(peers)} prefills registered, seen from this host, with this decode's fields",
        "this decode reaches every prefill's registry, and their caches fit together",
        next((result.next for result in waiting.values() if result.next), ""),
        peers={name: result.as_dict() for name, result in results.items()},
    )


def _peer(context: Context, peer: Mapping[str, Any], mine: Mapping[str, Any]) -> Registry:
    if not peer.get("bootstrap_port"):
        return Registry(FAILED, "the plan gives it no bootstrap port", next="mend the plan", reached=False)
    registry = ask(context, str(peer["address"]), int(peer["bootstrap_port"]))
    differences = pair_differences(registry.fields, mine, int(peer["port"])) if registry.state == PASSED else []
    if differences:
        advice = "give prefill and decode the same page size and KV cache dtype"
        return Registry(FAILED, "; ".join(differences), registry.fields, advice)
    return registry


@dataclass(frozen=True)
class Registry:
    """What one registry answered. ``reached`` is False where nothing answers at all: a prefill that does not run, or a network
    that does not let through; a prefill that loads its model does answer."""

    state: str
    text: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    next: str = ""
    reached: bool = True

    def as_dict(self) -> dict[str, Any]:
        """For a signal's details."""
        return {"state": self.state, "text": self.text, "fields": dict(self.fields), "next": self.next, "reached": self.reached}


def ask(context: Context, address: str, port: int) -> Registry:
    """Ask one registry whether every rank is in it."""
    host = f"[{address}]" if ":" in address else address
    url = f"http://{host}:{port}{QUERY}"
    command = f"curl -m 5 '{url}'"
    try:
        answer = context.host.request(url)
        if answer.status == 503:
            return Registry(PENDING, answer.text() or "not fully registered yet", next=command)
        if answer.status != 200:
            return Registry(UNKNOWN, f"/route answered {answer.status}: {answer.text(80)}", next=command)
        fields = answer.json()
    except HttpError as error:
        advice = f"{command}; look at the prefill, and for a firewall between the hosts"
        return Registry(PENDING, f"{address}:{port}: {error}", next=advice, reached=False)
    if not isinstance(fields, dict):
        return Registry(UNKNOWN, f"/route answered something that is no object: {answer.text(80)}", next=command)
    fields = {name: value for name, value in fields.items() if not name.startswith("target_")}
    text = f"registered: tp {fields.get('attn_tp_size')}, dp {fields.get('dp_size')}, pp {fields.get('pp_size')}"
    return Registry(PASSED, text, fields)


def own_differences(fields: Mapping[str, Any], expect: Mapping[str, Any], port: int) -> list[str]:
    """What shows that the registry is not this prefill's own. Fields that a release does not report are not compared."""
    lines = []
    if fields.get("prefill_http_port") not in (None, port):
        lines.append(f"the registry is that of the prefill on port {fields['prefill_http_port']}, this one has {port}")
    if expect.get("pp_size") is not None and fields.get("pp_size") not in (None, expect["pp_size"]):
        lines.append(f"the registry has pp_size {fields['pp_size']}, planned {expect['pp_size']}")
    return lines


def pair_differences(fields: Mapping[str, Any], mine: Mapping[str, Any], port: int) -> list[str]:
    """What would break the pair at its first request.

    A KV cache dtype is compared where both sides name a concrete one: "auto" is resolved inside the engine.
    """
    lines = []
    if fields.get("prefill_http_port") not in (None, port):
        lines.append(f"the registry is that of a prefill on port {fields['prefill_http_port']}, planned {port}")
    for name in ("page_size", "kv_cache_dtype"):
        theirs, ours = fields.get(name), mine.get(name)
        if theirs is None or ours is None or "auto" in (theirs, ours):
            continue
        if theirs != ours:
            lines.append(f"{name} is {theirs!r} there and {ours!r} here")
    return lines
