# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the log of one invocation has said so far: stages with their times, outcomes, fatal lines, causes, last words."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..host.credentials import Redactor
from ..host.journal import Record, lines_of
from .log_patterns import (
    ANSI,
    FATAL,
    FATAL_AT_START,
    LOADING_BAR,
    NOTE,
    PREFIX,
    READY,
    REQUEST,
    RESOLVED,
    STAGE,
    UP,
    WARMUP_FAILED,
    WARMUP_PASSED,
    Row,
    rows_of,
)
from .tracebacks import Tracebacks

_LAST_LINES = 40
_LINE_CHARACTERS = 400
_NOTES = 50


@dataclass(frozen=True)
class Hit:
    """A row of the table, met in the log: ``at`` is seconds on the host's monotonic clock."""

    row: Row
    line: str
    at: float

    def as_dict(self, started: float) -> dict[str, Any]:
        """For a module's result; ``seconds`` count from the start of the main process."""
        return {"stage": self.row.name, "label": self.row.label, "seconds": round(self.at - started, 3), "line": self.line}


class LogView:
    """Fed with the journal of one invocation, in order and once. Holds no secret: lines are redacted on their way in."""

    def __init__(self, role: str, redactor: Redactor | None = None) -> None:
        self._role = role
        self._rows = rows_of(role)
        self._redactor = redactor or Redactor()
        self._tracebacks = Tracebacks()
        self._fatal_chain: list[str] | None = None
        self.stages: list[Hit] = []
        self.ready: Hit | None = None
        self.warmup_passed: Hit | None = None
        self.warmup_failed: Hit | None = None
        self.fatals: list[Hit] = []
        self.notes: deque[Hit] = deque(maxlen=_NOTES)
        self.last_lines: deque[str] = deque(maxlen=_LAST_LINES)
        self.loading_percent: int | None = None
        #: What the engine says that it resolved for itself, by the names of its arguments.
        self.resolved: dict[str, str] = {}
        self.records = 0
        self.cursor = ""
        self.unreadable = ""

    def feed(self, records: Iterable[Record]) -> None:
        """Take the next records."""
        for record in records:
            self.records += 1
            self.cursor = record.cursor or self.cursor
            for raw in lines_of(record.message):
                self._line(self._redactor.text(ANSI.sub("", raw)), record)

    def _line(self, line: str, record: Record) -> None:
        if REQUEST.search(line):
            return  # a prompt may quote any line, fatal ones too, and is no last word of the engine
        painted = LOADING_BAR.search(line)
        if painted:
            self.loading_percent = int(painted.group(1))
            return  # repaints of a bar are no last words
        short = line if len(line) <= _LINE_CHARACTERS else line[: _LINE_CHARACTERS - 1] + "…"
        self.last_lines.append(short)
        chain = self._tracebacks.feed(record.pid, line)
        for resolved in RESOLVED:
            for name, value in resolved.findall(line) if len(self.resolved) < len(RESOLVED) else ():
                self.resolved.setdefault(name, value)
        for row in self._rows:
            if row.regex.search(line):
                self._hit(Hit(row, short, record.monotonic), chain)

    def _hit(self, hit: Hit, chain: list[str] | None) -> None:
        kind = hit.row.kind
        if kind == STAGE:
            # Every rank prints most stages: the first one counts.
            if all(seen.row is not hit.row for seen in self.stages):
                self.stages.append(hit)
        elif kind == READY:
            self.ready = self.ready or hit
        elif kind == WARMUP_PASSED:
            self.warmup_passed = self.warmup_passed or hit
        elif kind == WARMUP_FAILED:
            self.warmup_failed = self.warmup_failed or hit
        elif kind == FATAL or (kind == FATAL_AT_START and self.ready is None):
            self.fatals.append(hit)
            if chain is not None and self._fatal_chain is None:
                self._fatal_chain = chain
        elif kind in (NOTE, FATAL_AT_START):
            self.notes.append(hit)

    @property
    def complete(self) -> bool:
        """Whether the journal still holds the lines with which the start of this run ended."""
        ended = self.ready is not None and (self.warmup_passed is not None or self._role == "regular")
        return ended or any(hit.row.name in UP for hit in self.stages)

    @property
    def last_stage(self) -> Hit | None:
        """How far the start has come."""
        return self.ready or (self.stages[-1] if self.stages else None)

    @property
    def fatal(self) -> Hit | None:
        """The fatal line that says most: the first one that is not generic, else the first one."""
        return next((hit for hit in self.fatals if not hit.row.generic), self.fatals[0] if self.fatals else None)

    @property
    def chain(self) -> list[str]:
        """The exceptions behind a failure, first cause first: those of a fatal line; else, where no line says what failed, the
        last ones printed. An exception that was logged and survived is not blamed for a failure that explains itself."""
        if self._fatal_chain:
            return self._fatal_chain
        if self.fatal and not self.fatal.row.generic:
            return []
        chains = [chain for chain in self._tracebacks.chains if chain]
        return chains[-1] if chains else []

    @property
    def cause(self) -> str:
        """In one line, why this run is in trouble: the first cause of its exceptions, else its fatal line.

        Empty where the log shows neither.
        """
        chain = self.chain
        if chain:
            text = chain[0][:_LINE_CHARACTERS]
            return text if len(chain) == 1 else f"{text} (it became: {chain[-1][:_LINE_CHARACTERS]})"
        return PREFIX.sub("", self.fatal.line) if self.fatal else ""

    def words(self, count: int = 20) -> list[str]:
        """The last lines, oldest first."""
        return list(self.last_lines)[-count:]
