# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a managed host has of Ansible: an interpreter, ansible.module_utils, one module and the collection's module_utils.

Nothing else can be imported there, neither a package of this environment nor one of the interpreter's own site-packages: a
module that needs one says so here. Everything lies where each user of this machine may read it, so that a module can be run
without rights. What an action plugin does is run by Ansible's own program, against this machine.
"""

from __future__ import annotations

import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ansible

from modules.row import Row
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
    failed: bool


class _Friendly(http.server.BaseHTTPRequestHandler):
    """Answers everything with an empty object, as no engine or router does."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_POST = do_GET  # the name that http.server calls

    def log_message(self, *_arguments: Any) -> None:
        """Nothing."""


class ManagedHost:
    """Runs modules of the collection as a connection would."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.chmod(0o755)
        self._lay()
        self.python = self._interpreter()
        self._process = subprocess.Popen(["sleep", "3600"], stdin=subprocess.DEVNULL)
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Friendly)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        #: What the texts in angle brackets stand for in the parameters and the environment of a row.
        self.words = {
            "<secret>": str(root / "secret"),
            "<locked>": str(root / "locked"),
            "<scratch>": str(root / "scratch"),
            "<pid>": str(self._process.pid),
            "<port>": str(self._server.server_port),
            "<checkout>": str(CHECKOUT),
        }

    def close(self) -> None:
        """End what was started."""
        self._server.shutdown()
        self._server.server_close()
        self._process.kill()
        self._process.wait()

    def _lay(self) -> None:
        """Copy what Ansible would send, and make what rows name."""
        here, there = Path(ansible.__file__).parent, self.root / "python" / "ansible"
        without = shutil.ignore_patterns("__pycache__")
        shutil.copytree(here / "module_utils", there / "module_utils", ignore=without)
        shutil.copy(here / "release.py", there)
        (there / "__init__.py").touch()
        plugins = self.root / "python" / "ansible_collections" / "plumbline" / "sglang" / "plugins"
        for name in ("modules", "module_utils"):
            shutil.copytree(CHECKOUT / "plugins" / name, plugins / name, ignore=without)
        for directory, name, text in (("systemd", "systemctl", _SYSTEMCTL), ("systemd", "journalctl", _JOURNALCTL), ("systemctl", "systemctl", _SYSTEMCTL)):
            program = self.root / directory / name
            program.parent.mkdir(exist_ok=True)
            program.write_text(text)
            program.chmod(0o755)
        for name in ("empty", "scratch", "locked"):
            (self.root / name).mkdir()
        # Settings of this checkout or of this machine's user decide nothing here.
        (self.root / "ansible.cfg").touch()
        (self.root / "secret").write_text("not for everybody")
        (self.root / "secret").chmod(0)
        (self.root / "locked").chmod(0)

    def _paths(self) -> dict[str, str]:
        """The search path of each word that a row may use for it."""
        return {
            "all": SYSTEM_PATH,
            "none": str(self.root / "empty"),
            "systemd": f"{self.root / 'systemd'}:{SYSTEM_PATH}",
            "systemctl alone": f"{self.root / 'systemctl'}:{self.root / 'empty'}",
        }

    def _interpreter(self) -> str:
        """An interpreter that a user without rights may run: those of a home directory may not be."""
        names = [f"python{version}" for version in interpreters.VERSIONS]
        for candidate in (os.path.join(directory, name) for directory in interpreters.directories() for name in names):
            if os.path.exists(candidate) and self._run([candidate, "-I", "-S", "-c", "pass"], {}, unprivileged=True).returncode == 0:
                return candidate
        raise AssertionError(f"no Python of {interpreters.directories()} may be run by every user: install one for the system (apt-get install python3)")

    def _run(self, argv: list[str], environment: Mapping[str, str], unprivileged: bool = False) -> subprocess.CompletedProcess[str]:
        who: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if unprivileged and os.geteuid() == 0 else {}
        try:
            return subprocess.run(
                argv,
                cwd="/",
                env={"LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", **environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=SECONDS,
                check=False,
                **who,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return subprocess.CompletedProcess(argv, 127, str(error))

    def fill(self, value: Any) -> Any:
        """Put in what the words in angle brackets stand for."""
        if isinstance(value, Mapping):
            return {name: self.fill(item) for name, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.fill(item) for item in value]
        if isinstance(value, str):
            for word, text in self.words.items():
                value = value.replace(word, text)
        return value

    def run(self, module: str, row: Row) -> Answer:
        """Run the row once."""
        return self._action(module, row) if row.action else self._module(module, row)

    def _module(self, module: str, row: Row) -> Answer:
        arguments = {**self.fill(row.parameters), "_ansible_check_mode": row.check, "_ansible_remote_tmp": str(self.root), "_ansible_keep_remote_files": False}
        given = self.root / "arguments.json"
        given.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": arguments}))
        given.chmod(0o644)
        done = self._run(
            [self.python, "-S", "-m", f"ansible_collections.plumbline.sglang.plugins.modules.{module}", str(given)],
            {"PATH": self._paths()[row.path], "HOME": "/nonexistent", "PYTHONPATH": str(self.root / "python"), **self.fill(row.environment)},
            row.unprivileged,
        )
        result = _result(done.stdout)
        return Answer(result, done.stdout, result is None or bool(result.get("failed")))

    def _action(self, module: str, row: Row) -> Answer:
        """Through Ansible's own program. The environment of this test cannot be used by another user: there, root without its rights over files."""
        command = [str(Path(sys.executable).parent / "ansible"), "all", "--inventory", self.fill(row.inventory), "--connection", "local"]
        command += ["--module-name", f"plumbline.sglang.{module}"]
        command += ["--args", json.dumps(self.fill(row.parameters))] if row.parameters else []
        for name, value in {"ansible_python_interpreter": sys.executable, **self.fill(row.variables)}.items():
            command += ["--extra-vars", json.dumps({name: value})]
        command += ["--check"] if row.check else []
        if row.unprivileged and os.geteuid() == 0:
            command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner,-chown", *command]
        home = self.root / "ansible"
        done = self._run(
            command,
            {
                "PATH": SYSTEM_PATH,
                "HOME": str(self.root),
                "ANSIBLE_HOME": str(home),
                "ANSIBLE_LOCAL_TEMP": str(home / "tmp"),
                "ANSIBLE_REMOTE_TEMP": str(home / "tmp"),
                "ANSIBLE_ASYNC_DIR": str(home / "async"),
                "ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / ".collections"),
                "ANSIBLE_CONFIG": str(self.root / "ansible.cfg"),
                "ANSIBLE_NOCOLOR": "1",
                "ANSIBLE_LOCALHOST_WARNING": "0",
            },
        )
        head, _arrow, result = done.stdout.partition(" => ")
        return Answer(_result(result), done.stdout, head.endswith("!"))


def _result(output: str) -> dict[str, Any] | None:
    """The first JSON object that begins a line."""
    for number, line in enumerate(lines := output.splitlines(keepends=True)):
        if line.startswith("{"):
            try:
                found, _end = json.JSONDecoder().raw_decode("".join(lines[number:]))
            except ValueError:
                continue
            return found if isinstance(found, dict) else None
    return None
