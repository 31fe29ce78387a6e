# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host this code runs on, as one object. Everything that judges takes it as an argument, so tests can hand in another."""

from __future__ import annotations

import fcntl
import os
import select
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any, Protocol

from ..snapshots.weights import Weights
from ..snapshots.weights import read as read_weights
from . import gpus, http, journal, page_cache, procfs, state_files, storage, systemd, watch
from .gpus import GpuReport
from .journal import Follower, Record

#: Locks that keep generating probes of one server apart, also those of other processes.
LOCKS = "/run/plumbline"


class Waitable(Protocol):
    """Something to wait on: readable when there is news, or with urgent data where ``urgent`` is true."""

    urgent: bool

    def fileno(self) -> int:
        """The descriptor; -1 where it cannot be waited on."""


class LocalHost:
    """Facts, requests and time of this host."""

    def unit(self, name: str) -> systemd.UnitState:
        """The unit's state. :raises SystemdError:"""
        return systemd.show(name)

    def journal(self, invocation: str, cursor: str = "") -> Iterator[Record]:
        """The invocation's records after the cursor. :raises JournalError:"""
        return journal.read(invocation, cursor)

    def follow(self, invocation: str, unit: str, cursor: str = "") -> Follower:
        """Follow the invocation's records, and what systemd says of the unit. :raises JournalError:"""
        return journal.Follower(invocation, unit, cursor)

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

    def tasks(self, pids: set[int]) -> list[procfs.Task]:
        """Name and state of processes."""
        return procfs.tasks(pids)

    def watch_exit(self, pid: int) -> watch.ExitWatch:
        """Notice the end of a process."""
        return watch.ExitWatch(pid)

    def watch_cgroup(self, control_group: str) -> watch.CgroupWatch:
        """Notice that no process is left in a control group."""
        return watch.CgroupWatch(control_group)

    def anonymous_bytes(self, pids: Sequence[int]) -> dict[int, int]:
        """PID -> bytes of anonymous memory."""
        return storage.anonymous_bytes(pids)

    def gpus(self) -> GpuReport:
        """The GPUs of this host and who holds their memory."""
        return gpus.read()

    def weights(self, directory: str) -> Weights:
        """What the weights of a model take. :raises WeightsError:"""
        return read_weights(directory)

    def cached_bytes(self, files: Iterable[str]) -> int | None:
        """Bytes of files that are in the page cache; None where this user is not told. :raises OSError:"""
        return sum(page_cache.resident(path) for path in files) if page_cache.trustworthy() else None

    def file_system(self, path: str) -> str:
        """The type of the file system that a path lies on."""
        return storage.file_system(path)

    def bytes_read(self, control_group: str) -> storage.BytesRead:
        """What a control group has read from storage."""
        return storage.bytes_read(control_group, procfs.cgroup_pids(control_group))

    def read_state(self, path: str) -> dict[str, Any] | None:
        """The content of a state file that can be believed; None where there is none."""
        return state_files.read(path)

    def write_state(self, path: str, content: Mapping[str, Any]) -> None:
        """Write a state file whole. :raises OSError:"""
        state_files.write(path, content)

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
        readable = [source.fileno() for source in sources if source.fileno() >= 0 and not source.urgent]
        urgent = [source.fileno() for source in sources if source.fileno() >= 0 and source.urgent]
        if not readable and not urgent:
            time.sleep(seconds)
            return False
        ready = select.select(readable, [], urgent, seconds)
        return bool(ready[0] or ready[2])

    def monotonic(self) -> float:
        """Seconds on the clock that systemd's and the journal's monotonic times use."""
        return time.monotonic()

    def utc(self) -> str:
        """The time of day, UTC, as ISO 8601."""
        return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
