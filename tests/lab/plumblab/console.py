# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the person at the terminal sees: one line per step, and a sign of life in long ones."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Callable

# Shorter than the ten seconds after which silence is taken for a hang.
HEARTBEAT_SECONDS = 5.0


def say(text: str) -> None:
    """Print one line of progress at once; standard output is left to the results of a command."""
    print(text, file=sys.stderr, flush=True)


def size(count: int) -> str:
    """Return a byte count for people: '1.5 GiB'."""
    value = float(count)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"


class Heartbeat:
    """Says every few seconds that a step is still at work, with what it can tell about it."""

    def __init__(self, label: str, detail: Callable[[], str] = lambda: "") -> None:
        self._label = label
        self._detail = detail
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._start = time.monotonic()

    def elapsed(self) -> float:
        """Return the seconds since the step began."""
        return time.monotonic() - self._start

    def __enter__(self) -> Heartbeat:
        self._start = time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._done.wait(HEARTBEAT_SECONDS):
            detail = self._detail()
            say(f"  … {self._label}: {self.elapsed():.0f} s" + (f", {detail}" if detail else ""))
