# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines that tell, on the host, how far a long piece of work has come.

A progress file is UTF-8 text. Each line is ``<unix seconds>.<milliseconds> <text>``. The first one is
``<time> @pid <pid> <start time>`` and names the process that writes it (start time: field 22 of
``/proc/<pid>/stat``, in clock ticks since boot), so that a reader can tell "still at work" from
"gone without a result". Lines that begin with ``@`` are for readers and are not shown to people.
"""

from __future__ import annotations

import os
import time
from typing import Callable, NamedTuple

from .host.credentials import Redactor

MARK = "@"
_REDACTOR = Redactor()


class Line(NamedTuple):
    """One line of a progress file: when it was written (unix seconds) and what it says."""

    at: float
    text: str


def redact(text: str) -> str:
    """Text without what looks like a credential: in addresses, behind a flag or a name, bearer tokens."""
    return _REDACTOR.text(text)


def human_bytes(count: float) -> str:
    """Bytes as people read them, in binary units: 512 B, 3.4 MiB, 1.7 GiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024.0
    return f"{count:.2f} TiB"


def start_time(pid: int) -> int | None:
    """Start time of a process in clock ticks since boot; None where it does not exist or /proc cannot be read."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
            return parse_start_time(stream.read())
    except OSError:
        return None


def parse_start_time(stat: str) -> int | None:
    """Field 22 of a ``/proc/<pid>/stat`` text. The command name may hold blanks and brackets, so count from its end."""
    fields = stat.rpartition(")")[2].split()
    try:
        return int(fields[19])
    except (IndexError, ValueError):
        return None


def parse_line(raw: str) -> Line | None:
    """One raw line of a progress file, None for anything else (an empty or a torn line)."""
    stamp, blank, text = raw.rstrip("\r\n").partition(" ")
    try:
        at = float(stamp)
    except ValueError:
        return None
    return Line(at, text) if blank else None


class Progress:
    """Appends lines to a progress file.

    :param path: file on this host, made with mode 0600 if it is not there; None: every call does nothing.
    :param clock: unix seconds; injected by tests.
    A file that cannot be written never stops the work that reports to it.
    """

    def __init__(self, path: str | None, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self._clock = clock
        self._last = 0.0
        if path is not None:
            pid = os.getpid()
            self._write(f"{MARK}pid {pid} {start_time(pid) or 0}")

    def line(self, text: str) -> None:
        """Append one line. Line breaks and control characters become blanks, credentials ``<hidden>``."""
        clean = "".join(char if char.isprintable() else " " for char in redact(text)).strip()
        if clean:
            self._write(clean.lstrip(MARK))

    def beat(self, text: Callable[[], str], every: float = 5.0) -> bool:
        """Append a line if the last one is at least ``every`` seconds old; the text is only made then."""
        if self.path is None or self._clock() - self._last < every:
            return False
        self.line(text())
        return True

    def _write(self, text: str) -> None:
        if self.path is None:
            return
        self._last = self._clock()
        data = (f"{self._last:.3f} {text}\n").encode("utf-8", "replace")
        try:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            handle = os.open(self.path, flags, 0o600)
            try:
                os.write(handle, data)
            finally:
                os.close(handle)
        except OSError:
            self.path = None
