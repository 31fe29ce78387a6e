# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The exact locks of the lab's environments."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from .errors import LabError
from .settings import SOURCE

DIRECTORY = SOURCE / "requirements"
# Name of the lock in the wheelhouse → its file here.
LOCKS: dict[str, str] = {
    "engine": "engine-cpu.txt",
    "engine-nixl": "engine-cpu-nixl.txt",
    "router": "router.txt",
    "router-sglang": "router-sglang.txt",
}
_PIN = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9.+!_-]+)")


@dataclass(frozen=True, order=True)
class Pin:
    """One distribution at one version."""

    name: str
    version: str

    @property
    def key(self) -> str:
        """The normalised name: `PyYAML` and `pyyaml` are one distribution."""
        return normalised(self.name)

    def __str__(self) -> str:
        return f"{self.name}=={self.version}"


def normalised(name: str) -> str:
    """Return a distribution's name in the form that compares."""
    return re.sub(r"[-_.]+", "-", name).lower()


def parse(text: str, origin: str) -> list[Pin]:
    """Read a lock: one `name==version` a line, comments and empty lines aside."""
    pins = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#", 1)[0].strip()
        if not words:
            continue
        match = _PIN.fullmatch(words)
        if not match:
            raise LabError(f"{origin}:{number}: {words!r}", "name==version", "write the exact version; ranges and markers have no place in a lock")
        pins.append(Pin(match.group(1), match.group(2)))
    return pins


def read(lock: str, directory: Path = DIRECTORY) -> list[Pin]:
    """Read one of the lab's locks by its name in the wheelhouse."""
    path = directory / LOCKS[lock]
    return parse(path.read_text(), str(path))
