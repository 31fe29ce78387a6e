# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The log signal: the start-up stages were passed and nothing fatal was said, in the journal of this invocation.

Alone it is fooled: the ready line is printed after a failed PD warm-up and after a failed bind, in its own invocation, and
at once with ``--skip-server-warmup``. Hence the positive warm-up marker is required and the failures are looked for.

A journal forgets. Where the start-up lines of a run have left it, the run's proof stands for them: it was written when all
witnesses agreed, and nothing fatal has been said since.
"""

from __future__ import annotations

from .base import FAILED, PASSED, PENDING, UNKNOWN, Context, Say, Signal, is_follower
from .log_patterns import PREFIX

NAME = "log"
PROVES = "this run passed its start-up and its own warm-up, and has said nothing fatal"
_EXPECTED = {"router": "the HTTP server is up", "regular": "the ready line"}


def observe(context: Context) -> Signal:
    """Judge what the invocation has logged so far; the context's log view has been fed before."""
    log = context.log
    started = context.unit.exec_main_start
    follow = f"journalctl _SYSTEMD_INVOCATION_ID={context.invocation}"

    def say(state: str, observed: str, then: str = "") -> Signal:
        expected = _EXPECTED.get(context.role, "the PD warm-up passed, then the ready line")
        return context.signal(
            NAME,
            state,
            observed,
            expected + ", nothing fatal",
            PROVES,
            then,
            cause=log.cause,
            explained=log.fatal is None or not log.fatal.row.generic or bool(log.chain),
            chain=log.chain,
            fatal=[hit.line for hit in log.fatals[:10]],
            notes=[hit.line for hit in list(log.notes)[-10:]],
            records=log.records,
            ready_at=log.ready.at if log.ready else None,
            proved_at=context.proof["proved_at"] if context.proof else None,
        )

    if log.unreadable:
        return say(UNKNOWN, f"the journal cannot be read: {log.unreadable}", "run this as root, on the host of the unit")
    if log.fatal:
        # A run that has ended and that systemd will follow with another one is judged by the process signal alone.
        process = context.seen.get("process")
        over = process is not None and process.state == PENDING and bool(process.details.get("restarting"))
        return say(PENDING if over else FAILED, _failure(context), log.fatal.row.next or follow)
    if log.warmup_failed:
        text = PREFIX.sub("", log.warmup_failed.line)
        after = " (the ready line followed all the same)" if log.ready else ""
        return say(FAILED, f"{text}{after}", log.warmup_failed.row.next)
    if context.proof and not log.complete:
        at = context.proof["proved_at"]
        return say(PASSED, f"proved ready at {at}; its start-up lines have left the journal since, and it has said nothing fatal")
    if context.role == "router" or is_follower(context.entry):
        return _up(context, say)
    if log.ready and log.complete:
        passed = "warm-up passed, " if log.warmup_passed else ""
        return say(PASSED, f"{passed}ready line after {log.ready.at - started:.1f} s")
    if log.ready:
        return say(
            UNKNOWN,
            "the ready line, but no line that says the PD warm-up passed",
            "start without --skip-server-warmup, or look whether the log level hides INFO lines",
        )
    return _silent(context, say) or say(PENDING, _progress(context), follow)


def _silent(context: Context, say: Say) -> Signal | None:
    """A run that must have ended its start long ago, and of whose start the journal knows no end: those lines are gone, not still to come."""
    age = context.host.monotonic() - context.unit.exec_main_start
    if age < float(context.entry.get("start_budget_seconds") or 1800):
        return None
    return say(
        UNKNOWN,
        f"{_progress(context)}; this run began {age / 3600:.1f} hours ago, the end of its start is not in the journal, and it has no proof",
        f"systemctl restart {context.unit.unit}, where that may be: a new start leaves its proof",
    )


def _up(context: Context, say: Say) -> Signal:
    """A router, or a rank above 0: its server is up, and more its log does not tell."""
    name = "router-http" if context.role == "router" else "follower"
    hit = next((hit for hit in context.log.stages if hit.row.name == name), None)
    if hit:
        return say(PASSED, f"{hit.row.label} after {hit.at - context.unit.exec_main_start:.1f} s")
    return _silent(context, say) or say(PENDING, _progress(context))


def _failure(context: Context) -> str:
    """The fatal line, or what it announces where it is the head of a traceback."""
    log = context.log
    if not log.chain:
        return log.cause
    head = PREFIX.sub("", log.fatals[0].line).partition("Traceback (most recent call last)")[0].rstrip(" :")
    return log.cause if head in log.chain else f"{head}: {log.cause}"


def _progress(context: Context) -> str:
    last = context.log.last_stage
    if last is None:
        return f"no start-up stage yet, {context.log.records} lines"
    return f"{last.row.label} ({last.row.name}) after {last.at - context.unit.exec_main_start:.1f} s"
