# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The launcher: keys reach the program's parsed arguments and nothing that is written."""

from __future__ import annotations

import importlib.util
import logging
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

LAUNCHER = pathlib.Path(__file__).parents[3] / "roles" / "instance" / "files" / "launch.py"
KEY = "planted-key-8f3a"

# A stand-in for smg: what the launcher calls of it, and a line in its log that gives the key away.
STAND_IN = """
import logging, sys, types
class Parsed(types.SimpleNamespace):
    pass
def parse_router_args(argv):
    return Parsed(argv=argv, api_key=None)
def launch_router(parsed):
    logging.basicConfig(level="INFO", format="%(message)s")
    print("ran with", "the key" if parsed.api_key == "planted-key-8f3a" else parsed.api_key, parsed.argv)
    logging.getLogger("smg.anywhere").info("server_args=%s", {"api_key": parsed.api_key})
    try:
        raise ValueError("logged " + parsed.api_key)
    except ValueError:
        logging.getLogger("smg.anywhere").exception("it failed")
    if "--crash" in parsed.argv:
        raise ValueError("uncaught " + parsed.api_key)
"""


@pytest.fixture
def launch() -> Iterator[Any]:
    spec = importlib.util.spec_from_file_location("launch_under_test", LAUNCHER)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    before = logging.getLogRecordFactory(), logging.Formatter.formatException, sys.excepthook
    yield module
    logging.setLogRecordFactory(before[0])
    logging.Formatter.formatException, sys.excepthook = before[1:]


def run(tmp_path: pathlib.Path, *words: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "smg").mkdir(exist_ok=True)
    (tmp_path / "smg" / "__init__.py").write_text("")
    (tmp_path / "smg" / "launch_router.py").write_text(STAND_IN)
    return subprocess.run(
        [sys.executable, str(LAUNCHER), *words], capture_output=True, text=True, env={"PYTHONPATH": str(tmp_path)}, timeout=60, check=False
    )


def test_the_key_reaches_the_program_and_no_output(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "api-key"
    file.write_text(KEY + "\n")
    result = run(tmp_path, "smg", "--credential", f"api-key={file}", "--", "--port", "8000")
    assert result.returncode == 0, result.stderr
    assert "ran with the key ['--port', '8000']" in result.stdout
    assert "server_args={'api_key': '***'}" in result.stderr
    assert KEY not in result.stdout + result.stderr


def test_the_key_is_in_no_traceback(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "api-key"
    file.write_text(KEY)
    result = run(tmp_path, "smg", "--credential", f"api-key={file}", "--", "--crash")
    assert result.returncode == 1
    assert "ValueError: logged ***" in result.stderr and "ValueError: uncaught ***" in result.stderr
    assert KEY not in result.stdout + result.stderr


def test_a_key_that_the_program_cannot_take_is_an_error(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "admin"
    file.write_text(KEY)
    result = run(tmp_path, "smg", "--credential", f"admin-api-key={file}", "--", "--port", "8000")
    assert result.returncode != 0
    assert "no argument 'admin_api_key'" in result.stderr
    assert KEY not in result.stdout + result.stderr


def test_an_empty_credential_file_is_an_error(tmp_path: pathlib.Path) -> None:
    (tmp_path / "api-key").write_text("\n")
    result = run(tmp_path, "smg", "--credential", f"api-key={tmp_path / 'api-key'}", "--")
    assert result.returncode != 0
    assert "is empty" in result.stderr


def test_the_programs_own_double_dash_is_kept(launch: Any, tmp_path: pathlib.Path) -> None:
    (tmp_path / "k").write_text(KEY)
    program, keys, arguments = launch.read_credentials(["sglang", "--credential", f"api-key={tmp_path / 'k'}", "--", "--a", "--", "b"])
    assert (program, keys, arguments) == ("sglang", {"api_key": KEY}, ["--a", "--", "b"])


def test_a_record_without_a_key_is_left_as_it_is(launch: Any) -> None:
    launch.redact([KEY])
    record = logging.getLogRecordFactory()("x", logging.INFO, "f", 1, "%d tokens, %s", (3, KEY), None)
    assert record.getMessage() == "3 tokens, ***"
