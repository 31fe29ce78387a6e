# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One look at one instance: its unit, its log so far, then each signal in turn, then the verdict.

An observer belongs to one invocation. It remembers what was said before (log, a generation that succeeded, since when a
signal is in its state) and forgets everything when the unit's invocation changes and that is allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Callable

from ..host.credentials import Redactor
from ..host.journal import Follower, JournalError, Record
from ..host.local import LocalHost
from ..host.procfs import ExitWatch
from ..host.systemd import SystemdError, UnitState
from ..signals import bootstrap, http, identity, log, process, router
from ..signals.base import FAILED, PASSED, PENDING, UNKNOWN, Context, Signal, is_follower
from ..signals.log_view import Hit, LogView
from .verdict import Verdict, decide


@dataclass(frozen=True)
class Look:
    """What one look saw. ``started`` is the main process's start on the monotonic clock in seconds, 0.0 if it never was."""

    signals: Mapping[str, Signal]
    verdict: Verdict
    unit: UnitState
    invocation: str
    started: float
    at: float
    stages: tuple[Hit, ...] = ()
    last_stage: Hit | None = None
    loading_percent: int | None = None
    last_lines: tuple[str, ...] = ()


class Observer:
    """Looks at one plan entry.

    :param invocation: the run asked about; empty: the one that runs at the first look.
    :param deployment: in a deployment any restart is a failure; otherwise a new invocation is taken up.
    """

    def __init__(self, entry: Mapping[str, Any], host: LocalHost, invocation: str = "", deployment: bool = False) -> None:
        self.entry = entry
        self.host = host
        self.asked = invocation
        self.deployment = deployment
        self.kind = "follower" if is_follower(entry) else str(entry["role"])
        self._redactor = Redactor.of(item["path"] for item in entry.get("credentials") or [])
        self._invocation = invocation
        self._log = LogView(str(entry["role"]), self._redactor)
        self._memory: dict[str, Any] = {}
        self._since: dict[str, tuple[str, float]] = {}
        self._follower: Follower | None = None
        self._exit: ExitWatch | None = None

    # --- one look -----------------------------------------------------------------------------------------------------

    def look(self) -> Look:
        """Observe everything that may be observed now."""
        try:
            unit = self.host.unit(str(self.entry["unit"]))
        except SystemdError as error:
            return self.blind(str(error))
        self._adopt(unit)
        self.read_log()
        context = Context(
            entry=self.entry,
            host=self.host,
            unit=unit,
            log=self._log,
            invocation=self._invocation,
            deployment=self.deployment,
            named=bool(self.asked),
            redactor=self._redactor,
            memory=self._memory,
        )
        for name, observe in self._signals(context):
            context.seen[name] = observe(context)
        return self._judge(context)

    def _signals(self, context: Context) -> Iterable[tuple[str, Callable[[Context], Signal]]]:
        """The signals in the order of their cost; those behind a closed gate say why they were not asked."""
        yield "process", process.observe
        yield "log", log.observe
        # A process that does not run, or has failed, is asked nothing: whoever answered would be somebody else.
        gone = not context.seen["process"].details.get("running") or context.seen["process"].state == FAILED
        if self.kind == "router":
            yield "router", _not_asked("router", "the process signal has not passed") if gone else router.observe
        elif self.kind != "follower":
            yield "http", _not_asked("http", "the process signal has not passed") if gone else http.observe
            late = gone or context.seen["http"].state != PASSED
            for name, observe in (("identity", identity.observe), ("bootstrap", bootstrap.observe)):
                yield name, _not_asked(name, "http has not passed") if late else observe

    def _judge(self, context: Context) -> Look:
        now = self.host.monotonic()
        for name, signal in context.seen.items():
            state, _since = self._since.get(name, ("", 0.0))
            if state != signal.state:
                since = now
                if name == "log" and signal.state == PASSED and self._log.ready:
                    since = self._log.ready.at
                self._since[name] = (signal.state, since)
        held = {name: now - since for name, (_state, since) in self._since.items()}
        return Look(
            signals=dict(context.seen),
            verdict=decide(context.seen, self.kind, held),
            unit=context.unit,
            invocation=self._invocation,
            started=context.unit.exec_main_start if self._is_asked(context.unit) else 0.0,
            at=now,
            stages=tuple(self._log.stages),
            last_stage=self._log.last_stage,
            loading_percent=self._log.loading_percent,
            last_lines=tuple(self._log.words()),
        )

    def blind(self, why: str) -> Look:
        """systemd could not be asked, so nothing can be bound to a run and nothing else is asked."""
        unit = UnitState(str(self.entry["unit"]))
        context = Context(self.entry, self.host, unit, self._log)
        context.seen["process"] = context.signal("process", UNKNOWN, why, "systemd answers", process.PROVES, "systemctl is-system-running")
        return self._judge(context)

    # --- the run asked about ------------------------------------------------------------------------------------------

    def _is_asked(self, unit: UnitState) -> bool:
        return not self._invocation or unit.invocation_id == self._invocation

    def _adopt(self, unit: UnitState) -> None:
        """Take up the unit's invocation, where none is watched yet or a new one may be."""
        if not unit.invocation_id or unit.invocation_id == self._invocation:
            return
        fixed = self.asked or (self.deployment and self._invocation)
        if fixed:
            return
        self._forget(unit.invocation_id)
        if self.deployment and unit.n_restarts:
            self._go_back(unit)

    def _go_back(self, unit: UnitState) -> None:
        """A unit that restarted before it was first looked at: the run that ended is the one whose words matter."""
        try:
            before = self.host.previous_invocation(unit.unit, unit.invocation_id)
        except JournalError:
            return
        if before:
            self._forget(before)

    def _forget(self, invocation: str) -> None:
        self.close()
        self._invocation = invocation
        self._log = LogView(str(self.entry["role"]), self._redactor)
        self._memory = {}
        self._since = {}

    # --- news ---------------------------------------------------------------------------------------------------------

    def read_log(self) -> int:
        """Take what the invocation has logged since the last time; returns the number of new records."""
        if not self._invocation:
            return 0
        before = self._log.records
        try:
            self._log.feed(self._new_records())
            self._log.unreadable = ""
        except JournalError as error:
            self._log.unreadable = str(error)
        return self._log.records - before

    def _new_records(self) -> Iterable[Record]:
        if self._follower is not None and self._follower.alive:
            return self._follower.poll()
        return self.host.journal(self._invocation, self._log.cursor)

    @property
    def progress(self) -> tuple[int, int]:
        """Changes when the log has said something that is worth a look: stages and outcomes, fatal lines."""
        view = self._log
        outcomes = sum(hit is not None for hit in (view.ready, view.warmup_passed, view.warmup_failed))
        return len(view.stages) + outcomes, len(view.fatals)

    def listen(self, unit: UnitState) -> list[Any]:
        """What to wait on for news of this run: its journal, and the end of its main process."""
        # A journal that cannot be read once is not followed: its silence would pass for one.
        if self._invocation and not self._log.unreadable and (self._follower is None or not self._follower.alive):
            if self._follower is not None:
                self._follower.close()
            try:
                self._follower = self.host.follow(self._invocation, self._log.cursor)
            except JournalError as error:
                self._follower = None
                self._log.unreadable = str(error)
        if self._exit is not None and self._exit.pid != unit.main_pid:
            self._exit.close()
            self._exit = None
        if self._exit is None and unit.main_pid:
            self._exit = self.host.watch_exit(unit.main_pid)
        sources: list[Any] = [self._follower] if self._follower is not None else []
        if self._exit is not None and not self._exit.ended:
            sources.append(self._exit)
        return sources

    @property
    def ended(self) -> bool:
        """The main process that ``listen`` watches has ended."""
        return self._exit is not None and self._exit.ended

    def close(self) -> None:
        """Give back what ``listen`` opened."""
        for thing in (self._follower, self._exit):
            if thing is not None:
                thing.close()
        self._follower = None
        self._exit = None


def _not_asked(name: str, why: str) -> Callable[[Context], Signal]:
    def observe(context: Context) -> Signal:
        return context.signal(name, PENDING, f"not asked: {why}", "", "", "")

    return observe
