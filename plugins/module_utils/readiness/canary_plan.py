# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a canary will send: which prefill with which decode, then through which routers, and with how much time. Pure.

Refusing comes first: a completion that fails through a router counts against the breakers of its workers, and half a pair that
is asked alone keeps a request that nobody fetches.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..signals.base import argument, is_follower
from .instance_entry import problems as holes

#: The router's own default (--cb-timeout-duration-secs).
BREAKER_SECONDS = 60.0
#: The longest that one completion may take without an option of its own.
TIMEOUT_SECONDS = 45.0
#: Words by which a prompt is longer than a page.
PAGE_EXTRA = 8
#: Rooms are numbers of 63 bits: the engine keeps them as signed 64-bit integers.
ROOM_BITS = 63

_WORDS = ["plumb", "line", "river", "stone", "copper", "window", "morning", "ladder", "harvest", "signal", "copper", "valley", "engine", "meadow", "lantern"]


@dataclass(frozen=True)
class Options:
    """How to ask.

    ``words`` makes a prompt of at least as many tokens; ``timeout`` is in seconds, None for what ``default_timeout`` says;
    ``bytes_per_token`` is the KV cache that a prefill reports for one prompt token, None to ask the prefill for a lower bound.
    """

    words: int = 200
    max_tokens: int = 8
    timeout: float | None = None
    bytes_per_token: float | None = None
    direct: bool = True
    through_routers: bool = True


@dataclass(frozen=True)
class Group:
    """The servers of one PD group that can be asked. Ranks above 0 of a server over several nodes are left out."""

    name: str
    prefills: tuple[Mapping[str, Any], ...] = ()
    decodes: tuple[Mapping[str, Any], ...] = ()
    routers: tuple[Mapping[str, Any], ...] = ()

    @property
    def servers(self) -> tuple[Mapping[str, Any], ...]:
        """Prefills, then decodes."""
        return self.prefills + self.decodes

    @classmethod
    def of(cls, instances: Sequence[Mapping[str, Any]]) -> Group:
        """The group of these entries; ``refuse`` says whether they make one."""
        asked = [entry for entry in instances if not is_follower(entry)]
        roles = {role: tuple(entry for entry in asked if entry["role"] == role) for role in ("prefill", "decode", "router")}
        names = list(dict.fromkeys(str(entry.get("group") or "") for entry in instances))
        return cls(names[0] if names else "", roles["prefill"], roles["decode"], roles["router"])


def name_of(entry: Mapping[str, Any]) -> str:
    """``instance@host``: instance names may repeat between hosts."""
    return f"{entry['instance']}@{entry['host']}" if entry.get("host") else str(entry["instance"])


def refuse(instances: Sequence[Mapping[str, Any]], options: Options) -> list[str]:
    """Why this canary must not be sent, before anything is asked; empty where it may be."""
    lines = [line for entry in instances for line in holes(entry)]
    lines += _bad_options(options)
    if lines:
        return lines
    names = list(dict.fromkeys(str(entry.get("group") or "") for entry in instances))
    if len(names) > 1:
        return [f"instances are of {len(names)} PD groups ({', '.join(map(repr, names))}), expected those of one: give each group a task of its own"]
    group = Group.of(instances)
    for role, found in (("prefill", group.prefills), ("decode", group.decodes)):
        if not found:
            lines.append(f"instances hold no {role} of PD group {group.name!r}, expected one or more: give all entries of the group")
    if options.through_routers and not group.routers:
        lines.append(f"instances hold no router of PD group {group.name!r}, expected one or more: give all entries of the group, or through_routers: false")
    lines += [f"{name_of(entry)}: served_name is missing" for entry in (*group.servers, *group.routers) if not entry.get("served_name")]
    for router in group.routers if options.through_routers else ():
        window = breaker_window(router)
        if options.timeout is not None and options.timeout >= window:
            lines.append(f"timeout is {options.timeout:g} s, expected less than the breaker window of {name_of(router)}, {window:g} s")
    return lines


def _bad_options(options: Options) -> list[str]:
    lines = []
    if options.max_tokens < 2:
        lines.append(f"max_tokens is {options.max_tokens}, expected 2 or more: the first token comes from the prefill")
    if options.words < 1:
        lines.append(f"words is {options.words}, expected 1 or more")
    if options.timeout is not None and options.timeout <= 0:
        lines.append(f"timeout is {options.timeout:g}, expected seconds above 0")
    if options.bytes_per_token is not None and options.bytes_per_token <= 0:
        lines.append(f"expected_bytes_per_token is {options.bytes_per_token:g}, expected bytes above 0")
    if not options.direct and not options.through_routers:
        lines.append("direct and through_routers are both false, expected one of them to be true: nothing would be sent")
    return lines


def breaker_window(router: Mapping[str, Any]) -> float:
    """Seconds for which the router's breaker stays open after a worker failed too often."""
    return float(argument(router, "--cb-timeout-duration-secs") or BREAKER_SECONDS)


def default_timeout(routers: Sequence[Mapping[str, Any]]) -> float:
    """Seconds for one completion: well below every breaker window, so that a retry of a router's own is not still running when the
    breaker closes again, and never more than 45."""
    return min([TIMEOUT_SECONDS, *(0.8 * breaker_window(router) for router in routers)])


def pairs(group: Group) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Prefill and decode of each crossing: every one of them at least once, in as few crossings as that takes."""
    for number in range(max(len(group.prefills), len(group.decodes))):
        yield group.prefills[number % len(group.prefills)], group.decodes[number % len(group.decodes)]


def new_room() -> int:
    """A room that nobody uses. One used twice ends the schedulers of both sides (sglang#40125), so never a counter or a constant."""
    return secrets.randbits(ROOM_BITS)


def prompt_of(words: int, nonce: str) -> str:
    """A prompt that begins with a nonce, so that no prefix of it is in any cache."""
    return " ".join([nonce, *(_WORDS[number % len(_WORDS)] for number in range(max(1, words) - 1))])


def words_for(words: int, page_size: int) -> int:
    """Words that make a prompt longer than one page of the KV cache: within one page a broken transfer can look like a whole one."""
    return max(words, page_size + PAGE_EXTRA)


def completion_body(entry: Mapping[str, Any], prompt: str, options: Options, *, stream: bool = False) -> dict[str, Any]:
    """The body of a completion that generates exactly ``max_tokens`` tokens, always the same ones."""
    body: dict[str, Any] = {
        "model": entry["served_name"],
        "prompt": prompt,
        "max_tokens": options.max_tokens,
        "temperature": 0,
        "n": 1,
        "stream": stream,
        "ignore_eos": True,
    }
    if stream:
        body["stream_options"] = {"include_usage": True}
    return body


def rendezvous(prefill: Mapping[str, Any], room: int) -> dict[str, Any]:
    """Where the two halves of one request meet; a router adds the same to both."""
    return {"bootstrap_host": prefill["address"], "bootstrap_port": int(prefill["bootstrap_port"]), "bootstrap_room": room}
