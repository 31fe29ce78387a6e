# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What another user may read, asked as that user."""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.accounts import NOBODY, Account, account, unreadable


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that everybody can reach; pytest's own are closed to others."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def user() -> Account:
    """Somebody whose rights count: root's would not."""
    return Account("nobody-at-all", NOBODY, NOBODY, False) if os.geteuid() == 0 else account(pwd.getpwuid(os.geteuid()).pw_name)


def test_what_is_closed_is_found(open_directory: Path, user: Account) -> None:
    good, closed = open_directory / "good", open_directory / "closed"
    for path, mode in ((good, 0o644), (closed, 0)):
        path.write_text("x")
        path.chmod(mode)
    absent = str(open_directory / "absent")
    assert unreadable([str(open_directory), str(good), str(closed), absent], user) == [str(closed), absent]


def test_a_closed_directory_closes_what_is_in_it(open_directory: Path, user: Account) -> None:
    inner = open_directory / "inner"
    inner.mkdir()
    (inner / "file").write_text("x")
    inner.chmod(0)
    assert unreadable([str(inner), str(inner / "file")], user) == [str(inner), str(inner / "file")]
    inner.chmod(0o755)
    assert unreadable([str(inner), str(inner / "file")], user) == []


def test_a_user_that_does_not_exist_yet_has_no_rights_of_its_own() -> None:
    one = account("no-such-user-here")
    assert (one.exists, one.uid) == (False, NOBODY)
    assert "does not exist yet" in one.shown
