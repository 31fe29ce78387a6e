# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One look at one instance: its unit, its log so far, then each signal in turn, then the verdict.

An observer belongs to one invocation. It remembers what was said before (log, a generation that succeeded, since when a
signal is in its state) and forgets everything when the unit's invocation changes and that is allowed.

systemd is asked once, and again when there is news of the run: its process or its control group has come to an end, or
systemd itself has said something of the unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Callable

from ..host.credentials import Redactor
from ..host.journal import Follower, JournalError, Record
from ..host.local import LocalHost
from ..host.systemd import SystemdError, UnitState
from ..host.watch import CgroupWatch, ExitWatch
from ..signals import bootstrap, http, identity, load, log, memory, process, router
from ..signals.base import PASSED, PENDING, UNKNOWN, Context, Signal, is_follower
from ..signals.log_view import Hit, LogView
from . import proof
from .verdict import EXPLAINS, REQUIRED, Verdict, decide

#: What is asked of a server once it says that it is ready, in this order: memory needs the model path that identity found.
_INSIDE: Mapping[str, Callable[[Context], Signal]] = {
    "identity": identity.observe,
    "bootstrap": bootstrap.observe,
    "memory": memory.observe,
    "load": load.observe,
}


@dataclass(frozen=True)
class Look:
    """What one look saw. ``started`` is the main process's start on the monotonic clock in seconds, 0.0 if it never was.

    ``proof`` is what was written when this invocation was first found ready, None where it never was.
    """

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
    proof: Mapping[str, Any] | None = None


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
        self._invocation = ""
        self._unit: UnitState | None = None
        self._follower: Follower | None = None
        self._exits: dict[int, ExitWatch] = {}
        self._cgroup: CgroupWatch | None = None
        self._forget(invocation)

    # --- one look -----------------------------------------------------------------------------------------------------

    def look(self, fresh: bool = True) -> Look:
        """Observe everything that may be observed now. ``fresh``: ask systemd, also where there has been no news of the run."""
        self.read_log()
        if fresh or self._unit is None or not self._heard_of:
            self._take_note()
            try:
                self._unit = self.host.unit(str(self.entry["unit"]))
            except SystemdError as error:
                return self.blind(str(error))
            self._adopt(self._unit)
            self.read_log()
        context = Context(
            entry=self.entry,
            host=self.host,
            unit=self._unit,
            log=self._log,
            invocation=self._invocation,
            deployment=self.deployment,
            named=bool(self.asked),
            redactor=self._redactor,
            memory=self._memory,
            proof=self._proof,
        )
        self._observe(context)
        return self._judge(context)

    def _observe(self, context: Context) -> None:
        """The signals in the order of their cost; those behind a closed gate say why they were not asked."""
        seen = context.seen
        seen["process"] = process.observe(context)
        seen["log"] = log.observe(context)
        # Where the process does not run, or another one holds its port, whoever answered would be somebody else.
        askable = bool(seen["process"].details.get("askable"))
        if self.kind == "router" and askable:
            seen["router"] = router.observe(context)
        elif self.kind == "follower" and askable and seen["log"].state == PASSED:
            seen["memory"] = memory.observe(context)
        elif self.kind not in ("router", "follower") and askable:
            seen["http"] = http.observe(context, partial(self._inside, context))
        why = "the server does not say that it is ready" if "http" in seen else "the process signal has not passed"
        for name in REQUIRED[self.kind]:
            if name not in seen:
                seen[name] = context.signal(name, PENDING, f"not asked: {why}", "", "", "")

    def _inside(self, context: Context) -> None:
        """What is worth asking of a server that says it is ready."""
        for name, observe in _INSIDE.items():
            if name not in REQUIRED[self.kind] and name != EXPLAINS:
                continue
            # How a run got its weights does not change any more, and finding it out reads the page table of every shard.
            kept = context.memory.get(EXPLAINS) if name == EXPLAINS else None
            context.seen[name] = kept or observe(context)
            if name == EXPLAINS and context.seen[name].details.get("explained") is not None:
                context.memory[EXPLAINS] = context.seen[name]

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
            proof=self._proof,
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
        self._memory: dict[str, Any] = {}
        self._since: dict[str, tuple[str, float]] = {}
        self._news = False
        self._empty = False
        self._gone: set[int] = set()
        content = self.host.read_state(path) if (path := proof.path_of(self.entry, invocation)) else None
        self._proof = content if proof.valid(content, self.entry, invocation) else None

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
        if self._follower is None or not self._follower.alive:
            return self.host.journal(self._invocation, self._log.cursor)
        records = self._follower.poll()
        self._news = self._news or any(record.about for record in records)
        return [record for record in records if not record.about]

    @property
    def progress(self) -> tuple[int, int, bool]:
        """Changes when there is something that is worth a look: stages and outcomes, fatal lines, words of systemd, an end."""
        view = self._log
        outcomes = sum(hit is not None for hit in (view.ready, view.warmup_passed, view.warmup_failed))
        return len(view.stages) + outcomes, len(view.fatals), self._news or self.ended

    def listen(self) -> list[Any]:
        """What to wait on for news of this run: its journal, the end of its main process and schedulers, its empty control group."""
        unit = self._unit
        # A journal that cannot be read once is not followed: its silence would pass for one.
        if self._invocation and not self._log.unreadable and (self._follower is None or not self._follower.alive):
            if self._follower is not None:
                self._follower.close()
            try:
                self._follower = self.host.follow(self._invocation, str(self.entry["unit"]), self._log.cursor)
            except JournalError as error:
                self._follower = None
                self._log.unreadable = str(error)
        pids = {unit.main_pid, *self._memory.get("ranks", ())} - self._gone - {0} if unit is not None and unit.main_pid else set()
        for pid in set(self._exits) - pids:
            self._exits.pop(pid).close()
        for pid in pids - set(self._exits):
            self._exits[pid] = self.host.watch_exit(pid)
        group = unit.control_group if unit is not None else ""
        if self._cgroup is None or self._cgroup.control_group != group:
            if self._cgroup is not None:
                self._cgroup.close()
            self._cgroup = self.host.watch_cgroup(group)
            self._empty = False
        sources: list[Any] = [self._follower] if self._follower is not None else []
        return [*sources, *self._exits.values(), *([] if self._empty else [self._cgroup])]

    @property
    def ended(self) -> bool:
        """Since the last look at the unit, a process of this run that ``listen`` watches has ended, or the last one of its group."""
        emptied = self._cgroup is not None and not self._empty and self._cgroup.emptied
        return emptied or any(watch.ended for watch in self._exits.values())

    def _take_note(self) -> None:
        """What has happened until now is seen by the look that follows; only what happens later is news."""
        self._news = False
        self._empty = self._cgroup is not None and self._cgroup.emptied
        for pid in [pid for pid, watch in self._exits.items() if watch.ended]:
            self._exits.pop(pid).close()
            self._gone.add(pid)

    @property
    def _heard_of(self) -> bool:
        """Whether silence means that nothing has changed: everything that would tell is listened to, and has told nothing."""
        followed = self._follower is not None and self._follower.alive
        watched = bool(self._exits) and all(watch.fileno() >= 0 for watch in self._exits.values())
        return followed and watched and not self._news and not self.ended

    def close(self) -> None:
        """Give back what ``listen`` opened."""
        for thing in (self._follower, self._cgroup, *self._exits.values()):
            if thing is not None:
                thing.close()
        self._follower = None
        self._cgroup = None
        self._exits = {}

    # --- evidence over time -------------------------------------------------------------------------------------------

    def record(self, content: Mapping[str, Any]) -> str:
        """Write the proof of this invocation, where it has none yet and its entry names a place; returns its path, else nothing."""
        path = proof.path_of(self.entry, self._invocation)
        if path and self._proof is None:
            try:
                self.host.write_state(path, content)
            except OSError:
                return ""
        return path
