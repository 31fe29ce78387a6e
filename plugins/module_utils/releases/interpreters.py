# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Python interpreter of a host a release is built with.

``auto`` looks for python3.13, 3.12 and 3.11 (what the engine's wheels exist for) and takes the first one for which the
wheelhouse has every wheel; without a wheelhouse the first one found.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import subprocess
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple

from ..host.command import CommandError, run
from ..problem import Problem, listed
from .wheels import Pin, missing

AUTO = "auto"
#: What starting a program fails with where the program itself is to blame. Any other error is the host's (no memory, no process left).
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP, errno.ENOEXEC)
#: Words of an interpreter that ran short of something while it answered.
_SHORT = ("MemoryError", "Cannot allocate memory", "Resource temporarily unavailable")
NAMES = ("python3.13", "python3.12", "python3.11")
DIRECTORIES = ("/usr/local/bin", "/usr/bin", "/bin", "/opt/python/bin")
_PROBE = (
    "import sys, json, platform, importlib.util as u; "
    "print(json.dumps([list(sys.version_info[:3]), sys.implementation.name, platform.machine(), "
    "u.find_spec('venv') is not None and u.find_spec('ensurepip') is not None]))"
)


class Interpreter(NamedTuple):
    """One interpreter: absolute path, version, machine (``x86_64``), whether it can make an environment with pip."""

    path: str
    version: tuple[int, int, int]
    machine: str
    has_venv: bool

    @property
    def tag(self) -> str:
        """Name of the wheels' directory: ``cp311``."""
        return f"cp{self.version[0]}{self.version[1]}"

    @property
    def dotted(self) -> str:
        return f"{self.version[0]}.{self.version[1]}.{self.version[2]}"


class Unanswered(Exception):
    """An interpreter could not be asked: too slow, killed, or the host was short of memory or processes. It may well be there."""


def ask_interpreter(path: str) -> Interpreter | None:
    """Ask an interpreter what it is; None where there is none, or it does not run, or is not CPython.

    :raises Unanswered: it could not be asked just now, which says nothing about whether it is there.
    """
    try:
        done = run([path, "-I", "-B", "-c", _PROBE], timeout=60)
    except CommandError as error:
        if isinstance(error.__context__, subprocess.TimeoutExpired):
            raise Unanswered(str(error)) from None
        return None
    except OSError as error:
        if error.errno in _ABSENT:
            return None
        raise Unanswered(f"{path} could not be started: {error.strerror or error}") from None
    if done.rc < 0:
        raise Unanswered(f"{path} was ended by signal {-done.rc}")
    try:
        version, implementation, machine, has_venv = json.loads(done.stdout)
    except (ValueError, TypeError):
        if any(word in done.stderr for word in _SHORT):
            raise Unanswered(f"{path} ran short of memory or processes") from None
        return None
    if implementation != "cpython":
        return None
    return Interpreter(path, (version[0], version[1], version[2]), machine, has_venv)


def probe(path: str) -> Interpreter | None:
    """Like ``ask_interpreter``; None also where it could not be asked, so nothing may be removed because of it."""
    try:
        return ask_interpreter(path)
    except Unanswered:
        return None


def found(setting: str, ask: Callable[[str], Interpreter | None] = probe, directories: Sequence[str] = DIRECTORIES) -> tuple[list[Interpreter], list[str]]:
    """Interpreters a setting (``auto`` or a path) allows, best first, and the places that were looked at."""
    if setting != AUTO:
        one = ask(setting)
        return ([one] if one else []), [setting]
    seen: dict[str, Interpreter] = {}
    for name in NAMES:
        for directory in directories:
            one = None if name in seen else ask(os.path.join(directory, name))
            if one:
                seen[name] = one
    return list(seen.values()), [f"{', '.join(NAMES)} in {':'.join(directories)}"]


def wheel_directories(wheelhouse: str | None, tag: str) -> list[str]:
    """Directories of a wheelhouse that serve one tag, those that exist."""
    if not wheelhouse:
        return []
    return [path for path in (os.path.join(wheelhouse, tag), wheelhouse) if os.path.isdir(path)]


def wheel_names(directories: Sequence[str]) -> list[str]:
    """File names in these directories (not below); an unreadable directory counts as empty."""
    names: list[str] = []
    for directory in directories:
        with contextlib.suppress(OSError):
            names.extend(os.listdir(directory))
    return names


def choose(
    release: dict[str, Any], pins: Sequence[Pin], ask: Callable[[str], Interpreter | None] = probe, directories: Sequence[str] = DIRECTORIES
) -> Interpreter:
    """The interpreter for a release of the plan. Raises Problem: none found, no wheelhouse, wheels missing."""
    setting, wheelhouse = release["interpreter"], release.get("wheelhouse")
    what = f"release {release['id']} cannot be built"
    if wheelhouse and not os.path.isdir(wheelhouse):
        raise Problem(
            what,
            f"the wheelhouse {wheelhouse} is not a directory on this host",
            "a directory of wheels, or of wheels in one directory per Python (cp311, cp312, cp313)",
            "put it there, or mount it, or set sglang_wheelhouse to null to use this host's own pip settings",
        )
    usable, looked = found(setting, ask, directories)
    if not usable:
        raise Problem(
            what,
            "no interpreter: looked for {}".format("; ".join(looked)),
            "a CPython 3.11, 3.12 or 3.13 with its venv module",
            f"{install_hint()}, or set sglang_python to the path of one that is elsewhere",
        )
    if not wheelhouse:
        return usable[0]
    lacks: list[tuple[Interpreter, list[Pin]]] = []
    for one in usable:
        files = wheel_names(wheel_directories(wheelhouse, one.tag))
        lack = missing(pins, files, one.version, one.machine)
        if not lack:
            return one
        lacks.append((one, lack))
    best, lack = min(lacks, key=lambda item: len(item[1]))
    raise Problem(
        what,
        f"the wheelhouse {wheelhouse} has no wheel for Python {best.dotted} ({best.machine}) of: {listed([pin.shown for pin in lack])}",
        f"a wheel of each of the {len(pins)} pins in {wheelhouse} or {wheelhouse}/{best.tag}",
        "add the wheels (pip download --no-deps -d DIRECTORY -r LOCK with the same Python), or mend the lock",
    )


def install_hint(minor: str = "3.11") -> str:
    """How an interpreter is installed, by family."""
    return f"install one (Debian, Ubuntu: apt install python3 python3-venv; RHEL 9 family: dnf install python{minor})"


def need_venv(release: dict[str, Any], one: Interpreter) -> None:
    """Raise Problem where the interpreter cannot make an environment (Debian ships ensurepip in python3-venv)."""
    if not one.has_venv:
        name = f"python{one.version[0]}.{one.version[1]}"
        raise Problem(
            f"release {release['id']} cannot be built",
            f"{one.path} ({one.dotted}) lacks the modules venv or ensurepip",
            "an interpreter that can make a virtual environment with pip",
            f"install them (Debian, Ubuntu: apt install {name}-venv; RHEL family: dnf install {name})",
        )
