# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An error of the file system, as an operator wants to read it."""

from __future__ import annotations

import errno

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.problem import of_storage


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM])
def test_a_want_of_rights_asks_for_rights(number: int) -> None:
    problem = of_storage("model x", PermissionError(number, "not you", "/srv/models/x"))
    assert "/srv/models/x" in problem.seen
    assert "become" in problem.next


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_other_errors_ask_for_a_look_at_the_storage(number: int) -> None:
    problem = of_storage("model x", OSError(number, "not now", "/srv/models/x"))
    assert "full, read-only or failing" in problem.next
    assert "become" not in problem.next
