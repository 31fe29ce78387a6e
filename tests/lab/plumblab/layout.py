# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which hosts the lab has: read from a layout file, or a number of plain ones."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .errors import LabError
from .settings import MAX_HOSTS, SOURCE

SUITES = ("bookworm", "trixie")
# "full" has the system libraries that the engine's transfer library loads; "bare" lacks them.
FLAVOURS = ("full", "bare")
LAYOUTS = SOURCE / "layouts"
_NAME = re.compile(r"lab([1-9][0-9]?)")


@dataclass(frozen=True)
class Host:
    """One host: its number gives its address."""

    name: str
    suite: str = "bookworm"
    flavour: str = "full"

    @property
    def number(self) -> int:
        """The N of labN."""
        match = _NAME.fullmatch(self.name)
        return int(match.group(1)) if match else 0


def plain(count: int) -> list[Host]:
    """Return lab1 … labN, all alike."""
    if not 1 <= count <= MAX_HOSTS:
        raise LabError(f"--hosts {count}", f"a number from 1 to {MAX_HOSTS}", "give a number in that range, or a layout file")
    return [Host(f"lab{number}") for number in range(1, count + 1)]


def load(name: str) -> list[Host]:
    """Read a layout: a file's path, or the name of one that comes with the lab."""
    path = Path(name) if "/" in name or name.endswith(".json") else LAYOUTS / f"{name}.json"
    try:
        value = json.loads(path.read_text())
    except FileNotFoundError as error:
        raise LabError(f"no layout {name!r} ({path})", f"a file, or one of: {', '.join(shipped())}", "correct --layout") from error
    except ValueError as error:
        raise LabError(f"{path} is not JSON: {error}", '{"hosts": [{"name": "lab1"}]}', "mend the file") from error
    hosts = value.get("hosts") if isinstance(value, dict) else None
    if not isinstance(hosts, list):
        raise LabError(f"{path} has no list `hosts`", '{"hosts": [{"name": "lab1"}]}', "mend the file")
    return parse(hosts, str(path))


def parse(entries: Sequence[dict[str, Any]], origin: str) -> list[Host]:
    """Check the entries of a layout and return its hosts."""
    hosts: list[Host] = []
    for entry in entries:
        keys = set(entry)
        if "name" not in keys or keys - {"name", "suite", "flavour"}:
            raise LabError(f"{origin}: a host with the keys {sorted(keys)}", "name, and if you like suite and flavour", "correct the layout")
        host = Host(**entry)
        if not 1 <= host.number <= MAX_HOSTS:
            raise LabError(f"{origin}: host name {host.name!r}", f"lab1 … lab{MAX_HOSTS} (the number gives the address)", "rename it")
        if host.suite not in SUITES or host.flavour not in FLAVOURS:
            raise LabError(
                f"{origin}: {host.name} wants suite {host.suite!r}, flavour {host.flavour!r}",
                f"suite one of {SUITES}, flavour one of {FLAVOURS}",
                "correct the layout",
            )
        hosts.append(host)
    names = [host.name for host in hosts]
    if not hosts or len(set(names)) != len(names):
        raise LabError(f"{origin}: hosts {names}", "at least one host, each name once", "correct the layout")
    return hosts


def dump(hosts: Sequence[Host]) -> list[dict[str, str]]:
    """Return the hosts as a layout's entries."""
    return [asdict(host) for host in hosts]


def shipped() -> list[str]:
    """Return the names of the layouts that come with the lab."""
    return sorted(path.stem for path in LAYOUTS.glob("*.json"))
