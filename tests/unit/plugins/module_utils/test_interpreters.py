# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which interpreter a release is built with."""

from __future__ import annotations

import errno
import signal
import sys
from pathlib import Path

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.host import command
from ansible_collections.plumbline.sglang.plugins.module_utils.planning import locks
from ansible_collections.plumbline.sglang.plugins.module_utils.problem import Problem
from ansible_collections.plumbline.sglang.plugins.module_utils.releases import interpreters, wheels
from ansible_collections.plumbline.sglang.plugins.module_utils.releases.interpreters import Interpreter

PINS = wheels.pins(locks.parse("torch==2.13.0\nsix==1.16\n"))
DIRECTORIES = ("/usr/local/bin", "/usr/bin")


def a_release(wheelhouse: Path | None = None, setting: str = "auto") -> dict[str, object]:
    return {"id": "x-1", "interpreter": setting, "wheelhouse": str(wheelhouse) if wheelhouse else None}


def these(*minors: int):
    present = {f"/usr/bin/python3.{minor}": Interpreter(f"/usr/bin/python3.{minor}", (3, minor, 1), "x86_64", True) for minor in minors}
    return present.get


def fill(directory: Path, *names: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    for name in names:
        (directory / name).touch()
    return directory


def test_the_newest_one_without_a_wheelhouse() -> None:
    assert interpreters.choose(a_release(), PINS, these(11, 12), DIRECTORIES).path == "/usr/bin/python3.12"


def test_the_one_that_the_wheelhouse_serves(tmp_path: Path) -> None:
    fill(tmp_path / "cp311", "torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl", "six-1.16-py3-none-any.whl")
    fill(tmp_path / "cp312", "six-1.16-py3-none-any.whl")
    assert interpreters.choose(a_release(tmp_path), PINS, these(11, 12, 13), DIRECTORIES).path == "/usr/bin/python3.11"


def test_wheels_may_lie_in_the_wheelhouse_itself(tmp_path: Path) -> None:
    fill(tmp_path, "torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl", "six-1.16-py3-none-any.whl")
    assert interpreters.choose(a_release(tmp_path), PINS, these(11, 13), DIRECTORIES).path == "/usr/bin/python3.11"


def test_missing_wheels_are_named_for_the_best_interpreter(tmp_path: Path) -> None:
    fill(tmp_path / "cp311", "torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl")
    with pytest.raises(Problem) as caught:
        interpreters.choose(a_release(tmp_path), PINS, these(11, 12), DIRECTORIES)
    assert "six==1.16" in caught.value.seen
    assert "torch" not in caught.value.seen
    assert f"{tmp_path}/cp311" in caught.value.expected


def test_no_interpreter_says_where_it_was_looked_for() -> None:
    with pytest.raises(Problem) as caught:
        interpreters.choose(a_release(), PINS, these(), DIRECTORIES)
    assert "python3.13, python3.12, python3.11 in /usr/local/bin:/usr/bin" in caught.value.seen
    assert "apt install" in caught.value.next


def test_a_given_interpreter_that_is_not_there() -> None:
    with pytest.raises(Problem) as caught:
        interpreters.choose(a_release(setting="/opt/py/bin/python3.12"), PINS, these(11), DIRECTORIES)
    assert "/opt/py/bin/python3.12" in caught.value.seen


def test_a_wheelhouse_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Problem) as caught:
        interpreters.choose(a_release(tmp_path / "nowhere"), PINS, these(11), DIRECTORIES)
    assert str(tmp_path / "nowhere") in caught.value.seen


def test_an_interpreter_without_venv_names_the_package() -> None:
    with pytest.raises(Problem) as caught:
        interpreters.need_venv(a_release(), Interpreter("/usr/bin/python3.11", (3, 11, 2), "x86_64", False))
    assert "python3.11-venv" in caught.value.next


def test_a_real_interpreter_is_asked() -> None:
    one = interpreters.probe(sys.executable)
    assert one is not None
    assert one.version == sys.version_info[:3]
    assert interpreters.probe("/nowhere/python3.11") is None
    assert interpreters.probe("/bin/true") is None


@pytest.mark.parametrize(
    "body", ["exec sleep 30", f"kill -{int(signal.SIGKILL)} $$", "echo MemoryError >&2; exit 1"], ids=["too slow", "killed", "out of memory"]
)
def test_an_interpreter_that_could_not_be_asked_is_not_called_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    path = tmp_path / "python3.11"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    monkeypatch.setattr(interpreters, "run", lambda argv, timeout: command.run(argv, timeout=2))
    with pytest.raises(interpreters.Unanswered):
        interpreters.ask_interpreter(str(path))
    assert interpreters.probe(str(path)) is None


@pytest.mark.parametrize(("number", "absent"), [(errno.ENOMEM, False), (errno.EAGAIN, False), (errno.ENOEXEC, True), (errno.ENOTDIR, True)])
def test_a_host_that_cannot_start_a_program_says_nothing_of_the_interpreter(monkeypatch: pytest.MonkeyPatch, number: int, absent: bool) -> None:
    def fail(argv: list[str], timeout: float) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr(interpreters, "run", fail)
    if absent:
        assert interpreters.ask_interpreter("/usr/bin/python3.11") is None
    else:
        with pytest.raises(interpreters.Unanswered):
            interpreters.ask_interpreter("/usr/bin/python3.11")
