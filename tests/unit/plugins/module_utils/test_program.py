# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program on the hosts: built the same way twice, and run without Ansible by the Python that is there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.program import archive

ROOT = Path(__file__).resolve().parents[4] / "plugins" / "module_utils"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / archive.FILE
    path.write_bytes(archive.build(str(ROOT), "1.2.3"))
    path.chmod(0o755)
    return path


def run(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # Isolated and without site-packages: nothing but the archive and the standard library.
    return subprocess.run([sys.executable, "-I", "-S", str(program), *arguments], capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"]})


def an_entry(**changes: Any) -> dict[str, Any]:
    """An entry of a unit that no host has."""
    made = {"instance": "prefill-x-0", "unit": "sglang-prefill-no-such-unit.service", "role": "prefill", "address": "127.0.0.1", "port": 9}
    return {**made, "url": "http://127.0.0.1:9", "bootstrap_port": 8998, **changes}


def test_the_same_sources_give_the_same_bytes() -> None:
    assert archive.build(str(ROOT), "1.2.3") == archive.build(str(ROOT), "1.2.3")
    assert archive.build(str(ROOT), "1.2.3") != archive.build(str(ROOT), "1.2.4")


def test_it_says_which_version_and_sources_it_is(program: Path) -> None:
    assert run(program, "--version").stdout.startswith("1.2.3+")


def test_a_host_without_instances_is_told_so_and_not_called_ready(program: Path, tmp_path: Path) -> None:
    done = run(program, "look", "--instances", str(tmp_path / "none"))
    assert done.returncode == 1
    assert "none" in done.stderr and "written by a deploy" in done.stderr and "Traceback" not in done.stderr


def test_an_entry_that_is_cut_off_is_named(program: Path, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"instance": ')
    done = run(program, "look", "--instances", str(tmp_path))
    assert done.returncode == 1 and "a.json" in done.stderr and "Traceback" not in done.stderr


def test_one_look_at_an_instance_that_does_not_run_is_a_verdict_and_an_exit_status(program: Path, tmp_path: Path) -> None:
    entry = an_entry(host="here")
    (tmp_path / "prefill-x-0.json").write_text(json.dumps(entry))
    done = run(program, "look", "--json", "--instances", str(tmp_path))
    assert done.returncode == 1, done.stderr
    (item,) = json.loads(done.stdout)
    assert item["instance"] == "prefill-x-0" and item["verdict"] != "READY"
    assert "prefill-x-0" in run(program, "look", "--instances", str(tmp_path)).stdout


def test_what_cannot_be_proved_is_no_success(program: Path, tmp_path: Path) -> None:
    assert "cannot be read" in run(program, "prove", "--entry", str(tmp_path / "none")).stderr
    entry = an_entry(start_budget_seconds=1, paths={"state": str(tmp_path / "state")})
    (tmp_path / "entry.json").write_text(json.dumps(entry))
    done = run(program, "prove", "--entry", str(tmp_path / "entry.json"))
    assert done.returncode == 1 and "prefill-x-0: " in done.stdout, done.stderr
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("content", ["{}", "[]", '{"instance": "x", "role": "weird"}', "{"])
@pytest.mark.parametrize("command", ["look", "prove"])
def test_what_is_no_entry_is_named_with_its_file(program: Path, tmp_path: Path, command: str, content: str) -> None:
    file = tmp_path / "instances" / "x.json"
    file.parent.mkdir()
    file.write_text(content)
    done = run(program, command, *(["--instances", str(file.parent)] if command == "look" else ["--entry", str(file)]))
    assert done.returncode == 1
    assert str(file) in done.stderr and "deploy this host again" in done.stderr and "Traceback" not in done.stderr


def test_an_entry_without_a_host_is_looked_at_all_the_same(program: Path, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps(an_entry()))
    done = run(program, "look", "--instances", str(tmp_path))
    assert "prefill-x-0" in done.stdout and "Traceback" not in done.stderr


def test_a_full_standard_output_is_no_success_and_no_traceback(program: Path, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps(an_entry()))
    with open("/dev/full", "w", encoding="utf-8") as full:
        command = [sys.executable, "-I", "-S", str(program), "look", "--instances", str(tmp_path)]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert "could not be written" in done.stderr and "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
