# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a directory of wheels can serve a lock, told from file names alone. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..planning import locks

_WHEEL = re.compile(r"^(?P<name>[^-]+)-(?P<version>[^-]+)(?:-\d[^-]*)?-(?P<py>[^-]+)-(?P<abi>[^-]+)-(?P<platform>[^-]+)\.whl$")
_SDIST = re.compile(r"^(?P<name>.+?)-(?P<version>\d[^-]*)\.(?:tar\.gz|zip)$")
_LABEL = re.compile(r"[-_.]?(alpha|beta|preview|post|dev|rev|rc|pre|a|b|c|r)[-_.]?(?=\d|$)")
_LABELS = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc", "rev": ".post", "r": ".post", "post": ".post", "dev": ".dev"}


class Pin(NamedTuple):
    """One exact requirement of a lock.

    ``line`` is what pip is given. ``direct``: it names a file or an address of its own, no index and no wheelhouse is
    asked. ``conditional``: a marker decides on the host whether it applies.
    """

    name: str
    version: str
    line: str
    direct: bool
    conditional: bool

    @property
    def shown(self) -> str:
        return f"{self.name}=={self.version}"


def pins(lock: locks.Lock) -> list[Pin]:
    """The pins of a lock with the line of each."""
    found = []
    for line in lock.lines:
        for name, version in locks.parse(line).pins.items():
            requirement = line.partition(" --hash")[0]
            found.append(Pin(name, version, line, "==" not in requirement.partition(";")[0], ";" in requirement))
    return found


def canonical_version(version: str) -> str:
    """A version so that equal ones (PEP 440) are equal texts: ``1.0`` and ``1.0.0``, ``2.0-RC1`` and ``2.0rc1``."""
    text, plus, local = version.strip().lower().lstrip("v").partition("+")
    text = _LABEL.sub(lambda match: _LABELS.get(match.group(1), match.group(1)), text)
    match = re.match(r"^((?:\d+!)?)(\d+(?:\.\d+)*)(.*)$", text)
    if match:
        text = match.group(1) + (re.sub(r"(?:\.0+)+$", "", match.group(2)) or "0") + match.group(3)
    return text + plus + re.sub(r"[-_.]+", ".", local)


def same_version(wanted: str, found: str) -> bool:
    """Whether ``==wanted`` accepts ``found``: a pin without a local part (``+cpu``) accepts every local part."""
    left, right = canonical_version(wanted), canonical_version(found)
    return left == right or ("+" not in left and left == right.partition("+")[0])


def serves(filename: str, python: Sequence[int], machine: str) -> tuple[str, str] | None:
    """(canonical name, version) of a file that pip could install for this Python (``(3, 11)``) and machine, else None.

    The C library's version is left to pip. Source archives count: whether they build, pip will say.
    """
    match = _SDIST.match(filename)
    if match:
        return locks.canonical(match.group("name")), match.group("version")
    match = _WHEEL.match(filename)
    if match is None or not _platform_fits(match.group("platform"), machine):
        return None
    abis = match.group("abi").split(".")
    if not any(_python_fits(tag, abis, python[0], python[1]) for tag in match.group("py").split(".")):
        return None
    return locks.canonical(match.group("name")), match.group("version").replace("_", "-")


def _python_fits(tag: str, abis: Sequence[str], major: int, minor: int) -> bool:
    match = re.match(r"^(py|cp)(\d)(\d*)$", tag)
    if match is None or int(match.group(2)) != major:
        return False
    lowest = int(match.group(3) or 0)
    if match.group(1) == "py" or "abi3" in abis:
        return lowest <= minor
    return lowest <= minor if "none" in abis else lowest == minor and f"cp{major}{minor}" in abis


def _platform_fits(platform: str, machine: str) -> bool:
    words = platform.split(".")
    return any(word == "any" or ("linux" in word and word.endswith("_" + machine) and "musllinux" not in word) for word in words)


def missing(wanted: Iterable[Pin], filenames: Iterable[str], python: Sequence[int], machine: str) -> list[Pin]:
    """Pins that no file of a wheelhouse serves. Direct and conditional pins are left to pip."""
    served: dict[str, list[str]] = {}
    for filename in filenames:
        found = serves(filename, python, machine)
        if found:
            served.setdefault(found[0], []).append(found[1])
    return [
        pin for pin in wanted if not (pin.direct or pin.conditional) and not any(same_version(pin.version, version) for version in served.get(pin.name, []))
    ]
