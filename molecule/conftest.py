# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of a deployed PD group share: its hosts, its plan entries as they stand there, its key, and the playbooks on it."""

from __future__ import annotations

import json
import os
import pathlib
import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import testinfra.host
from faults.playbook import Playbook

HOSTS = {"prefill": "lab1", "decode": "lab2", "router": "lab3"}


def lab_host(name: str) -> testinfra.host.Host:
    """A lab host, as root over ssh the way an operator gets there."""
    config = pathlib.Path(os.environ["PLUMBLINE_LAB_HOME"]) / "ssh" / "ssh_config"
    return testinfra.get_host(f"ssh://{name}", ssh_config=str(config), sudo=True)


@pytest.fixture(scope="session")
def hosts() -> dict[str, testinfra.host.Host]:
    """Role -> host."""
    return {role: lab_host(name) for role, name in HOSTS.items()}


@pytest.fixture(scope="session")
def entries(hosts: dict[str, testinfra.host.Host]) -> dict[str, dict[str, Any]]:
    """Role -> plan entry, from /etc/sglang/instances of its host."""
    return {role: json.loads(host.check_output("cat /etc/sglang/instances/*.json")) for role, host in hosts.items()}


@pytest.fixture(scope="session")
def key(hosts: dict[str, testinfra.host.Host], entries: dict[str, dict[str, Any]]) -> str:
    """The API key of the PD group."""
    return hosts["router"].file(entries["router"]["credentials"][0]["path"]).content_string.strip()


class Verification(Playbook):
    """One run of verify_pd.yml, and the outcome as data, by role."""

    def __init__(self, *arguments: str) -> None:
        with tempfile.TemporaryDirectory() as directory:
            report = pathlib.Path(directory) / "outcome.json"
            super().__init__("playbooks/verify_pd.yml", "-e", f"verify_report={report}", *arguments)
            content = json.loads(report.read_text()) if report.exists() else {"instances": []}
        self.rows = {row["instance"].partition("-")[0]: row for row in content["instances"]}

    def __getitem__(self, role: str) -> dict[str, Any]:
        assert role in self.rows, self.output[-3000:]
        return self.rows[role]


@pytest.fixture(scope="session")
def verify() -> type[Verification]:
    """Ask verify_pd.yml."""
    return Verification


@pytest.fixture(scope="session")
def deploy() -> Callable[..., Playbook]:
    """Run deploy_pd.yml again."""
    return partial(Playbook, "playbooks/deploy_pd.yml")
