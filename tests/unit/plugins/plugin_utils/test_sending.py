# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files are sent in pieces, from any offset, and their hash is that of the whole."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleError

from ansible_collections.plumbline.sglang.plugins.plugin_utils import sending


def shell(command: str, data: bytes) -> dict[str, Any]:
    done = subprocess.run(["/bin/sh", "-c", command], input=data, capture_output=True, check=False)
    return {"rc": done.returncode, "stderr": done.stderr.decode()}


@pytest.fixture
def local(tmp_path: Path) -> Path:
    path = tmp_path / "weights of mine"
    path.write_bytes(os.urandom((5 << 20) + 123))
    return path


def send(local: Path, remote: Path, offset: int = 0, run: Any = shell) -> str:
    return sending.send(str(local), str(remote), local.stat().st_size, offset, run, lambda text: None, "weights")


@pytest.mark.parametrize("offset", [0, 1, (3 << 20) + 17, (5 << 20) + 123])
def test_from_any_offset_the_file_is_whole(tmp_path: Path, local: Path, offset: int) -> None:
    remote = tmp_path / "it's there"
    remote.write_bytes(local.read_bytes()[:offset])
    assert send(local, remote, offset) == hashlib.sha256(local.read_bytes()).hexdigest()
    assert remote.read_bytes() == local.read_bytes()


def test_a_piece_may_be_sent_twice(tmp_path: Path, local: Path) -> None:
    remote = tmp_path / "remote"
    remote.touch()

    def twice(command: str, data: bytes) -> dict[str, Any]:
        shell(command, data[: len(data) // 2])
        return shell(command, data)

    send(local, remote, run=twice)
    assert remote.read_bytes() == local.read_bytes()


def test_a_host_that_cannot_write_says_why(tmp_path: Path, local: Path) -> None:
    with pytest.raises(AnsibleError, match=r"weights could not be written to .*No such file or directory"):
        send(local, tmp_path / "missing" / "remote")


@pytest.mark.parametrize("change", [-1, 1])
def test_a_file_that_changes_on_the_controller_is_refused(tmp_path: Path, local: Path, change: int) -> None:
    size = local.stat().st_size
    if change < 0:
        os.truncate(local, size - 1)
    else:
        with local.open("ab") as stream:
            stream.write(b"x")
    remote = tmp_path / "remote"
    remote.touch()
    with pytest.raises(AnsibleError, match="changed on the controller"):
        sending.send(str(local), str(remote), size, 0, shell, lambda text: None, "weights")


def test_pieces_grow_and_shrink_with_the_line() -> None:
    piece = sending.PieceSize()
    for _turn in range(9):
        piece.took(0.1)
    assert piece.size == 64 << 20
    piece.took(2.0)
    assert piece.size == 64 << 20
    piece.took(9.0)
    assert piece.size == 32 << 20
