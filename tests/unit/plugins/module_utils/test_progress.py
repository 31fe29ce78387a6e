# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Progress files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils import progress


def texts(path: Path) -> list[str]:
    lines = [progress.parse_line(row) for row in path.read_text(encoding="utf-8").splitlines()]
    return [line.text for line in lines if line]


def test_the_first_line_names_the_process(tmp_path: Path) -> None:
    progress.Progress(str(tmp_path / "p"))
    mark, pid, born = texts(tmp_path / "p")[0].split()
    assert (mark, int(pid)) == ("@pid", os.getpid())
    assert int(born) == progress.start_time(os.getpid())


def test_lines_hold_no_secret_no_control_character_and_no_mark(tmp_path: Path) -> None:
    one = progress.Progress(str(tmp_path / "p"))
    one.line("from https://user:hunter2@index.example/simple\nsecond\x1b[31m")
    one.line("@pid 1 1")
    one.line("  ")
    assert texts(tmp_path / "p")[1:] == ["from https://<hidden>@index.example/simple second [31m", "pid 1 1"]


def test_a_beat_is_only_written_after_silence(tmp_path: Path) -> None:
    now = [100.0]
    one = progress.Progress(str(tmp_path / "p"), clock=lambda: now[0])
    one.line("start")
    now[0] = 104.0
    assert not one.beat(lambda: "early")
    now[0] = 105.0
    assert one.beat(lambda: "still here")
    assert texts(tmp_path / "p")[1:] == ["start", "still here"]


def test_work_goes_on_where_progress_cannot_be_written(tmp_path: Path) -> None:
    one = progress.Progress(str(tmp_path / "missing" / "p"))
    one.line("x")
    assert one.path is None
    progress.Progress(None).line("x")


def test_a_link_in_the_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("precious")
    (tmp_path / "p").symlink_to(tmp_path / "target")
    progress.Progress(str(tmp_path / "p")).line("x")
    assert (tmp_path / "target").read_text() == "precious"


def test_the_start_time_is_found_behind_any_command_name() -> None:
    tail = " ".join(str(number) for number in range(4, 30))
    assert progress.parse_start_time(f"7 (a) b (c) S {tail}") == 22
    assert progress.parse_start_time("gone") is None


@pytest.mark.parametrize(("count", "text"), [(512, "512 B"), (3 << 20, "3.0 MiB"), (1825361100, "1.7 GiB"), (3 << 40, "3.00 TiB")])
def test_bytes_for_people(count: int, text: str) -> None:
    assert progress.human_bytes(count) == text


@pytest.mark.parametrize("row", ["", "no stamp", "12.5"])
def test_what_is_no_line(row: str) -> None:
    assert progress.parse_line(row) is None
