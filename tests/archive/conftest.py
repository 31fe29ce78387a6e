# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The built archive, an installation of it, and a way to run Ansible's programs as an operator elsewhere would."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.places import CHECKOUT


def _run_ansible(home: Path, directory: Path, *command: str, **variables: str) -> str:
    """Run one of Ansible's programs of this environment in a directory, without settings of this machine's user.

    Returns its output; fails the test with all of it where the exit status is not zero.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    environment |= {"ANSIBLE_HOME": str(home), "ANSIBLE_NOCOLOR": "1", "LC_ALL": "C.UTF-8", **variables}
    program = Path(sys.executable).parent / command[0]
    done = subprocess.run(
        [str(program), *command[1:]], cwd=directory, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def run_ansible() -> Callable[..., str]:
    """Runs one of Ansible's programs: home, directory, program, its arguments; returns the output."""
    return _run_ansible


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive that a release would publish."""
    target = tmp_path_factory.mktemp("archive")
    _run_ansible(target / "home", target, "ansible-galaxy", "collection", "build", str(CHECKOUT), "--output-path", str(target))
    (built,) = target.glob("*.tar.gz")
    return built


@pytest.fixture(scope="session")
def installed(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Runs Ansible in an empty directory outside the checkout, with the archive installed in a collections path of its own."""
    place = tmp_path_factory.mktemp("operator")
    collections = place / "collections"
    _run_ansible(place, place, "ansible-galaxy", "collection", "install", str(archive), "--offline", "--collections-path", str(collections))
    (place / "work").mkdir()

    def run(*command: str) -> str:
        return _run_ansible(place, place / "work", *command, ANSIBLE_COLLECTIONS_PATH=str(collections))

    return run
