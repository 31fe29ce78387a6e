# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the tests of this scenario deploy again."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Deploy:
    """One run of deploy_pd.yml: its exit status, its whole output, and what it says it changed."""

    def __init__(self, *arguments: str) -> None:
        command = ["ansible-playbook", "-i", "inventory/lab", "playbooks/deploy_pd.yml", *arguments]
        # Molecule asks for colours; here the output is read by a program.
        plain = {name: value for name, value in os.environ.items() if name not in ("ANSIBLE_FORCE_COLOR", "PY_COLORS", "FORCE_COLOR")}
        plain["ANSIBLE_NOCOLOR"] = "1"
        done = subprocess.run(command, cwd=ROOT, env=plain, capture_output=True, text=True, check=False, timeout=1200)
        self.status, self.output = done.returncode, done.stdout + done.stderr

    @property
    def changed(self) -> list[str]:
        """The changed results, as 'host: task (item)'."""
        found, task = [], ""
        for line in self.output.splitlines():
            if line.startswith("TASK ["):
                task = line[6 : line.rindex("]")]
            match = re.match(r"changed: \[(\w+)\](?: => \(item=(.*)\))?", line)
            if match:
                found.append(f"{match.group(1)}: {task}" + (f" ({match.group(2)})" if match.group(2) else ""))
        return found


@pytest.fixture(scope="session")
def deploy() -> type[Deploy]:
    """Run the playbook again."""
    return Deploy
