# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process signal: the unit runs, as the invocation asked about, from the rendered set of the plan, and owns its port.

The processes of its control group are looked at too: none is stopped, and no scheduler that this run once had is gone.

Alone it is fooled by a process that is alive but stuck.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..host.procfs import Task
from ..host.systemd import UnitState
from ..planning.render import DIGEST_VARIABLE
from .base import FAILED, PASSED, PENDING, UNKNOWN, Context, Signal
from .ownership import FOREIGN, NOBODY, OWN, owner

NAME = "process"
PROVES = "the unit runs, has not restarted, runs the planned rendered set, none of its processes is stopped, and its own process holds the port"

#: The beginning of a scheduler's name: the engine sets the title ``sglang::scheduler…`` (srt/managers/scheduler.py), the kernel keeps 15 characters.
RANK = "sglang::schedul"
#: States of proc(5) in which a process does nothing until somebody lets it go on.
_STOPPED = ("T", "t")
_RESTARTING = ("auto-restart", "auto-restart-queued")


class Trouble(NamedTuple):
    """Why the signal does not pass: its state, what was seen, what to do next."""

    state: str
    observed: str
    next: str


def observe(context: Context) -> Signal:
    """Judge the unit's state, its invocation, its processes, its socket and its rendered set, in this order.

    ``details.askable`` says whether an answer from the port would be this run's own.
    """
    unit = context.unit
    entry = context.entry
    port = int(entry["port"])
    ranks: list[int] = []

    def say(state: str, observed: str, then: str = "", running: bool = False, askable: bool = False) -> Signal:
        return context.signal(
            NAME,
            state,
            observed,
            f"{unit.unit} active, one run, {entry['address']}:{port} held by it",
            PROVES,
            then,
            running=running,
            askable=askable,
            restarting=unit.sub_state in _RESTARTING,
            unit_state=unit.state,
            main_pid=unit.main_pid,
            restarts=unit.n_restarts,
            ranks=ranks,
            exit=unit.exit_text(),
            need_daemon_reload=unit.need_daemon_reload,
        )

    over = _run(context)
    holder = owner(context, port, str(entry["address"]))
    if over:
        # Whoever holds the port of a unit that has just lost it is what people look for next.
        return say(over.state, f"{over.observed}; {holder.text}" if holder.state == FOREIGN else over.observed, over.next)
    text = f"{unit.state}, main PID {unit.main_pid}"
    if holder.state == FOREIGN:
        return say(FAILED, f"{text}, but {holder.text}", f"ss -ltnp 'sport = :{port}'; stop that process", running=True)
    trouble = _tasks(context, ranks) or _render(context)
    if trouble:
        return say(*trouble, running=True, askable=True)
    if holder.state == OWN:
        return say(PASSED, f"{text}, {holder.text}", running=True, askable=True)
    if holder.state == NOBODY:
        return say(PENDING, f"{text}, {holder.text} yet", f"journalctl -fu {unit.unit}", running=True, askable=True)
    return say(UNKNOWN, f"{text}, {holder.text}", "run this as root", running=True, askable=True)


def ranks_of(tasks: Sequence[Task]) -> list[int]:
    """The PIDs of the schedulers: children of another process of the unit, the server or its data-parallel controller.

    What a scheduler has forked (a compiler, a worker) bears its name as well, for a while, and is none; nor is what such a child has
    left behind.
    """
    others = {task.pid for task in tasks if not task.name.startswith(RANK)}
    return [task.pid for task in tasks if task.pid not in others and task.parent in others]


