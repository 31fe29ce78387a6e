# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The one error type that reaches the person at the terminal."""

from __future__ import annotations


class LabError(Exception):
    """Says what was seen, what was expected, and what to do next."""

    def __init__(self, seen: str, expected: str, next_step: str) -> None:
        super().__init__(seen)
        self.seen = seen
        self.expected = expected
        self.next_step = next_step

    def __str__(self) -> str:
        return f"{self.seen}\n  expected: {self.expected}\n  next:     {self.next_step}"
