# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Running other programs, and telling one process from a later one with the same PID."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .console import Heartbeat, say
from .errors import LabError

# A long command and all that it starts must not outlive the `lab` that started it, even one that was killed outright:
# the kernel ends a PID namespace with its first process, and that one with its parent.
_DIE_WITH_US = ("setpriv", "--pdeathsig", "KILL", "--", "unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


def capture(command: Sequence[str], *, stdin: str | None = None, env: dict[str, str] | None = None, timeout: float = 120) -> str:
    """Run a short command and return its standard output; a failure becomes a LabError with its last words."""
    result = attempt(command, stdin=stdin, env=env, timeout=timeout)
    if result.returncode != 0:
        words = (result.stderr or result.stdout).strip()[-1500:]
        raise LabError(
            f"`{_short(command)}` ended with status {result.returncode}: {words or '(no output)'}",
            "status 0",
            "read the message above; `lab status` tells what is there, `lab down` removes what was begun",
        )
    return result.stdout


def attempt(command: Sequence[str], *, stdin: str | None = None, env: dict[str, str] | None = None, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Run a short command and return what came of it, good or bad."""
    try:
        return subprocess.run(
            list(command),
            input=stdin if stdin is not None else "",
            env=env,
            timeout=timeout,
            capture_output=True,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise LabError(
            f"`{_short(command)}` was still running after {timeout:.0f} s",
            "an answer within that time",
            "see whether the machine is overloaded (uptime, free -h), then run the same `lab` command again",
        ) from error


def logged(label: str, command: Sequence[str], log: Path, *, env: dict[str, str] | None = None) -> float:
    """Run a long command with its output in a log file and a sign of life on the terminal; return the seconds it took."""
    log.parent.mkdir(parents=True, exist_ok=True)
    say(f"{label} (log: {log})")
    with log.open("w") as stream, Heartbeat(label, lambda: last_line(log)) as beat:
        status = subprocess.run([*_DIE_WITH_US, *command], stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT, env=env, check=False).returncode
        seconds = beat.elapsed()
    if status != 0:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-12:])
        raise LabError(
            f"{label}: `{_short(command)}` ended with status {status} after {seconds:.0f} s. Its last lines:\n{tail}",
            "status 0",
            f"read {log}, mend the cause, and run the same `lab` command again: finished steps are kept",
        )
    return seconds


def last_line(log: Path) -> str:
    """Return the last line of a log, cut to fit a terminal."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - 2000))
            lines = stream.read().decode(errors="replace").replace("\r", "\n").split("\n")
    except OSError:
        return ""
    return next((line.strip()[:100] for line in reversed(lines) if line.strip()), "")


def start_time(pid: int) -> int | None:
    """Return a process's start time in clock ticks since boot, or None where there is no such process.

    PID and start time together name one process of this boot for good; a PID alone is used again.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat[stat.rindex(")") + 2 :].split()
    return None if fields[0] in "ZX" else int(fields[19])


def command_line(pid: int) -> list[str]:
    """Return a process's arguments, empty where it cannot be read."""
    try:
        return [os.fsdecode(part) for part in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") if part]
    except OSError:
        return []


def boot_id() -> str:
    """Return the kernel's name for this boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _short(command: Sequence[str]) -> str:
    text = " ".join(command)
    return text if len(text) <= 200 else text[:200] + " …"
