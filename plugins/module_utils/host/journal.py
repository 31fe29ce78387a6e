# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journal of one invocation of a unit: read once from a cursor, or followed.

Lines are taken by ``_SYSTEMD_INVOCATION_ID``, so nothing of an earlier or later run of the unit can be mistaken for this
one's. Messages are whole (``--all``): journalctl replaces fields above 4096 bytes by null otherwise, and the engine's
``server_args=`` line is some 25,000 bytes.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any, Callable

from .command import CommandError, run

#: Beside these, journalctl always prints the cursor and both timestamps.
_FIELDS = "MESSAGE,_PID,_SYSTEMD_INVOCATION_ID,UNIT"
_READ_BYTES = 1 << 16


class JournalError(Exception):
    """The journal could not be read; the text says why."""


@dataclass(frozen=True)
class Record:
    """One journal entry. ``monotonic`` is seconds on the host's monotonic clock, ``realtime`` seconds since the epoch.

    ``about`` is the unit that systemd itself (PID 1) speaks of; empty for what a unit's own processes say.
    """

    message: str
    monotonic: float = 0.0
    realtime: float = 0.0
    pid: int = 0
    invocation: str = ""
    cursor: str = ""
    about: str = ""


def decode_message(value: Any) -> str:
    """The text of a MESSAGE field.

    journalctl gives text as a string, anything with control characters (colours, ``\\r`` of a progress bar) or broken
    UTF-8 as a list of byte values, and a field that occurs several times as a list of such values.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        if all(isinstance(item, int) for item in value):
            return bytes(item & 0xFF for item in value).decode("utf-8", "replace")
        return "\n".join(decode_message(item) for item in value)
    return str(value)


def parse_line(line: bytes | str) -> Record | None:
    """One line of ``journalctl --output=json``; None for a blank, cut or foreign line."""
    try:
        fields = json.loads(line)
    except ValueError:
        return None
    if not isinstance(fields, dict):
        return None

    def number(key: str) -> int:
        value = fields.get(key)
        return int(value) if isinstance(value, str) and value.isdigit() else 0

    return Record(
        message=decode_message(fields.get("MESSAGE")),
        monotonic=number("__MONOTONIC_TIMESTAMP") / 1e6,
        realtime=number("__REALTIME_TIMESTAMP") / 1e6,
        pid=number("_PID"),
        invocation=str(fields.get("_SYSTEMD_INVOCATION_ID") or ""),
        cursor=str(fields.get("__CURSOR") or ""),
        about=str(fields.get("UNIT") or "") if fields.get("_PID") == "1" else "",
    )


def lines_of(message: str) -> Iterator[str]:
    """The lines a reader would have seen: split at newlines, and at the ``\\r`` with which a progress bar repaints itself."""
    for line in message.split("\n"):
        for part in line.split("\r"):
            if part.strip():
                yield part.rstrip()


def _argv(matches: Sequence[str], cursor: str, *options: str) -> list[str]:
    argv = ["journalctl", "--no-pager", "--quiet", "--all", "--output=json", f"--output-fields={_FIELDS}", *options]
    if cursor:
        argv.append(f"--after-cursor={cursor}")
    return argv + list(matches)


def _open(argv: Sequence[str], errors: int) -> subprocess.Popen[bytes]:
    try:
        # No run_command on hosts without Ansible.
        return subprocess.Popen(  # pylint: disable=ansible-bad-function
            list(argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
        )
    except OSError as error:
        raise JournalError(f"journalctl cannot be started: {error.strerror}") from None


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise JournalError("journalctl was started without a pipe")
    return stream


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for stream in (process.stdout, process.stderr):
        if stream:
            stream.close()


def stream(argv: Sequence[str]) -> Iterator[Record]:
    """The records a journalctl call prints, one at a time, so that a long journal never lies in memory.

    :raises JournalError: where journalctl is missing or ends with an error.
    """
    process = _open(argv, subprocess.PIPE)
    try:
        for line in _pipe(process.stdout):
            record = parse_line(line)
            if record:
                yield record
        said = _pipe(process.stderr).read().decode("utf-8", "replace").strip()
        # 1 without a word means that nothing matched.
        if process.wait() != 0 and said:
            raise JournalError(f"journalctl ended with {process.returncode}: {said.splitlines()[-1]}")
    finally:
        _stop(process)


def read(invocation: str, cursor: str = "") -> Iterator[Record]:
    """Every record of one invocation, oldest first, after ``cursor`` where one is given. :raises JournalError:"""
    match = f"_SYSTEMD_INVOCATION_ID={invocation}"
    empty = not cursor
    for record in stream(_argv([match], cursor)):
        empty = False
        yield record
    if empty:
        _refuse_blindness(match)


def _refuse_blindness(match: str) -> None:
    """Tell "nothing was logged" from "this user may not see it": only the output for people carries the hint."""
    try:
        said = run(["journalctl", "--no-pager", "--lines=1", match]).stderr
    except CommandError as error:
        raise JournalError(str(error)) from None
    if "not seeing messages" in said:
        raise JournalError("this user may not see the messages of the system's units")


def previous_invocation(unit: str, current: str, reader: Callable[[Sequence[str]], Iterator[Record]] = stream) -> str:
    """The invocation of ``unit`` that ran before ``current``; empty where the journal's newest 5,000 lines know none."""
    for record in reader(_argv([f"_SYSTEMD_UNIT={unit}"], "", "--reverse", "--lines=5000")):
        if record.invocation and record.invocation != current:
            return record.invocation
    return ""


class Follower:
    """A running ``journalctl --follow`` of one invocation, and of what systemd says of its unit (its end, its next start).

    ``fileno()`` is readable when there is something to poll.
    """

    urgent = False

    def __init__(self, invocation: str, unit: str, cursor: str = "") -> None:
        matches = [f"_SYSTEMD_INVOCATION_ID={invocation}", "+", f"UNIT={unit}", "_PID=1"]
        argv = _argv(matches, cursor, "--follow", "--no-tail")
        self._process = _open(argv, subprocess.DEVNULL)
        self._rest = b""
        os.set_blocking(self.fileno(), False)

    def fileno(self) -> int:
        """The descriptor to wait on."""
        return _pipe(self._process.stdout).fileno()

    @property
    def alive(self) -> bool:
        """False once journalctl has ended (then open another one from the last cursor)."""
        return self._process.poll() is None

    def poll(self) -> list[Record]:
        """The records that have arrived since the last poll; never blocks."""
        records = []
        while True:
            try:
                chunk = os.read(self.fileno(), _READ_BYTES)
            except BlockingIOError:
                break
            if not chunk:
                break
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            records += [record for record in map(parse_line, lines) if record]
        return records

    def close(self) -> None:
        """End the journalctl that this object started."""
        _stop(self._process)
