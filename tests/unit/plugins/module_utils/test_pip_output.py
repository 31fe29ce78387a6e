# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""pip's words as problems."""

from __future__ import annotations

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.releases.pip_output import explain, fetch_line

BAD_PIN = [
    "Looking in links: /srv/wheelhouse",
    "ERROR: Could not find a version that satisfies the requirement torch==9.9 (from versions: 2.12.0, 2.13.0+cpu)",
    "ERROR: No matching distribution found for torch==9.9",
]
UNREACHABLE = [
    "WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError: Failed to establish a new connection'",
    "ERROR: Could not find a version that satisfies the requirement torch==2.13.0 (from versions: none)",
    "ERROR: No matching distribution found for torch==2.13.0",
]


@pytest.mark.parametrize(
    ("rows", "seen", "step"),
    [
        (BAD_PIN, "torch==9.9 (there are: 2.12.0, 2.13.0+cpu)", "put that wheel into the wheelhouse"),
        (UNREACHABLE, "the package index cannot be reached", "PIP_INDEX_URL"),
        (["ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE."], "not the one the lock has the hash of", "which is right"),
        (["ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"], "full", "free space under /opt/r"),
        (["ERROR: x-1-cp312-cp312-linux_x86_64.whl is not a supported wheel on this platform."], "x-1-cp312", "same Python version"),
        (["ERROR: Package 'x' requires a different Python: 3.11.2 not in '>=3.12'"], "Python 3.11.2", "sglang_python"),
        (["ERROR: Failed building wheel for einops"], "einops is only there as source", "a wheel"),
    ],
)
def test_known_failures_have_a_cause_and_a_next_step(rows: list[str], seen: str, step: str) -> None:
    problem = explain(rows, "release x cannot be built", "the wheelhouse", "/opt/r", "3.11.2")
    assert seen in problem.seen
    assert step in f"{problem.next} {problem.expected}"
    assert str(problem).startswith("release x cannot be built\n  seen:")


def test_an_unknown_failure_quotes_pip() -> None:
    assert "ERROR: the moon is full" in explain(["Collecting x", "ERROR: the moon is full", "note"], "w", "s", "/p", "3").seen
    assert "Segmentation fault" in explain(["Collecting x", "Segmentation fault"], "w", "s", "/p", "3").seen


def test_downloads_are_told_with_their_size() -> None:
    assert fetch_line("  Downloading https://i.example/a/torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl (800.1 MB)") == (
        "fetching torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl (800.1 MB)"
    )
    assert fetch_line("  Downloading torch-2.13.0-py3-none-any.whl.metadata (30 kB)") is None
    assert fetch_line("Collecting torch==2.13.0") is None
