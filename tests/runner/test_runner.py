# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The runner finds interpreters that run, keeps only complete environments, and hands ansible-test what it needs."""

from __future__ import annotations

import configparser
import subprocess
import sys
from pathlib import Path

import pytest

from runner import collection_tests, cores, interpreters, places, venvs
from runner.errors import RunnerError


@pytest.fixture(autouse=True)
def forget() -> None:
    """Make every test look at the machine anew."""
    for function in (interpreters.ask, interpreters.find, interpreters.directories):
        function.cache_clear()


def program(path: Path, text: str) -> str:
    """Write an executable shell script and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def answer(version: str, is_base: bool = True) -> str:
    """Return a shell command that answers as an interpreter of that version does."""
    major, minor = version.split(".")
    return f"""echo '[[{major}, {minor}], "/real/python{version}", {"true" if is_base else "false"}]'"""


def test_a_shim_that_finds_nothing_is_no_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "shims/python3.12", "echo 'python3.12: command not found' >&2; exit 127")
    program(tmp_path / "real/python3.12", answer("3.12"))
    monkeypatch.setenv("PATH", f"{tmp_path}/shims")
    monkeypatch.setenv("PLUMBLINE_PYTHONS", "")
    assert interpreters.find("3.12") is None
    assert interpreters.search_path() == ""
    forgotten = (interpreters.find, interpreters.directories)
    for function in forgotten:
        function.cache_clear()
    monkeypatch.setenv("PLUMBLINE_PYTHONS", f"{tmp_path}/none:{tmp_path}/real")
    assert interpreters.find("3.12") == interpreters.Interpreter("3.12", "/real/python3.12")


def test_a_virtual_environments_python_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "venv/python3.11", answer("3.11", is_base=False))
    monkeypatch.setenv("PATH", f"{tmp_path}/venv")
    assert interpreters.find("3.11") is None


def test_the_bare_name_counts_for_the_version_that_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin/python3", answer("3.13"))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin")
    assert [found.version for found in interpreters.available()] == ["3.13"]


@pytest.fixture
def requirements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A requirements directory with one environment, called tools, and a cache of its own."""
    directory = tmp_path / "requirements"
    directory.mkdir()
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    (directory / "tools.in").write_text(f"# Tools.\n# python: {version}\n", encoding="utf-8")
    (directory / "tools.txt").write_text("# nothing\n", encoding="utf-8")
    monkeypatch.setattr(venvs, "REQUIREMENTS", directory)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    base = interpreters.Interpreter(version, str(Path(sys.base_prefix) / "bin" / f"python{version}"))
    monkeypatch.setattr(interpreters, "find", lambda wanted: base if wanted == version else None)
    monkeypatch.setattr(interpreters, "available", lambda: [base])
    # Making a real one takes seconds; what is tried here is when one is made and when it counts as complete.
    monkeypatch.setattr(venvs, "_create", lambda path, python: program(path / "bin/python", "exit 0"))
    return directory


def test_an_environment_is_made_once_and_again_where_it_is_incomplete(requirements: Path) -> None:
    directory = venvs.ensure("tools")
    (directory.parent / "mark").touch()
    assert venvs.ensure("tools") == directory
    assert (directory.parent / "mark").exists()
    (directory.parent / venvs.STAMP).unlink()
    assert venvs.ensure("tools") == directory
    assert not (directory.parent / "mark").exists()


def test_changed_pins_are_another_environment(requirements: Path) -> None:
    first = venvs.ensure("tools")
    (requirements / "tools.txt").write_text("# something else\n", encoding="utf-8")
    assert venvs.ensure("tools") != first


def test_pins_that_cannot_be_installed_leave_no_complete_environment(requirements: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(venvs, "_create", lambda path, python: program(path / "bin/python", "exit 4"))
    with pytest.raises(RunnerError, match=r"ended with status 4; .* --no-deps --requirement"):
        venvs.ensure("tools")
    assert not list(places.cache().glob(f"venvs/*/{venvs.STAMP}"))


def test_an_unknown_environment_and_a_missing_python_are_explained(requirements: Path) -> None:
    with pytest.raises(RunnerError, match=r"no environment is called 'tool'\. There are: tools"):
        venvs.ensure("tool")
    (requirements / "tools.in").write_text("# python: 3.99\n", encoding="utf-8")
    with pytest.raises(RunnerError, match=r"needs Python 3\.99; running here: 3\..*PLUMBLINE_PYTHONS"):
        venvs.ensure("tools")


def test_a_core_without_a_python_is_left_out_but_not_all_of_them(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    oldest, *others = cores.CORES
    monkeypatch.setattr(venvs, "interpreter", lambda core: None if core == oldest else "a Python")
    assert cores.each(lambda core: 3) == 3
    assert f"{oldest}: not run, no Python" in capsys.readouterr().out
    monkeypatch.setattr(venvs, "interpreter", lambda core: None)
    with pytest.raises(RunnerError, match="no ansible-core could be run"):
        cores.each(lambda core: 0)
    assert others


def test_every_core_has_an_environment() -> None:
    assert set(cores.CORES) <= set(venvs.names())


def test_ansible_test_is_shown_the_content_alone(tmp_path: Path) -> None:
    shown = ("plugins/modules/plan.py", "roles/model/tasks/main.yml", "tests/unit/test_x.py", "tests/config.yml", "new.py")
    hidden = (".ci/run", "tests/lab/lab", "tests/venv", "molecule/default/molecule.yml", "playbooks/ansible.cfg", "ignored.py")
    for name in (*shown, *hidden):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / ".gitignore").write_text("ignored.py\n", encoding="utf-8")
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    subprocess.run(["git", "-C", str(tmp_path), "add", "plugins"], check=True)
    assert collection_tests.content_files(tmp_path) == sorted(shown)
    with pytest.raises(RunnerError, match="git cannot list the files"):
        collection_tests.content_files(tmp_path / "plugins" / "none")


def test_pips_settings_come_through_and_the_environments_win() -> None:
    listed = "\n".join(
        [
            ":env:.index-url='https://first.invalid/simple'",
            "global.extra-index-url='https://a.invalid\nhttps://b.invalid'".replace("\n", "\\n"),
            "global.index-url='https://second.invalid/simple'",
            "install.no-binary='x'",
        ]
    )
    parsed = configparser.RawConfigParser()
    parsed.read_string(collection_tests.pip_conf(listed, "/cache/pip"))
    assert parsed["global"]["index-url"] == "https://first.invalid/simple"
    assert parsed["global"]["extra-index-url"].split() == ["https://a.invalid", "https://b.invalid"]
    assert parsed["global"]["cache-dir"] == "/cache/pip"
    assert parsed["install"]["no-binary"] == "x"
