# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What must hold on a host before anything is put on it: one small function per check, in one table. Reads, never writes.

A finding is ``{"check", "bucket", "seen", "expected", "next"}``. All findings are gathered before any is judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from . import machine as preflight_machine
from . import software as preflight_software
from .types import CLEAN, INCONCLUSIVE, PROBLEM, UNCHECKED, Check, Context, Finding, Found

BUCKETS = (PROBLEM, INCONCLUSIVE, UNCHECKED, CLEAN)
_TITLES = {
    PROBLEM: "problems",
    INCONCLUSIVE: "inconclusive",
    UNCHECKED: "could not be checked",
    CLEAN: "checked and clean",
}

CHECKS: Mapping[str, Check] = {**preflight_machine.CHECKS, **preflight_software.CHECKS}


@dataclass
class Report:
    """Every finding of one host. ``packages``: system packages that are missing and whose names are known."""

    findings: list[Finding] = field(default_factory=list)
    packages: list[str] = field(default_factory=list)

    def of(self, bucket: str) -> list[Finding]:
        return [finding for finding in self.findings if finding["bucket"] == bucket]

    def text(self, host: str) -> str:
        """The report for people: a line of counts, then everything that is not clean, problems first."""
        counts = ", ".join(f"{_TITLES[bucket]}: {len(self.of(bucket))}" for bucket in BUCKETS)
        rows = [f"preflight of {host}. {counts}"]
        for bucket in BUCKETS[:-1]:
            for finding in self.of(bucket):
                rows.append(f"{bucket.upper()} {finding['check']}")
                rows.extend(f"    {key + ':':<9} {_aligned(finding[key])}" for key in ("seen", "expected", "next") if finding[key])
        return "\n".join(rows)


def _aligned(text: str) -> str:
    return text.replace("\n", "\n" + " " * 14)


def run(context: Context, names: Iterable[str] = (), checks: Mapping[str, Check] | None = None) -> Report:
    """Run the named checks (none named: all). A check that fails itself is a finding too, never a crash.

    ``checks`` stands for the table of this module; tests hand in their own.
    """
    report = Report()
    checks = CHECKS if checks is None else checks
    wanted: Sequence[str] = list(names) or list(checks)
    for name in wanted:
        try:
            found: Iterable[Found] = list(checks[name](context))
        except Exception as error:  # pylint: disable=broad-except
            found = [Found(UNCHECKED, f"{type(error).__name__}: {error}", "the check runs to its end", "see whether the host is healthy")]
        for one in found:
            report.findings.append({"check": name, "bucket": one.bucket, "seen": one.seen, "expected": one.expected, "next": one.next})
            report.packages.extend(package for package in one.packages if package not in report.packages)
    return report
