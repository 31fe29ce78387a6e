# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""State files: whole or not there, and believed only where nobody else could have written them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.host import state_files


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "proofs" / "a.json"
    state_files.write(str(path), {"b": 1})
    assert state_files.read(str(path)) == {"b": 1}
    assert path.stat().st_mode & 0o777 == 0o644
    assert [file.name for file in path.parent.iterdir()] == ["a.json"]


def test_the_newest_stay(tmp_path: Path) -> None:
    for number in range(4):
        path = tmp_path / f"{number}.json"
        state_files.write(str(path), {}, keep=2)
        os.utime(path, (number, number))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["2.json", "3.json"]


def test_a_write_that_breaks_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    state_files.write(str(path), {"old": True})

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        state_files.write(str(path), {"new": True})
    assert state_files.read(str(path)) == {"old": True}
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize("text", ["", "{", "[1]", "null"])
def test_what_is_no_object_is_no_evidence(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    assert state_files.read(str(path)) is None


def test_what_others_may_write_is_no_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    state_files.write(str(path), {"forged": True})
    path.chmod(0o666)
    assert state_files.read(str(path)) is None
    path.chmod(0o644)
    link = tmp_path / "link.json"
    link.symlink_to(path)
    assert state_files.read(str(link)) is None
    real = os.fstat

    def stranger(handle: int) -> Any:
        facts = list(real(handle))
        facts[4] = os.geteuid() + 12345
        return os.stat_result(facts)

    monkeypatch.setattr(os, "fstat", stranger)
    assert state_files.read(str(path)) is None


def test_a_file_that_is_not_there_is_none(tmp_path: Path) -> None:
    assert state_files.read(str(tmp_path / "no.json")) is None
