# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shared libraries of the system, and the packages that hold them, by distribution family."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Callable, NamedTuple

DEBIAN = "Debian"
REDHAT = "RedHat"

#: What the transfer libraries (Mooncake, NIXL) and torch's OpenMP kernels load by these names.
TRANSFER_LIBRARIES = ("libibverbs.so.1", "librdmacm.so.1", "libnuma.so.1", "libcurl.so.4", "libgomp.so.1")

_PACKAGES = {
    "libibverbs.so.1": {DEBIAN: "libibverbs1", REDHAT: "libibverbs"},
    "librdmacm.so.1": {DEBIAN: "librdmacm1", REDHAT: "librdmacm"},
    "libnuma.so.1": {DEBIAN: "libnuma1", REDHAT: "numactl-libs"},
    "libcurl.so.4": {DEBIAN: "libcurl4", REDHAT: "libcurl"},
    "libgomp.so.1": {DEBIAN: "libgomp1", REDHAT: "libgomp"},
    "libsndfile.so.1": {DEBIAN: "libsndfile1", REDHAT: "libsndfile"},
}


class OsRelease(NamedTuple):
    """What /etc/os-release says: id (``debian``), version, name for people, family (``Debian``, ``RedHat`` or empty)."""

    id: str
    version: str
    name: str
    family: str


def parse_os_release(text: str) -> OsRelease:
    """os-release(5) text -> what it says. Families follow ``ID`` and ``ID_LIKE``."""
    values: dict[str, str] = {}
    for row in text.splitlines():
        key, equals, value = row.strip().partition("=")
        if equals and not key.startswith("#"):
            values[key] = value.strip("\"'")
    words = {values.get("ID", ""), *values.get("ID_LIKE", "").split()}
    family = DEBIAN if words & {"debian", "ubuntu"} else REDHAT if words & {"rhel", "fedora", "centos"} else ""
    return OsRelease(values.get("ID", ""), values.get("VERSION_ID", ""), values.get("PRETTY_NAME", "an unknown system"), family)


def os_release(path: str = "/etc/os-release") -> OsRelease:
    """This host's os-release; all empty where there is none."""
    try:
        with open(path, encoding="utf-8") as stream:
            return parse_os_release(stream.read())
    except OSError:
        return parse_os_release("")


def can_load(name: str) -> bool:
    """Whether the dynamic loader finds and opens a library by its name."""
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def missing(names: Iterable[str] = TRANSFER_LIBRARIES, load: Callable[[str], bool] = can_load) -> list[str]:
    """Those of ``names`` that cannot be loaded here."""
    return [name for name in names if not load(name)]


def package_of(library: str, family: str) -> str | None:
    """The package that holds a library in a family, None where this is not known."""
    return _PACKAGES.get(library, {}).get(family)


def venv_package(version: tuple[int, int], family: str) -> str:
    """The package that lets ``python<major>.<minor>`` make virtual environments with pip."""
    name = f"python{version[0]}.{version[1]}"
    return f"{name}-venv" if family == DEBIAN else name
