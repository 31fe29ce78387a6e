# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Room on file systems: what is free, what a directory holds, and the message when it is not enough."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

from .problem import Problem
from .progress import human_bytes


def free_bytes(path: str) -> int:
    """Bytes that may still be written below ``path`` (its nearest existing parent counts); root may use the reserve."""
    status = os.statvfs(existing_parent(path))
    return status.f_frsize * (status.f_bfree if os.geteuid() == 0 else status.f_bavail)


def existing_parent(path: str) -> str:
    """``path`` itself or the nearest directory above it that exists."""
    path = os.path.abspath(path)
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def tree_bytes(path: str) -> int:
    """Bytes on disk of a file or a whole tree; files with several names count once, links are not followed."""
    seen: set[tuple[int, int]] = set()
    total = 0
    pending = [path]
    while pending:
        one = pending.pop()
        try:
            status = os.lstat(one)
            if stat.S_ISDIR(status.st_mode):
                pending.extend(os.path.join(one, name) for name in os.listdir(one))
        except OSError:
            continue
        if status.st_nlink == 1 or (status.st_dev, status.st_ino) not in seen:
            seen.add((status.st_dev, status.st_ino))
            total += status.st_blocks * 512
    return total


def contents(directory: str, skip: Iterable[str] = ()) -> list[tuple[str, int]]:
    """What lies in a directory with the bytes each entry takes, the largest first; empty where it cannot be read."""
    try:
        names = [name for name in os.listdir(directory) if name not in set(skip)]
    except OSError:
        return []
    return sorted(((name, tree_bytes(os.path.join(directory, name))) for name in names), key=lambda item: -item[1])


def need(path: str, wanted: int, what: str, advice: str) -> None:
    """Raise Problem where less than ``wanted`` bytes are free below ``path``; names what lies in its parent directory."""
    free = free_bytes(path)
    if free >= wanted:
        return
    parent = os.path.dirname(os.path.abspath(path))
    there = "\n".join(f"{human_bytes(size):>10}  {name}" for name, size in contents(parent)[:12]) or "nothing that could be read"
    raise Problem(
        what,
        f"{human_bytes(free)} are free on the file system of {existing_parent(path)}; in {parent} there is:\n{there}",
        f"{human_bytes(wanted)} free",
        f"free {human_bytes(wanted - free)} or more. {advice}",
    )
