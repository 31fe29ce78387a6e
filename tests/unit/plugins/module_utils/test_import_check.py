# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Imports in a release, and their first cause."""

from __future__ import annotations

import json
import sys

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.releases import import_check

CHAIN = [
    ["ImportError", "Please install mooncake by following the instructions"],
    ["ImportError", "libibverbs.so.1: cannot open shared object file: No such file or directory"],
]


def failed() -> import_check.Import:
    return import_check.parse("mooncake.engine", 0, ["noise", "plumbline-import:" + json.dumps(CHAIN)])


def test_the_first_cause_is_named_and_not_the_last_line() -> None:
    one = failed()
    assert not one.ok
    assert one.library == "libibverbs.so.1"


@pytest.mark.parametrize(
    ("family", "step"),
    [("Debian", "install libibverbs1 (it holds libibverbs.so.1)"), ("RedHat", "install libibverbs (it"), ("", "the package that holds libibverbs.so.1")],
)
def test_the_package_to_install_is_named_by_family(family: str, step: str) -> None:
    problem = import_check.to_problem([failed()], "release x", family)
    assert step in problem.next
    assert "libibverbs.so.1: cannot open" in problem.seen
    assert "Please install mooncake" in problem.seen


def test_too_old_a_c_library_is_told_as_such() -> None:
    one = import_check.Import("torch", ["ImportError: /lib/libc.so.6: version `GLIBC_2.34' not found (required by x)"])
    assert "wheels made for it" in import_check.to_problem([one], "release x", "Debian").next


def test_a_crash_is_no_success() -> None:
    assert import_check.parse("torch", -11, []).causes == ["importing torch was ended by signal 11 without an answer"]
    assert not import_check.parse("torch", 0, ["plumbline-import:{torn"]).ok


def test_real_imports() -> None:
    good, bad, absent = import_check.check(sys.executable, ["json.decoder", "no_such_module", "sgl_kernel"])
    assert good.ok
    assert bad.causes == ["ModuleNotFoundError: No module named 'no_such_module'"]
    assert absent.causes == ["ModuleNotFoundError: No module named 'sgl_kernel'"]


def test_an_interpreter_that_is_gone() -> None:
    assert "cannot be run" in import_check.check("/nowhere/python", ["json"])[0].causes[0]
