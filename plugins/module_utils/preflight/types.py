# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words of preflight: buckets, findings, and what a check is given to look at."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable, NamedTuple

from ..accounts import Account, account, unreadable
from ..host import gpus, libraries, procfs, sysfs, systemd
from ..host.command import Completed, run
from ..releases.interpreters import Interpreter, probe
from ..space import free_bytes

#: Seen, and it must be mended before anything can run.
PROBLEM = "problem"
#: Checked and as it should be.
CLEAN = "clean"
#: Seen, and it does not decide; or the roles that follow put it right.
INCONCLUSIVE = "inconclusive"
#: It could not be asked.
UNCHECKED = "unchecked"

Finding = dict[str, Any]


class Found(NamedTuple):
    """One result of a check. ``next`` may be empty where nothing is to be done. ``packages`` would mend it."""

    bucket: str
    seen: str
    expected: str
    next: str = ""
    packages: Sequence[str] = ()


class Reader:
    """The host as checks see it; tests give another one."""

    def command(self, argv: Sequence[str]) -> Completed:
        return run(argv)

    def user_id(self) -> int:
        """Effective user id that this code runs with."""
        return os.geteuid()

    def init(self) -> str:
        """Name of the process that is PID 1."""
        return procfs.command_of(1)

    def os_release(self) -> libraries.OsRelease:
        return libraries.os_release()

    def can_load(self, library: str) -> bool:
        return libraries.can_load(library)

    def interpreter(self, path: str) -> Interpreter | None:
        return probe(path)

    def numa_nodes(self) -> dict[int, sysfs.NumaNode]:
        return sysfs.numa_nodes()

    def gpus(self) -> gpus.GpuReport:
        return gpus.read()

    def listeners(self, port: int) -> list[procfs.Listener]:
        return procfs.listeners(port)

    def owners(self, inode: int) -> set[int]:
        return procfs.socket_owners([inode])[inode]

    def unit_pids(self, unit: str) -> set[int]:
        return procfs.cgroup_pids(systemd.show(unit).control_group)

    def describe_process(self, pid: int) -> str:
        return f"{procfs.command_of(pid) or 'a process'} (pid {pid}, {procfs.cgroup_of(pid) or 'no cgroup'})"

    def is_own_address(self, address: str) -> bool:
        return sysfs.is_own_address(address)

    def may_execute(self, path: str) -> bool:
        return sysfs.may_execute(path)

    def free_bytes(self, path: str) -> int:
        return free_bytes(path)

    def entries(self, path: str) -> list[str] | None:
        """Names in a directory; None where there is none."""
        try:
            return sorted(os.listdir(path))
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                return None
            raise

    def account(self, name: str) -> Account:
        return account(name)

    def unreadable(self, paths: Sequence[str], user: Account) -> list[str] | None:
        return unreadable(paths, user)


@dataclass
class Context:
    """What one host is to become.

    ``host``: the plan's view of it (address, releases, models, numa). ``instances``: its entries of the plan.
    """

    host: dict[str, Any]
    instances: list[dict[str, Any]]
    user: str = "sglang"
    read: Reader = field(default_factory=Reader)

    @property
    def releases(self) -> list[dict[str, Any]]:
        return self.host.get("releases") or []

    @property
    def models(self) -> list[dict[str, Any]]:
        return self.host.get("models") or []


Check = Callable[[Context], Iterable[Found]]