def _tasks(context: Context, ranks: list[int]) -> Trouble | None:
    """A process of the unit that is stopped, or a scheduler that is gone; fills ``ranks`` with the PIDs of the schedulers."""
    tasks = context.host.tasks(context.host.cgroup_pids(context.unit.control_group))
    ranks += ranks_of(tasks)
    known = set(context.memory.get("ranks", ())) | set(context.proof["ranks"] if context.proof else ())
    context.memory["ranks"] = sorted(known | set(ranks))
    lost = sorted(known - set(ranks))
    if lost:
        names = ", ".join(f"PID {pid}" for pid in lost)
        state = FAILED if context.deployment or context.named else PENDING
        return Trouble(state, f"the scheduler {names} of this run has ended", f"journalctl _SYSTEMD_INVOCATION_ID={context.invocation}")
    stopped = [task for task in tasks if task.state in _STOPPED]
    if stopped:
        names = ", ".join(f"PID {task.pid} ({task.name})" for task in stopped)
        pids = " ".join(str(task.pid) for task in stopped)
        return Trouble(PENDING, f"{names} is stopped, so nothing is computed", f"find out who stopped it; kill -CONT {pids}")
    return None


def _run(context: Context) -> Trouble | None:
    """Why the unit is not the running invocation asked about; None where it is."""
    unit = context.unit
    status = f"systemctl status {unit.unit}"
    log = f"journalctl _SYSTEMD_INVOCATION_ID={context.invocation or unit.invocation_id}"
    if unit.load_state == "not-found":
        return Trouble(FAILED, "the unit is not installed", f"run the {context.role} role on this host")
    if unit.load_state not in ("loaded", ""):
        return Trouble(FAILED, f"systemd cannot load the unit: {unit.load_state}", f"systemd-analyze verify {unit.unit}")
    if context.invocation and unit.invocation_id != context.invocation:
        now = f"now runs {unit.invocation_id}" if unit.invocation_id else "has no run"
        ended = f" ({unit.exit_text()})" if unit.exit_text() else ""
        return Trouble(FAILED, f"the run {context.invocation} has ended{ended}; the unit {now}", log)
    if unit.active_state == "failed":
        return Trouble(FAILED, f"the unit failed ({unit.result}): {_end(unit)}", log)
    if unit.sub_state in _RESTARTING:
        state = FAILED if context.deployment else PENDING
        return Trouble(state, f"{_end(unit)}; systemd will start it again", log)
    if unit.active_state == "inactive":
        ended = f": {unit.exit_text()}" if unit.exit_text() else ""
        return Trouble(FAILED, f"the unit does not run{ended}", f"systemctl start {unit.unit}")
    if unit.active_state == "deactivating":
        return Trouble(FAILED if context.deployment else PENDING, f"the unit is being stopped ({unit.state})", status)
    if context.deployment and unit.n_restarts and not context.named:
        return Trouble(FAILED, f"the unit has restarted {unit.n_restarts} times since it was started", log)
    if unit.state != "active/running" or not unit.main_pid:
        return Trouble(PENDING, f"the unit is {unit.state}", status)
    return None


def _end(unit: UnitState) -> str:
    return f"its main process {unit.exit_text() or 'did not start'}"


def _render(context: Context) -> Trouble | None:
    """How the running process differs from the plan's rendered set; None where it is that set, or the plan names none."""
    digest = (context.entry.get("render") or {}).get("digest")
    if not digest:
        return None
    pid = context.unit.main_pid
    try:
        environment = context.host.environment_of(pid)
    except OSError as error:
        return Trouble(UNKNOWN, f"the environment of PID {pid} cannot be read: {error.strerror}", "run this as root")
    found = environment.get(DIGEST_VARIABLE)
    if found == digest:
        return None
    if found:
        return Trouble(
            FAILED,
            f"PID {pid} runs the rendered set {found[:12]}, the plan has {digest[:12]}",
            f"systemctl daemon-reload && systemctl restart {context.unit.unit}",
        )
    if "PATH" in environment:
        return Trouble(
            FAILED,
            f"PID {pid} was not started from a rendered set: its environment has no {DIGEST_VARIABLE}",
            f"systemctl cat {context.unit.unit}",
        )
    return Trouble(
        UNKNOWN,
        f"the environment of PID {pid} is not readable as one (a process title may have overwritten it)",
        "put SPT_NOENV=1 in the unit's environment",
    )
