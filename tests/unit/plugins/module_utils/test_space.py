# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Room on file systems."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils import space
from ansible_collections.plumbline.sglang.plugins.module_utils.problem import Problem


def test_a_path_that_is_not_there_yet_is_measured_above(tmp_path: Path) -> None:
    assert space.existing_parent(str(tmp_path / "a" / "b")) == str(tmp_path)
    assert space.free_bytes(str(tmp_path / "a" / "b")) > 0


def test_enough_room_is_no_problem(tmp_path: Path) -> None:
    space.need(str(tmp_path / "x"), 1, "w", "a")


def test_too_little_room_says_what_is_needed_and_what_lies_there(tmp_path: Path) -> None:
    (tmp_path / "big").mkdir()
    (tmp_path / "big" / "file").write_bytes(b"x" * 100_000)
    (tmp_path / "small").write_bytes(b"x")
    with pytest.raises(Problem) as caught:
        space.need(str(tmp_path / "new"), 1 << 60, "model x", "Remove something.")
    assert caught.value.expected == "1048576.00 TiB free"
    assert caught.value.seen.index("big") < caught.value.seen.index("small")
    assert "Remove something." in caught.value.next


def test_a_file_with_two_names_counts_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 50_000)
    once = space.tree_bytes(str(tmp_path))
    os.link(tmp_path / "a", tmp_path / "b")
    assert space.tree_bytes(str(tmp_path)) == once
