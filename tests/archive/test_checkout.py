# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbooks run from a plain checkout, wherever it lies and whatever it is called, without an installation."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.checkout import files
from runner.places import CHECKOUT

Ansible = Callable[..., str]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what git knows or would add, as a fresh clone would hold it."""
    copy = tmp_path_factory.mktemp("plain") / "a checkout"
    for name in files(CHECKOUT):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(CHECKOUT / name, copy / name, follow_symlinks=False)
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
def test_a_plan_is_made_from_the_checkout(
    run_ansible: Ansible, checkout: Path, tmp_path: Path, directory: str, inventory: str, playbook: str
) -> None:
    shown = run_ansible(tmp_path, checkout / directory, "ansible-playbook", "--inventory", inventory, playbook)
    assert "prefill-" in shown


@pytest.mark.parametrize("directory", [".", "playbooks"])
def test_the_settings_hold_in_both_directories(run_ansible: Ansible, checkout: Path, tmp_path: Path, directory: str) -> None:
    shown = run_ansible(tmp_path, checkout / directory, "ansible-config", "dump", "--format", "json", "--type", "base")
    settings = {setting["name"]: setting["value"] for setting in json.loads(shown) if "name" in setting}
    assert settings["ANSIBLE_PIPELINING"] is True
    # Host keys are checked unless someone decides otherwise.
    assert settings["HOST_KEY_CHECKING"] is True
