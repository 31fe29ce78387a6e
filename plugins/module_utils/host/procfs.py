# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes and listening sockets, from /proc and the cgroup v2 tree."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterable
from dataclasses import dataclass

PROC = "/proc"
CGROUPS = "/sys/fs/cgroup"
_LISTEN = "0A"  # TCP_LISTEN, include/net/tcp_states.h


@dataclass(frozen=True)
class Listener:
    """A listening TCP socket. ``inode`` is the number that /proc/PID/fd shows as ``socket:[inode]``."""

    address: str
    port: int
    inode: int


@dataclass(frozen=True)
class Task:
    """A process. ``name`` is at most 15 characters, ``state`` the letter of proc(5): R, S, D, T (stopped), t (traced), Z (ended) …"""

    pid: int
    name: str
    state: str
    parent: int = 0


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def cgroup_pids(control_group: str, root: str = CGROUPS) -> set[int]:
    """Every PID of a control group and of the groups below it.

    ``control_group`` is systemd's path (``/system.slice/x.service``); empty or gone means no PIDs.
    """
    pids: set[int] = set()
    if not control_group:
        return pids
    for directory, _names, files in os.walk(root + "/" + control_group.strip("/")):
        if "cgroup.procs" in files:
            try:
                pids.update(int(line) for line in _text(f"{directory}/cgroup.procs").split())
            except OSError:  # the group went away, or is threaded
                continue
    return pids


def cgroup_of(pid: int, proc: str = PROC) -> str:
    """The cgroup v2 path of a process (``/system.slice/x.service``); empty where it has ended or there is no v2 entry."""
    try:
        lines = _text(f"{proc}/{pid}/cgroup").splitlines()
    except OSError:
        return ""
    return next((line[3:] for line in lines if line.startswith("0::")), "")


def command_of(pid: int, proc: str = PROC) -> str:
    """The short name of a process (15 characters, never its arguments); empty where it has ended."""
    try:
        return _text(f"{proc}/{pid}/comm").strip()
    except OSError:
        return ""


def tasks(pids: Iterable[int], proc: str = PROC) -> list[Task]:
    """Name and state of these processes, in order of PID; those that have ended meanwhile are left out."""
    found = []
    for pid in sorted(pids):
        try:
            head, _bracket, rest = _text(f"{proc}/{pid}/stat").rpartition(")")
        except OSError:
            continue
        fields = rest.split()
        found.append(Task(pid, head.partition("(")[2], fields[0], int(fields[1])) if len(fields) > 1 else Task(pid, head.partition("(")[2], "?"))
    return found


def environment_of(pid: int, proc: str = PROC) -> dict[str, str]:
    """The environment a process was started with.

    A process that sets its title overwrites it (``SPT_NOENV=1`` in the unit keeps it), so entries that are no
    assignments are left out, and an empty result means "could not be read".

    :raises OSError: where the process has ended or belongs to another user.
    """
    with open(f"{proc}/{pid}/environ", "rb") as file:
        entries = file.read().split(b"\0")
    pairs = (entry.decode("utf-8", "replace").partition("=")[::2] for entry in entries if b"=" in entry)
    return dict(pairs)


def _address(text: str) -> str:
    """The address in /proc/net/tcp{,6}: words of four bytes in the machine's (little-endian) order."""
    raw = bytes.fromhex(text)
    words = b"".join(raw[i : i + 4][::-1] for i in range(0, len(raw), 4))
    address = ipaddress.ip_address(words)
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def listeners(port: int, proc: str = PROC) -> list[Listener]:
    """The sockets that listen on TCP ``port`` in this network namespace, IPv4 and IPv6.

    :raises OSError: where neither table can be read.
    """
    found, errors = [], []
    for table in ("tcp", "tcp6"):
        try:
            rows = _text(f"{proc}/net/{table}").splitlines()[1:]
        except OSError as error:
            errors.append(error)
            continue
        for row in rows:
            fields = row.split()
            if len(fields) < 10 or fields[3] != _LISTEN:
                continue
            address, _colon, number = fields[1].rpartition(":")
            if int(number, 16) == port:
                found.append(Listener(_address(address), port, int(fields[9])))
    if len(errors) == 2:
        raise errors[0]
    return found


def socket_owners(inodes: Iterable[int], pids: Iterable[int] | None = None, proc: str = PROC) -> dict[int, set[int]]:
    """Which processes hold these sockets: inode → PIDs. ``pids`` narrows the search; None looks at every process.

    Processes whose descriptors may not be read are passed over, so an inode without an owner means "not visible".
    """
    wanted = {f"socket:[{inode}]": inode for inode in inodes}
    owners: dict[int, set[int]] = {inode: set() for inode in wanted.values()}
    if not wanted:
        return owners
    candidates = [int(name) for name in os.listdir(proc) if name.isdigit()] if pids is None else list(pids)
    for pid in candidates:
        try:
            descriptors = os.listdir(f"{proc}/{pid}/fd")
        except OSError:
            continue
        for descriptor in descriptors:
            try:
                inode = wanted.get(os.readlink(f"{proc}/{pid}/fd/{descriptor}"))
            except OSError:
                continue
            if inode is not None:
                owners[inode].add(pid)
    return owners
