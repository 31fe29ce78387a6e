# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a managed host has of Ansible: an interpreter, ansible.module_utils, one module and the collection's module_utils.

Nothing else can be imported there, neither a package of this environment nor one of the interpreter's own site-packages: a
module that needs one says so here. Everything lies where each user of this machine may read it, so that a module can be run
without rights.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ansible

from runner import interpreters
from runner.places import CHECKOUT

NOBODY = 65534
SECONDS = 60
SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"

#: A systemctl and a journalctl: a unit that is not installed, one that runs as the process that ``UNIT_PID`` names, and nothing logged.
_SYSTEMCTL = """#!/bin/sh
for unit; do :; done
if [ "$unit" = "--version" ]; then echo "systemd 252 (252.39-1~deb12u1)"; exit 0; fi
if [ -z "$UNIT_PID" ]; then printf 'LoadState=not-found\\nActiveState=inactive\\nSubState=dead\\nMainPID=0\\n'; exit 0; fi
printf 'LoadState=loaded\\nActiveState=active\\nSubState=running\\nMainPID=%s\\nExecMainPID=%s\\n' "$UNIT_PID" "$UNIT_PID"
printf 'InvocationID=0f3c8a0c6a8e6f4f9a54f4b9a0ddc0ff\\nControlGroup=/system.slice/%s\\n' "$unit"
"""
_JOURNALCTL = "#!/bin/sh\nexit 0\n"


@dataclass(frozen=True)
class Answer:
    """What a module printed: its result where it is one, and all of its output."""

    result: dict[str, Any] | None
    output: str

    @property
    def failed(self) -> bool:
        """Whether the task would fail."""
        return self.result is None or bool(self.result.get("failed"))


@dataclass(frozen=True)
class Call:
    """How a module is run: its parameters, and what the host is like."""

    parameters: Mapping[str, Any]
    check: bool = False
    unprivileged: bool = False
    path: str = SYSTEM_PATH
    environment: Mapping[str, str] = field(default_factory=dict)


class ManagedHost:
    """Runs modules of the collection as a connection would."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.chmod(0o755)
        self._lay()
        self.python = self._interpreter()

    def _lay(self) -> None:
        """Copy what Ansible would send."""
        here, there = Path(ansible.__file__).parent, self.root / "python" / "ansible"
        shutil.copytree(here / "module_utils", there / "module_utils", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(here / "release.py", there)
        (there / "__init__.py").touch()
        plugins = self.root / "python" / "ansible_collections" / "plumbline" / "sglang" / "plugins"
        for name in ("modules", "module_utils"):
            shutil.copytree(CHECKOUT / "plugins" / name, plugins / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name, text in (("systemctl", _SYSTEMCTL), ("journalctl", _JOURNALCTL)):
            program = self.root / "programs" / name
            program.parent.mkdir(exist_ok=True)
            program.write_text(text)
            program.chmod(0o755)
        (self.root / "empty").mkdir()

    @property
    def no_programs(self) -> str:
        """A search path on which there is nothing."""
        return str(self.root / "empty")

    @property
    def systemd(self) -> str:
        """A search path on which systemctl and journalctl are found and answer, whatever this machine was booted with."""
        return f"{self.root / 'programs'}:{SYSTEM_PATH}"

    def _interpreter(self) -> str:
        """An interpreter that a user without rights may run: those of a home directory may not be."""
        names = [f"python{version}" for version in interpreters.VERSIONS]
        for candidate in (os.path.join(directory, name) for directory in interpreters.directories() for name in names):
            if os.path.exists(candidate) and self._run([candidate, "-I", "-S", "-c", "pass"], unprivileged=True).returncode == 0:
                return candidate
        raise AssertionError(f"no Python of {interpreters.directories()} may be run by every user: install one for the system (apt-get install python3)")

    def _run(self, argv: list[str], unprivileged: bool, path: str = SYSTEM_PATH, **environment: str) -> subprocess.CompletedProcess[str]:
        who: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if unprivileged and os.geteuid() == 0 else {}
        try:
            return subprocess.run(
                argv,
                cwd="/",
                env={"PATH": path, "HOME": "/nonexistent", "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", **environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=SECONDS,
                check=False,
                **who,
            )
        except OSError as error:
            return subprocess.CompletedProcess(argv, 127, str(error))

    def run(self, module: str, call: Call) -> Answer:
        """Run a module once; what it printed is searched for its one line of JSON."""
        arguments = {**call.parameters, "_ansible_check_mode": call.check, "_ansible_remote_tmp": "/tmp", "_ansible_keep_remote_files": False}
        given = self.root / "arguments.json"
        given.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": arguments}))
        done = self._run(
            [self.python, "-S", "-m", f"ansible_collections.plumbline.sglang.plugins.modules.{module}", str(given)],
            call.unprivileged,
            call.path,
            PYTHONPATH=str(self.root / "python"),
            **call.environment,
        )
        return Answer(_json_line(done.stdout), done.stdout)


def _json_line(output: str) -> dict[str, Any] | None:
    for line in output.splitlines():
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            return found
    return None
