# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a long command, line by line, with a sign of life while it says nothing."""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Callable

_KEPT_LINES = 400


def run_long(
    argv: Sequence[str],
    on_line: Callable[[str], object],
    on_silence: Callable[[int], object],
    env: Mapping[str, str] | None = None,
    every: float = 1.0,
    keep_open: Sequence[int] = (),
) -> tuple[int, list[str]]:
    """Run ``argv`` (never a shell) to its end; give its exit status and its last 400 lines (both streams).

    :param on_line: called with each line as it comes.
    :param on_silence: called about every ``every`` seconds with the process id.
    :param keep_open: descriptors the process inherits (a lock that must be held as long as it runs).
    :raises OSError: where the program cannot be started.
    """
    kept: list[str] = []
    with (
        subprocess.Popen(  # pylint: disable=ansible-bad-function  # no run_command on hosts without Ansible
            list(argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env, pass_fds=tuple(keep_open)
        ) as process,
        selectors.DefaultSelector() as selector,
    ):
        stream = process.stdout
        if stream is None:
            raise OSError("no pipe to the program")
        selector.register(stream, selectors.EVENT_READ)
        torn, due = b"", time.monotonic() + every
        while True:
            ready = selector.select(max(0.0, due - time.monotonic()))
            if time.monotonic() >= due:
                on_silence(process.pid)
                due = time.monotonic() + every
            if not ready:
                continue
            block = os.read(stream.fileno(), 1 << 16)
            rows = (torn + block).replace(b"\r", b"\n").split(b"\n")
            torn = rows.pop()
            for row in rows if block else [*rows, torn]:
                text = row.decode("utf-8", "replace").rstrip()
                if text:
                    kept.append(text)
                    on_line(text)
            del kept[:-_KEPT_LINES]
            if not block:
                break
        return process.wait(), kept


def bytes_written(pid: int, proc: str = "/proc") -> int:
    """Bytes that a process and its children have handed to write calls so far (``wchar`` of ``/proc/PID/io``); 0: unknown."""
    total, pending = 0, [pid]
    while pending:
        one = pending.pop()
        try:
            with open(f"{proc}/{one}/io", encoding="ascii") as stream:
                total += next((int(row.split()[1]) for row in stream if row.startswith("wchar:")), 0)
            with open(f"{proc}/{one}/task/{one}/children", encoding="ascii") as stream:
                pending.extend(int(word) for word in stream.read().split())
        except (OSError, ValueError):
            continue
    return total
