# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Podman with storage, state and configuration of its own: it cannot see a container that the lab did not make."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from typing import Any

from . import namespace, process
from .errors import LabError
from .files import write_text
from .settings import Settings

# File locks: the default ones are in a shared memory segment that all podmans of a machine share.
_CONTAINERS_CONF = """[engine]
lock_type = "file"
events_logger = "none"
cgroup_manager = "cgroupfs"
runtime = "crun"

[network]
network_backend = "netavark"

[containers]
log_driver = "k8s-file"
log_size_max = 1048576
"""


class Podman:
    """Runs podman inside the lab's mount namespace."""

    def __init__(self, settings: Settings, holder: namespace.Holder) -> None:
        self._settings = settings
        self._holder = holder
        write_text(settings.run / "containers.conf", _CONTAINERS_CONF)
        write_text(settings.run / "storage.conf", _storage_conf(settings))

    def command(self, *arguments: str) -> list[str]:
        """Return the whole command line of one podman call."""
        run = self._settings.run
        base = [
            "podman",
            f"--tmpdir={run / 'libpod'}",
            f"--network-config-dir={run / 'networks'}",
        ]
        return namespace.inside(self._holder, [*base, *arguments])

    def environment(self) -> dict[str, str]:
        """Return the environment of podman calls: the lab's configuration instead of the user's."""
        run = self._settings.run
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CONTAINER")}
        return {
            **kept,
            "CONTAINERS_CONF": str(run / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(run / "storage.conf"),
            "TMPDIR": str(run),
        }

    def capture(self, *arguments: str, timeout: float = 120) -> str:
        """Run podman and return what it printed."""
        return process.capture(self.command(*arguments), env=self.environment(), timeout=timeout)

    def attempt(self, *arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        """Run podman and return what came of it."""
        return process.attempt(self.command(*arguments), env=self.environment(), timeout=timeout)

    def listing(self, *arguments: str) -> list[dict[str, Any]]:
        """Run a podman command that prints a JSON list."""
        text = self.capture(*arguments, "--format", "json")
        try:
            value = json.loads(text or "[]")
        except ValueError as error:
            raise LabError(f"`podman {' '.join(arguments)}` printed no JSON: {text[:200]!r}", "a JSON list", "see whether podman is 4.0 or newer") from error
        return value or []

    def interactive(self, arguments: Sequence[str]) -> int:
        """Run podman on the caller's terminal and return its exit status."""
        return subprocess.run(self.command(*arguments), env=self.environment(), check=False).returncode


def _storage_conf(settings: Settings) -> str:
    return f"""[storage]
driver = "overlay"
graphroot = "{settings.storage}"
runroot = "{settings.run / "podman"}"
"""
