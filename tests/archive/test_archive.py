# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The archive holds what an operator needs and nothing of the development, and works where there is no checkout."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.checkout import files
from runner.places import CHECKOUT

EXPECTED = {
    "CHANGELOG.rst",
    "CONTRIBUTING.md",
    "FILES.json",
    "LICENSE",
    "MANIFEST.json",
    "README.md",
    "changelogs",
    "docs",
    "inventory",
    "meta",
    "playbooks",
    "plugins",
    "roles",
}
CONTENT = ("docs", "inventory/multi_host", "inventory/single_host", "meta", "playbooks", "plugins", "roles")


@pytest.fixture(scope="module")
def names(archive: Path) -> set[str]:
    """The paths of all members of the archive."""
    with tarfile.open(archive) as tar:
        return {member.name.removeprefix("./").rstrip("/") for member in tar.getmembers()}


def test_nothing_of_the_development_is_in_it(names: set[str]) -> None:
    assert {name.split("/")[0] for name in names} - {""} <= EXPECTED
    parts = {part for name in names for part in name.split("/")}
    assert not {part for part in parts if part.startswith(".")}
    assert not parts & {"tests", "molecule", "lab", "ansible.cfg", "requirements", "__pycache__"}


def test_everything_that_an_operator_needs_is_in_it(names: set[str]) -> None:
    wanted = {name for name in files(CHECKOUT, *CONTENT) if not Path(name).name.startswith(".") and Path(name).name != "ansible.cfg"}
    assert wanted
    assert wanted - names == set()


@pytest.mark.parametrize("inventory", ["single_host", "multi_host"])
def test_a_plan_is_made_without_the_checkout(installed: Callable[..., str], tmp_path: Path, inventory: str) -> None:
    shutil.copytree(CHECKOUT / "inventory" / inventory, tmp_path / "inventory")
    shown = installed("ansible-playbook", "--inventory", str(tmp_path / "inventory"), "plumbline.sglang.plan_pd")
    assert "prefill-" in shown
    assert "decode-" in shown
    assert "router-" in shown


def test_the_documentation_of_a_module_is_found(installed: Callable[..., str]) -> None:
    shown = installed("ansible-doc", "--type", "module", "plumbline.sglang.plan")
    assert "plumbline.sglang.plan" in shown
    assert "RETURN VALUES" in shown
