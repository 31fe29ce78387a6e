# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pip that fetches wheels: of the running Python, or of a small environment made for it.

It keeps to the caller's own pip settings (index, find-links, trust), which come from its environment and files.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from . import process, tools
from .errors import LabError
from .requirements import Pin
from .settings import Settings

# `--report` came with 22.2.
_MINIMUM = (22, 2)
# The hosts' oldest C library is Debian 12's; a wheel for an older one runs there too.
_GLIBC_MINOR = range(36, 4, -1)
_TAG = re.compile(r"cp3(\d{1,2})")


def find(settings: Settings) -> list[str]:
    """Return the start of a pip command line."""
    own = [sys.executable, "-m", "pip"]
    if _version(own) >= _MINIMUM:
        return own
    made = settings.cache / "tools" / "bin" / "python"
    if _version([str(made), "-m", "pip"]) < _MINIMUM:
        _make_environment(made.parent.parent)
    return [str(made), "-m", "pip"]


def target(tag: str) -> list[str]:
    """Return pip's options that choose wheels for a Python tag on the hosts, whatever Python runs pip."""
    match = _TAG.fullmatch(tag)
    if not match:
        raise LabError(f"Python tag {tag!r}", "cp311, cp312 or cp313", "correct --python-tag")
    machine = platform.machine()
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in _GLIBC_MINOR]
    platforms += [f"manylinux{year}_{machine}" for year in ("2014", "2010", "1")] + [f"linux_{machine}"]
    options = ["--only-binary=:all:", "--implementation=cp", f"--python-version=3.{match.group(1)}", f"--abi={tag}", "--abi=abi3", "--abi=none"]
    return options + [f"--platform={name}" for name in platforms]


def download(pip: Sequence[str], tag: str, pins: Sequence[Pin], directory: Path) -> None:
    """Download wheels without their dependencies; what is under way is in the directory's `tmp`."""
    process.capture(
        [*pip, "download", "--quiet", "--no-deps", *target(tag), f"--dest={directory}", *map(str, pins)],
        env={**os.environ, "TMPDIR": str(directory / "tmp")},
        timeout=3600,
    )


def closure(pip: Sequence[str], tag: str, requirement: str, constraints: Path) -> list[Pin]:
    """Return what pip would install for one requirement, by its own resolver, with nothing downloaded but metadata."""
    scratch = constraints.parent
    text = process.capture(
        [
            *pip,
            *("install", "--quiet", "--dry-run", "--ignore-installed", "--report=-", f"--target={scratch / 'nowhere'}"),
            *(f"--constraint={constraints}", *target(tag), requirement),
        ],
        timeout=1800,
    )
    report = json.loads(text)
    return [Pin(item["metadata"]["name"], item["metadata"]["version"]) for item in report["install"]]


def _make_environment(directory: Path) -> None:
    """Make the small environment, installing Debian's venv module first where it is missing."""
    create = [sys.executable, "-m", "venv", "--clear", str(directory)]
    if process.attempt(create).returncode != 0:
        tools.install([f"python{sysconfig.get_python_version()}-venv"])
        process.capture(create)


def _version(command: Sequence[str]) -> tuple[int, ...]:
    if not Path(command[0]).exists():
        return (0,)
    words = process.attempt([*command, "--version"]).stdout.split()
    numbers = re.findall(r"\d+", words[1]) if len(words) > 1 else []
    return tuple(int(number) for number in numbers[:2]) or (0,)
