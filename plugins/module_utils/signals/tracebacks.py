# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Chains of Python exceptions in a log, by the process that wrote them.

A chain is printed with its *first* cause on top and what came of it last: "libibverbs.so.1: cannot open shared object
file", then "Please install mooncake". The last line is what people quote; the first is what they have to mend.
"""

from __future__ import annotations

import re

_HEAD = "Traceback (most recent call last):"
_LINKS = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
#: ``pkg.Name: text`` or a bare ``Name``, at the beginning of a line.
_EXCEPTION = re.compile(r"^[A-Za-z_][\w.]*(: .*)?$")
_KEPT = 50


class Tracebacks:
    """Fed with a log's lines in order; ``chains`` holds each chain as a list of exception lines, first cause first."""

    def __init__(self) -> None:
        self.chains: list[list[str]] = []
        self._open: dict[int, list[str]] = {}  # inside a traceback: the chain it belongs to
        self._linked: dict[int, list[str]] = {}  # the chain that the next traceback of this process may continue
        self._joins: set[int] = set()

    def feed(self, pid: int, line: str) -> list[str] | None:
        """Take one line of process ``pid``; returns the chain that this line began or continued, else None."""
        if _HEAD in line:
            return self._begin(pid)
        if line.strip() in _LINKS:
            self._joins.add(pid)
            return None
        chain = self._open.get(pid)
        if chain is not None and not line.startswith((" ", "\t")) and _EXCEPTION.match(line):
            chain.append(line)
            self._linked[pid] = chain
            del self._open[pid]
            return chain
        return None

    def _begin(self, pid: int) -> list[str]:
        chain: list[str] = self._linked.get(pid, []) if pid in self._joins else []
        self._joins.discard(pid)
        if not any(chain is known for known in self.chains):
            self.chains.append(chain)
            del self.chains[:-_KEPT]
        self._open[pid] = chain
        return chain
