# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host this code runs on, as one object. Everything that judges takes it as an argument, so tests can hand in another."""

from __future__ import annotations

import fcntl
import os
import select
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any, Protocol

from . import http, journal, procfs, systemd
from .journal import Follower, Record

#: Locks that keep generating probes of one server apart, also those of other processes.
LOCKS = "/run/plumbline"


class Waitable(Protocol):
    """Something that becomes readable when there is news; -1 where it cannot be waited on."""

    def fileno(self) -> int:
        """The descriptor."""


class LocalHost:
    """Facts, requests and time of this host."""

    def unit(self, name: str) -> systemd.UnitState:
        """The unit's state. :raises SystemdError:"""
        return systemd.show(name)

    def journal(self, invocation: str, cursor: str = "") -> Iterator[Record]:
        """The invocation's records after the cursor. :raises JournalError:"""
        return journal.read(invocation, cursor)

    def follow(self, invocation: str, cursor: str = "") -> Follower:
        """Follow the invocation's records. :raises JournalError:"""
        return journal.Follower(invocation, cursor)

    def previous_invocation(self, unit: str, current: str) -> str:
        """The invocation before ``current``, or nothing. :raises JournalError:"""
        return journal.previous_invocation(unit, current)

    def cgroup_pids(self, control_group: str) -> set[int]:
        """The PIDs of a control group and those below it."""
        return procfs.cgroup_pids(control_group)

    def cgroup_of(self, pid: int) -> str:
        """The control group of a process."""
        return procfs.cgroup_of(pid)

    def command_of(self, pid: int) -> str:
        """The short name of a process."""
        return procfs.command_of(pid)

    def environment_of(self, pid: int) -> dict[str, str]:
        """The environment of a process. :raises OSError:"""
        return procfs.environment_of(pid)

    def listeners(self, port: int) -> list[procfs.Listener]:
        """The sockets that listen on a TCP port. :raises OSError:"""
        return procfs.listeners(port)

    def socket_owners(self, inodes: Sequence[int], pids: set[int] | None = None) -> dict[int, set[int]]:
        """Which of ``pids`` (None: of all processes) hold these sockets."""
        return procfs.socket_owners(inodes, pids)

    def watch_exit(self, pid: int) -> procfs.ExitWatch:
        """Notice the end of a process."""
        return procfs.ExitWatch(pid)

    def request(self, url: str, **options: Any) -> http.Response:
        """One HTTP request, see host/http.py. :raises HttpError: :raises CredentialError:"""
        return http.request(url, **options)

    @contextmanager
    def probing(self, unit: str) -> Iterator[bool]:
        """Hold the one generating probe that may be in flight for ``unit``; yields False where another process holds it."""
        try:
            os.makedirs(LOCKS, mode=0o700, exist_ok=True)
            lock = os.open(f"{LOCKS}/probe-{unit}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            # Not root: nothing shared to lock. Within this process the caller sends one probe at a time anyway.
            yield True
            return
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                free = True
            except OSError:
                free = False
            yield free
        finally:
            os.close(lock)

    def wait(self, sources: Sequence[Waitable], seconds: float) -> bool:
        """Sleep until one of the sources has news, at most ``seconds``; True where one has."""
        descriptors = [source.fileno() for source in sources if source.fileno() >= 0]
        if not descriptors:
            time.sleep(seconds)
            return False
        return bool(select.select(descriptors, [], [], seconds)[0])

    def monotonic(self) -> float:
        """Seconds on the clock that systemd's and the journal's monotonic times use."""
        return time.monotonic()

    def utc(self) -> str:
        """The time of day, UTC, as ISO 8601."""
        return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
