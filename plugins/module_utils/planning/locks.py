# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lock files -> releases: what one installed engine or router consists of, and the id that follows from it.

A lock holds exact pins (``name==version``) or wheels, one per line, and nothing else, so that the same lock means the same
release on every host and on every day. Pure.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Part of every release id: raise it when releases are built differently from the same lock.
RELEASE_SCHEMA = 1

_PIN = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[A-Za-z0-9._, -]+\])?==(?P<version>[A-Za-z0-9][A-Za-z0-9.!+_-]*)(?P<marker>\s*;.*)?\Z")
_WHEEL = re.compile(r"(?:(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*@\s*)?(?P<url>\S+\.whl)(?:#\S*)?\Z")
_HASH = re.compile(r"\s+--hash=\w+:[0-9A-Za-z+/=_-]+")
_COMMENT = re.compile(r"(?:^|\s)#.*$")

# Modules that must import before anything is started, by distribution. The transfer libraries are no dependencies of
# sglang, and a missing system library of theirs shows only 20 s into the start.
_IMPORTS: Mapping[str, str] = {
    "sglang": "sglang",
    "smg": "smg",
    "sglang-router": "sglang_router",
    "nixl": "nixl._api",
    "nixl-cu12": "nixl._api",
    "nixl-cu13": "nixl._api",
}
_MOONCAKE = "mooncake-transfer-engine"


def canonical(name: str) -> str:
    """Distribution name as package indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


@dataclass(frozen=True)
class Lock:
    """One parsed lock: its normalised lines, the pinned version by distribution, and the lines that are no exact pin."""

    lines: tuple[str, ...]
    pins: Mapping[str, str]
    refused: tuple[str, ...]
    repeated: tuple[str, ...]

    @property
    def text(self) -> str:
        """The lock as the release is built from it: one pin per line, without comments."""
        return "".join(line + "\n" for line in self.lines)

    @property
    def transfer_libraries(self) -> tuple[str, ...]:
        """The KV transfer libraries it installs: ``nixl``, ``mooncake``."""
        found = {"nixl" for name in self.pins if name.split("-cu")[0] == "nixl"}
        found |= {"mooncake" for name in self.pins if name.startswith(_MOONCAKE)}
        return tuple(sorted(found))

    def imports(self) -> list[str]:
        """Modules that must import in the installed release."""
        found = {_IMPORTS[name] for name in self.pins if name in _IMPORTS}
        found |= {"mooncake.engine" for name in self.pins if name.startswith(_MOONCAKE)}
        return sorted(found, key=lambda module: (module.split(".")[0] not in ("sglang", "smg", "sglang_router"), module))


def parse(text: str) -> Lock:
    """Read a lock. Comments, blank lines, continuation lines and ``--hash`` options are understood."""
    lines: list[str] = []
    pins: dict[str, str] = {}
    refused: list[str] = []
    repeated: list[str] = []
    for raw in re.sub(r"\\\r?\n", " ", text).splitlines():
        line = " ".join(_COMMENT.sub("", raw).split())
        if not line:
            continue
        bare = _HASH.sub("", line)
        name, version = _read(bare)
        if name is None or version is None:
            refused.append(line)
            continue
        if name in pins and ";" not in bare:
            repeated.append(name)
        pins[name] = version
        lines.append(line)
    return Lock(tuple(sorted(lines, key=str.lower)), pins, tuple(refused), tuple(repeated))


def _read(line: str) -> tuple[str | None, str | None]:
    pin = _PIN.match(line)
    if pin:
        return canonical(pin["name"]), pin["version"]
    wheel = _WHEEL.match(line)
    if wheel:
        parts = wheel["url"].rsplit("/", 1)[-1].replace("%2B", "+").split("-")
        if len(parts) >= 5:
            return canonical(wheel["name"] or parts[0]), parts[1]
    return None, None


def release(kind: str, package: str, version: str, lock: Lock, interpreter: str, root: str, wheelhouse: str | None) -> dict[str, Any]:
    """The release entry of the plan; ``root`` is ``sglang_root``, ``interpreter`` is ``sglang_python``.

    The id depends on kind, lock and interpreter setting alone, so it is known before any host is asked.
    """
    content = json.dumps([RELEASE_SCHEMA, kind, list(lock.lines), interpreter])
    identity = f"{package}-{version}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"
    path = f"{root}/releases/{identity}"
    return {
        "id": identity,
        "kind": kind,
        "package": package,
        "version": version,
        "path": path,
        "python": f"{path}/bin/python",
        "interpreter": interpreter,
        "requirements": lock.text,
        "wheelhouse": wheelhouse,
        "import_check": lock.imports(),
    }
