# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process signal: the unit runs, as the invocation asked about, from the rendered set of the plan, and owns its port.

Alone it is fooled by a process that is alive but stuck.
"""

from __future__ import annotations

from ..host.systemd import UnitState
from ..planning.render import DIGEST_VARIABLE
from .base import FAILED, PASSED, PENDING, UNKNOWN, Context, Signal
from .ownership import FOREIGN, NOBODY, OWN, owner

NAME = "process"
PROVES = "the unit runs, has not restarted, runs the planned rendered set, and its own process holds the port"


def observe(context: Context) -> Signal:
    """Judge the unit's state, its invocation, its rendered set and its socket, in this order."""
    unit = context.unit
    entry = context.entry
    expected = f"{unit.unit} active, one run, {entry['address']}:{entry['port']} held by it"

    def say(state: str, observed: str, then: str = "", running: bool = False) -> Signal:
        return context.signal(
            NAME,
            state,
            observed,
            expected,
            PROVES,
            then,
            running=running,
            unit_state=unit.state,
            main_pid=unit.main_pid,
            restarts=unit.n_restarts,
            exit=unit.exit_text(),
            need_daemon_reload=unit.need_daemon_reload,
        )

    failure = _run(context)
    if failure:
        state, observed, then = failure
        holder = owner(context, int(entry["port"]), str(entry["address"]))
        # Whoever holds the port of a unit that has just lost it is what people look for next.
        return say(state, f"{observed}; {holder.text}" if holder.state == FOREIGN else observed, then)
    drift = _render(context)
    if drift:
        return say(drift[0], drift[1], drift[2], running=True)
    holder = owner(context, int(entry["port"]), str(entry["address"]))
    text = f"{unit.state}, main PID {unit.main_pid}"
    if holder.state == OWN:
        return say(PASSED, f"{text}, {holder.text}", running=True)
    if holder.state == FOREIGN:
        return say(FAILED, f"{text}, but {holder.text}", f"ss -ltnp 'sport = :{entry['port']}'; stop that process", running=True)
    if holder.state == NOBODY:
        return say(PENDING, f"{text}, {holder.text} yet", running=True)
    return say(UNKNOWN, f"{text}, {holder.text}", "run this as root", running=True)


def _run(context: Context) -> tuple[str, str, str] | None:
    """Why the unit is not the running invocation asked about: (state, observed, next); None where it is."""
    unit = context.unit
    status = f"systemctl status {unit.unit}"
    log = f"journalctl _SYSTEMD_INVOCATION_ID={context.invocation or unit.invocation_id}"
    if unit.load_state == "not-found":
        return FAILED, "the unit is not installed", f"run the {context.role} role on this host"
    if unit.load_state not in ("loaded", ""):
        return FAILED, f"systemd cannot load the unit: {unit.load_state}", f"systemd-analyze verify {unit.unit}"
    if context.invocation and unit.invocation_id != context.invocation:
        now = f"now runs {unit.invocation_id}" if unit.invocation_id else "has no run"
        ended = f" ({unit.exit_text()})" if unit.exit_text() else ""
        return FAILED, f"the run {context.invocation} has ended{ended}; the unit {now}", log
    if unit.active_state == "failed":
        return FAILED, f"the unit failed ({unit.result}): {_end(unit)}", log
    if unit.sub_state in ("auto-restart", "auto-restart-queued"):
        state = FAILED if context.deployment else PENDING
        return state, f"{_end(unit)}; systemd will start it again", log
    if unit.active_state == "inactive":
        ended = f": {unit.exit_text()}" if unit.exit_text() else ""
        return FAILED, f"the unit does not run{ended}", f"systemctl start {unit.unit}"
    if unit.active_state == "deactivating":
        return (FAILED if context.deployment else PENDING), f"the unit is being stopped ({unit.state})", status
    if context.deployment and unit.n_restarts and not context.named:
        return FAILED, f"the unit has restarted {unit.n_restarts} times since it was started", log
    if unit.state != "active/running" or not unit.main_pid:
        return PENDING, f"the unit is {unit.state}", status
    return None


def _end(unit: UnitState) -> str:
    return f"its main process {unit.exit_text() or 'did not start'}"


def _render(context: Context) -> tuple[str, str, str] | None:
    """How the running process differs from the plan's rendered set; None where it is that set, or the plan names none."""
    digest = (context.entry.get("render") or {}).get("digest")
    if not digest:
        return None
    pid = context.unit.main_pid
    try:
        environment = context.host.environment_of(pid)
    except OSError as error:
        return UNKNOWN, f"the environment of PID {pid} cannot be read: {error.strerror}", "run this as root"
    found = environment.get(DIGEST_VARIABLE)
    if found == digest:
        return None
    if found:
        return (
            FAILED,
            f"PID {pid} runs the rendered set {found[:12]}, the plan has {digest[:12]}",
            f"systemctl daemon-reload && systemctl restart {context.unit.unit}",
        )
    if "PATH" in environment:
        return (
            FAILED,
            f"PID {pid} was not started from a rendered set: its environment has no {DIGEST_VARIABLE}",
            f"systemctl cat {context.unit.unit}",
        )
    return (
        UNKNOWN,
        f"the environment of PID {pid} is not readable as one (a process title may have overwritten it)",
        "put SPT_NOENV=1 in the unit's environment",
    )
