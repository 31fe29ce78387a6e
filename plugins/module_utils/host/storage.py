# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a directory's bytes come from: its file system, and what a unit has read from storage."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from .procfs import CGROUPS, PROC

_ESCAPE = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class BytesRead:
    """Bytes that processes have fetched from storage, and the file that says so. ``bytes`` is None where nothing does."""

    bytes: int | None
    source: str


def file_system(path: str, proc: str = PROC) -> str:
    """The type of the file system that ``path`` lies on (``ext4``, ``nfs4`` …), empty where the mount table cannot be read."""
    wanted = os.path.realpath(path)
    try:
        with open(f"{proc}/self/mountinfo", encoding="utf-8", errors="replace") as file:
            rows = [line.split() for line in file]
    except OSError:
        return ""
    found, longest = "", -1
    for row in rows:
        point = _ESCAPE.sub(lambda match: chr(int(match.group(1), 8)), row[4])
        # The last mount on a point is the one that is seen.
        if (wanted == point or wanted.startswith(point.rstrip("/") + "/")) and len(point) >= longest:
            found, longest = row[row.index("-") + 1], len(point)
    return found


def bytes_read(control_group: str, pids: Iterable[int], cgroups: str = CGROUPS, proc: str = PROC) -> BytesRead:
    """What a unit has read from storage: its control group's ``io.stat``, else the sum of its living processes' ``/proc/PID/io``."""
    path = f"{cgroups}/{control_group.strip('/')}/io.stat"
    if control_group.strip("/"):
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
            return BytesRead(sum(int(count) for count in re.findall(r"\brbytes=(\d+)", text)), "the control group's io.stat")
        except OSError:
            pass  # no io controller here
    total, seen = 0, False
    for pid in pids:
        try:
            with open(f"{proc}/{pid}/io", encoding="utf-8") as file:
                found = re.search(r"^read_bytes: (\d+)", file.read(), re.M)
        except OSError:
            continue
        total, seen = total + (int(found.group(1)) if found else 0), True
    return BytesRead(total if seen else None, "/proc/PID/io of its processes" if seen else "nothing: neither io.stat nor /proc/PID/io can be read")


def anonymous_bytes(pids: Iterable[int], proc: str = PROC) -> dict[int, int]:
    """PID -> bytes of anonymous memory (RssAnon of ``/proc/PID/status``); processes that cannot be read are left out.

    Everybody may read it, and it costs nothing; ``smaps_rollup`` would walk the page table of all the weights.
    """
    found = {}
    for pid in pids:
        try:
            with open(f"{proc}/{pid}/status", encoding="utf-8", errors="replace") as file:
                row = re.search(r"^RssAnon:\s+(\d+) kB", file.read(), re.M)
        except OSError:
            continue
        if row:
            found[pid] = int(row.group(1)) * 1024
    return found
