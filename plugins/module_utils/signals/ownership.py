# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who listens on a port: this unit, somebody else, nobody, or nobody can say.

An answer from a port is evidence about this run only if the socket belongs to a process in the unit's control group. An
orphan of an earlier run, or another instance, answers every question as well as the real one.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from .base import Context

OWN = "own"
FOREIGN = "foreign"
NOBODY = "nobody"
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Ownership:
    """``state`` is one of the constants above; ``text`` says who, for people; ``pids`` are the owners that could be seen."""

    state: str
    text: str
    pids: tuple[int, ...] = ()


def _serves(listening: str, address: str) -> bool:
    """A socket on ``listening`` takes what is sent to ``address``: the same address, or a wildcard, or a name is asked for."""
    try:
        wanted = ipaddress.ip_address(address)
    except ValueError:
        return True
    have = ipaddress.ip_address(listening)
    return have == wanted or have.is_unspecified or wanted.is_unspecified


def owner(context: Context, port: int, address: str) -> Ownership:
    """Who takes connections to ``address:port`` on this host."""
    try:
        sockets = [item for item in context.host.listeners(port) if _serves(item.address, address)]
    except OSError as error:
        return Ownership(UNKNOWN, f"the socket table cannot be read: {error.strerror}")
    if not sockets:
        return Ownership(NOBODY, f"nothing listens on port {port}")
    inodes = [item.inode for item in sockets]
    own = context.host.cgroup_pids(context.unit.control_group)
    owners = context.host.socket_owners(inodes, own)
    strangers = [inode for inode in inodes if not owners[inode]]
    if not strangers:
        pids = tuple(sorted(set().union(*owners.values())))
        return Ownership(OWN, f"port {port} belongs to PID {', '.join(map(str, pids))} of this unit", pids)
    others = tuple(sorted(set().union(*context.host.socket_owners(strangers).values())))
    if not others:
        return Ownership(UNKNOWN, f"port {port} is open, but its owner is not visible to this user")
    named = [f"PID {pid} ({context.host.command_of(pid) or '?'}) in {context.host.cgroup_of(pid) or '?'}" for pid in others]
    return Ownership(FOREIGN, f"port {port} belongs to another process: {'; '.join(named)}", others)
