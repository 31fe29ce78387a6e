# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Descriptors on which to wait for the end of processes, so that nobody has to ask systemd again and again."""

from __future__ import annotations

import os
import select
from contextlib import suppress

from ..progress import start_time

CGROUPS = "/sys/fs/cgroup"


class ExitWatch:
    """Notices the end of one process: by a pidfd where Python and the kernel have it, else by looking at /proc.

    ``fileno()`` is a descriptor that becomes readable at the end, or -1 where only looking is possible.
    """

    #: The news is readable data.
    urgent = False

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._started = start_time(pid)
        self._fd = -1
        with suppress(AttributeError, OSError):
            self._fd = os.pidfd_open(pid)

    def fileno(self) -> int:
        """The descriptor to wait on, or -1."""
        return self._fd

    @property
    def ended(self) -> bool:
        """True once the process has ended (also when its PID has been given to another one)."""
        if self._fd >= 0:
            return bool(select.select([self._fd], [], [], 0)[0])
        return self._started is None or start_time(self.pid) != self._started

    def close(self) -> None:
        """Give the descriptor back."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class CgroupWatch:
    """Notices that a control group became empty (``populated 0`` in its ``cgroup.events``): the last process of a run is gone.

    The kernel tells it as urgent data (cgroup-v2 documentation, "Populated notification"). Where the group or the file is not
    there, ``fileno()`` is -1 and ``emptied`` stays False.
    """

    urgent = True

    def __init__(self, control_group: str, root: str = CGROUPS) -> None:
        self.control_group = control_group
        self._fd = -1
        if control_group.strip("/"):
            with suppress(OSError):
                self._fd = os.open(f"{root}/{control_group.strip('/')}/cgroup.events", os.O_RDONLY | os.O_CLOEXEC)

    def fileno(self) -> int:
        """The descriptor to wait on, or -1."""
        return self._fd

    @property
    def emptied(self) -> bool:
        """True once no process is left in the group or below it. Reading also takes the news back, so ask after each wait."""
        if self._fd < 0:
            return False
        try:
            text = os.pread(self._fd, 4096, 0)
        except OSError:  # ENODEV: systemd has removed the group
            return True
        return b"populated 0" in text

    def close(self) -> None:
        """Give the descriptor back."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
