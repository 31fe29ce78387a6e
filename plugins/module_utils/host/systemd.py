# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of one unit, from one ``systemctl show``."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Callable

from .command import CommandError, Completed, run

PROPERTIES = (
    "LoadState",
    "ActiveState",
    "SubState",
    "Result",
    "InvocationID",
    "MainPID",
    "NRestarts",
    "ControlGroup",
    "ExecMainPID",
    "ExecMainCode",
    "ExecMainStatus",
    "ExecMainStartTimestampMonotonic",
    "ExecMainExitTimestampMonotonic",
    "NeedDaemonReload",
)

#: ``ExecMainCode`` holds a CLD_* number (wait.h): 1 the process exited, 2 a signal killed it, 3 killed with a core dump.
_EXITED = 1

Runner = Callable[[Sequence[str]], Completed]


class SystemdError(Exception):
    """systemd could not be asked; the text says why."""


@dataclass(frozen=True)
class UnitState:
    """What systemd says of one unit at one moment.

    ``exec_main_start`` and ``exec_main_exit`` are seconds on the host's monotonic clock (the one of
    ``time.monotonic()`` and of the journal's ``__MONOTONIC_TIMESTAMP``); 0.0 means it has not happened.
    ``invocation_id`` is empty for a unit that has never run since boot.
    """

    unit: str
    load_state: str = "not-found"
    active_state: str = "inactive"
    sub_state: str = "dead"
    result: str = "success"
    invocation_id: str = ""
    main_pid: int = 0
    n_restarts: int = 0
    control_group: str = ""
    exec_main_pid: int = 0
    exec_main_code: int = 0
    exec_main_status: int = 0
    exec_main_start: float = 0.0
    exec_main_exit: float = 0.0
    need_daemon_reload: bool = False

    @property
    def state(self) -> str:
        """``active/running`` and the like."""
        return f"{self.active_state}/{self.sub_state}"

    def exit_text(self) -> str:
        """How the last main process ended; empty where none has ended since it was started."""
        if not self.exec_main_code or (self.main_pid and self.main_pid == self.exec_main_pid):
            return ""
        if self.exec_main_code == _EXITED:
            return f"exited with status {self.exec_main_status}"
        try:
            name = signal.Signals(self.exec_main_status).name
        except ValueError:
            name = f"signal {self.exec_main_status}"
        return f"killed by {name}"


def parse_show(unit: str, text: str) -> UnitState:
    """Turn the ``Key=Value`` lines of ``systemctl show`` into a state. A missing or odd number counts as 0."""
    values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)

    def number(key: str) -> int:
        value = values.get(key, "")
        return int(value) if value.isdigit() else 0

    return UnitState(
        unit=unit,
        load_state=values.get("LoadState", ""),
        active_state=values.get("ActiveState", ""),
        sub_state=values.get("SubState", ""),
        result=values.get("Result", ""),
        invocation_id=values.get("InvocationID", ""),
        main_pid=number("MainPID"),
        n_restarts=number("NRestarts"),
        control_group=values.get("ControlGroup", ""),
        exec_main_pid=number("ExecMainPID"),
        exec_main_code=number("ExecMainCode"),
        exec_main_status=number("ExecMainStatus"),
        exec_main_start=number("ExecMainStartTimestampMonotonic") / 1e6,
        exec_main_exit=number("ExecMainExitTimestampMonotonic") / 1e6,
        need_daemon_reload=values.get("NeedDaemonReload") == "yes",
    )


def show(unit: str, runner: Runner = run) -> UnitState:
    """Ask systemd for ``unit``. A unit that is not installed is a state (``not-found``), not an error.

    :raises SystemdError: where systemctl is missing or systemd does not answer.
    """
    try:
        done = runner(["systemctl", "show", "--no-pager", "--property=" + ",".join(PROPERTIES), "--", unit])
    except CommandError as error:
        raise SystemdError(str(error)) from None
    if done.rc != 0 or "LoadState=" not in done.stdout:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise SystemdError(f"systemctl show {unit} ended with {done.rc}: {said[-1] if said else 'no output'}")
    return parse_show(unit, done.stdout)
