# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A problem as an operator wants to read it: what was seen, what was expected, what to do next."""

from __future__ import annotations

import errno
from collections.abc import Sequence


class Problem(Exception):
    """Work cannot go on.

    ``what``: the subject in a few words. ``seen``, ``expected``, ``next``: one sentence each; ``next`` may be several
    lines. No text may hold a secret.
    """

    def __init__(self, what: str, seen: str, expected: str, next: str) -> None:  # pylint: disable=redefined-builtin
        super().__init__(what)
        self.what = what
        self.seen = seen
        self.expected = expected
        self.next = next

    def __str__(self) -> str:
        return "\n".join(
            [
                self.what,
                "  seen:     " + indent(self.seen),
                "  expected: " + indent(self.expected),
                "  next:     " + indent(self.next),
            ]
        )

    def result(self) -> dict[str, str]:
        """The parts, for a module's result."""
        return {"msg": str(self), "seen": self.seen, "expected": self.expected, "next": self.next}


def of_storage(what: str, error: OSError) -> Problem:
    """What an error of the file system means for an operator: rights are told apart from storage that is full or failing."""
    if error.errno in (errno.EACCES, errno.EPERM):
        return Problem(
            what,
            str(error),
            "a user who may read and write there",
            "run the task as root (become); if it does, see whether the file system is mounted read-only or refuses root, as NFS may",
        )
    return Problem(what, str(error), "storage that can be read and written", "see whether it is full, read-only or failing, then run again")


def indent(text: str) -> str:
    """Lines after the first one aligned with it."""
    return text.strip().replace("\n", "\n            ")


def listed(items: Sequence[str], limit: int = 10) -> str:
    """``a, b, c and 7 more``; ``none`` for an empty list."""
    if not items:
        return "none"
    rest = len(items) - limit
    return ", ".join(items[:limit]) + (f" and {rest} more" if rest > 0 else "")
