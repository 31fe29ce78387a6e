# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbooks run from a plain checkout, wherever it lies and whatever it is called, without an installation."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import CHECKOUT, run_ansible


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what git knows or would add, as a fresh clone would hold it."""
    listing = ["git", "-C", str(CHECKOUT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    known = subprocess.run(listing, check=True, capture_output=True, text=True).stdout.split("\0")
    copy = tmp_path_factory.mktemp("plain") / "a checkout"
    for name in filter(None, known):
        source = CHECKOUT / name
        if source.is_symlink() or source.is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy / name, follow_symlinks=False)
    return copy


@pytest.mark.parametrize(
    ("directory", "inventory", "playbook"),
    [
        (".", "inventory/single_host", "playbooks/plan_pd.yml"),
        (".", "inventory/single_host", "plumbline.sglang.plan_pd"),
        ("playbooks", "../inventory/single_host", "plan_pd.yml"),
        ("playbooks", "../inventory/single_host", "plumbline.sglang.plan_pd"),
    ],
)
def test_a_plan_is_made_from_the_checkout(checkout: Path, tmp_path: Path, directory: str, inventory: str, playbook: str) -> None:
    shown = run_ansible(tmp_path, checkout / directory, "ansible-playbook", "--inventory", inventory, playbook)
    assert "prefill-" in shown


@pytest.mark.parametrize("directory", [".", "playbooks"])
def test_the_settings_hold_in_both_directories(checkout: Path, tmp_path: Path, directory: str) -> None:
    shown = run_ansible(tmp_path, checkout / directory, "ansible-config", "dump", "--only-changed", "--type", "all", "--format", "yaml")
    assert "PIPELINING" in shown.upper()
    # Host keys are checked unless someone decides otherwise.
    key = run_ansible(tmp_path, checkout / directory, "ansible-config", "dump", "--type", "base")
    assert "HOST_KEY_CHECKING" in key
    assert "HOST_KEY_CHECKING(default) = False" not in key
