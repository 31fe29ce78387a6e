# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans of the inventories of this collection, made by the real action plugin: written as fixtures, compared by the tests.

Run it after a change that is meant to alter a plan, and read the difference:
    python3 tests/unit/update_plan_fixtures.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "unit" / "fixtures" / "plans"
INVENTORIES = ("lab", "multi_host", "single_host")
# What a plan may take from the controller's environment, fixed: the same fixtures on every machine.
LAB_HOME = "/nonexistent/plumbline-lab"


def run(playbook: Path, inventory: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """ansible-playbook with this checkout as the collection, whatever the checkout's own path is."""
    with tempfile.TemporaryDirectory() as scratch:
        namespace = Path(scratch) / "ansible_collections" / "plumbline"
        namespace.mkdir(parents=True)
        (namespace / "sglang").symlink_to(ROOT)
        (Path(scratch) / "ansible.cfg").write_text("[defaults]\n", encoding="utf-8")
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "SGLANG_", "PLUMBLINE_"))}
        clean.update(
            ANSIBLE_COLLECTIONS_PATH=scratch,
            ANSIBLE_CONFIG=f"{scratch}/ansible.cfg",
            ANSIBLE_HOME=f"{scratch}/home",
            ANSIBLE_LOCAL_TEMP=f"{scratch}/tmp",
            ANSIBLE_NOCOLOR="1",
            PLUMBLINE_LAB_HOME=LAB_HOME,
            **(environment or {}),
        )
        command = [sys.executable, "-m", "ansible.cli.playbook", "-i", str(inventory), str(playbook), *arguments]
        return subprocess.run(command, env=clean, cwd=scratch, capture_output=True, text=True, check=False, timeout=300)


def shown_plan(stdout: str) -> dict[str, Any]:
    """The plan as ``show: json`` prints it among the other output."""
    lines = stdout.splitlines()
    return json.loads("\n".join(lines[lines.index("{") : lines.index("}") + 1]))


def planned(inventory: Path, *arguments: str) -> dict[str, Any]:
    """The plan of an inventory through the real playbook."""
    result = run(ROOT / "playbooks" / "plan_pd.yml", inventory, "-e", "plan_format=json", *arguments)
    if result.returncode:
        raise RuntimeError(f"{inventory}: exit {result.returncode}\n{result.stdout}\n{result.stderr}")
    return shown_plan(result.stdout)


def fixture(name: str) -> Path:
    """The file that holds the plan of an inventory."""
    return FIXTURES / f"{name}.json"


def main() -> None:
    """Write every fixture anew."""
    for name in INVENTORIES:
        text = json.dumps(planned(ROOT / "inventory" / name), indent=1, sort_keys=True, ensure_ascii=False)
        fixture(name).write_text(text + "\n", encoding="utf-8")
        print(fixture(name).relative_to(ROOT))


if __name__ == "__main__":
    main()
