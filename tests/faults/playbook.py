# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A playbook of the collection, run on the lab as an operator runs it in a checkout."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: What molecule and CI set to get colours; here the output is read by a program.
_COLOURS = ("ANSIBLE_FORCE_COLOR", "PY_COLORS", "FORCE_COLOR")


class Playbook:
    """One run, at its end: exit status and whole output. ``path`` is relative to the checkout, or absolute."""

    def __init__(self, path: str, *arguments: str) -> None:
        command = ["ansible-playbook", "-i", "inventory/lab", path, *arguments]
        plain = {name: value for name, value in os.environ.items() if name not in _COLOURS}
        done = subprocess.run(command, cwd=ROOT, env={**plain, "ANSIBLE_NOCOLOR": "1"}, capture_output=True, text=True, check=False, timeout=1200)
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
