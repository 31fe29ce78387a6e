# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel says of the machine: NUMA nodes, where a PCI device sits, how a file system is mounted, own addresses."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

SYS = "/sys"


@dataclass(frozen=True)
class NumaNode:
    """One NUMA node: memory in bytes (0: a node of processors or devices only) and its processors (``0-31``; may be empty)."""

    number: int
    memory: int
    processors: str


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read().strip()


def numa_nodes(sys: str = SYS) -> dict[int, NumaNode]:
    """The NUMA nodes that are online.

    :raises OSError: where the kernel shows none at all (built without NUMA).
    """
    nodes = {}
    for number in parse_ranges(_text(f"{sys}/devices/system/node/online")):
        directory = f"{sys}/devices/system/node/node{number}"
        rows = [row.split() for row in _text(f"{directory}/meminfo").splitlines()]
        total = next((int(row[3]) * 1024 for row in rows if len(row) > 3 and row[2] == "MemTotal:"), 0)
        nodes[number] = NumaNode(number, total, _text(f"{directory}/cpulist"))
    return nodes


def parse_ranges(text: str) -> list[int]:
    """A kernel list such as ``0-3,8`` as numbers; empty text is the empty list.

    :raises ValueError: for anything else.
    """
    numbers: list[int] = []
    for part in text.split(",") if text.strip() else ():
        first, _dash, last = part.strip().partition("-")
        numbers.extend(range(int(first), int(last or first) + 1))
    return numbers


def pci_numa_node(bus_id: str, sys: str = SYS) -> int | None:
    """NUMA node of a PCI device by its bus id (``00000000:17:00.0`` or ``0000:17:00.0``).

    None where the kernel does not know it (-1, as in virtual machines and on machines with one node) or the device is unseen.
    """
    domain, _colon, rest = bus_id.strip().lower().partition(":")
    try:
        number = int(_text(f"{sys}/bus/pci/devices/{int(domain, 16):04x}:{rest}/numa_node"))
    except (OSError, ValueError):
        return None
    return None if number < 0 else number


def numa_of_pci(address: str, sys: str = SYS) -> tuple[int | None, str]:
    """NUMA node of a PCI device and the processors of that node (``0-31``); (None, "") where the kernel knows no node."""
    node = pci_numa_node(address, sys)
    if node is None:
        return None, ""
    try:
        return node, _text(f"{sys}/devices/system/node/node{node}/cpulist")
    except OSError:
        return node, ""


def may_execute(path: str) -> bool:
    """Whether programs may run from the file system of ``path`` (it is not mounted ``noexec``).

    :raises OSError: where the path does not exist.
    """
    return not os.statvfs(path).f_flag & os.ST_NOEXEC


def is_own_address(address: str) -> bool:
    """Whether an address, or one a host name resolves to, belongs to this machine: a socket can be bound to it.

    :raises OSError: where a name does not resolve.
    """
    for family, kind, protocol, _name, target in socket.getaddrinfo(address, 0, type=socket.SOCK_DGRAM):
        try:
            with socket.socket(family, kind, protocol) as probe:
                probe.bind(target)
                return True
        except OSError:
            continue
    return False
