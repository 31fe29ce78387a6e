# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the Python interpreters of this machine that really run.

A name on PATH is no interpreter yet: version managers put shims there that answer "not found" until a version is
activated. So every candidate is asked for its version, once per process.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

VERSIONS = tuple(f"3.{minor}" for minor in range(9, 16))
"""The versions that are looked for, from the oldest that a managed host may have."""

_QUESTION = (
    "import sys, json; print(json.dumps([list(sys.version_info[:2]), sys.executable, sys.prefix == sys.base_prefix]))"
)


@dataclass(frozen=True)
class Interpreter:
    """One interpreter that answered."""

    version: str
    """Major and minor version, such as C(3.11)."""
    path: str
    """Absolute path of the executable."""


@functools.cache
def directories() -> list[str]:
    """Return the directories to look in: PATH, then PLUMBLINE_PYTHONS (colon-separated), then pyenv's versions."""
    found = os.environ.get("PATH", os.defpath).split(os.pathsep)
    found += os.environ.get("PLUMBLINE_PYTHONS", "").split(os.pathsep)
    found += _pyenv_directories()
    return list(dict.fromkeys(entry for entry in found if os.path.isabs(entry)))


def _pyenv_directories() -> list[str]:
    """Return the bin directories of all versions that pyenv has installed, newest first; empty without pyenv."""
    pyenv = shutil.which("pyenv")
    if pyenv is None:
        return []
    answer = subprocess.run([pyenv, "root"], capture_output=True, text=True, check=False)
    if answer.returncode != 0 or not answer.stdout.strip():
        return []
    return [str(path) for path in sorted(Path(answer.stdout.strip()).glob("versions/3.*/bin"), reverse=True)]


@functools.cache
def ask(path: str) -> Interpreter | None:
    """Return the interpreter at I(path), or None where it does not run or belongs to a virtual environment."""
    try:
        answer = subprocess.run(
            [path, "-I", "-c", _QUESTION], capture_output=True, text=True, check=False, timeout=30, stdin=subprocess.DEVNULL
        )
        version, executable, is_base = json.loads(answer.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    if answer.returncode != 0 or not is_base:
        return None
    return Interpreter(version=".".join(map(str, version)), path=executable)


def _candidates(directory: str, names: tuple[str, ...]) -> Iterator[str]:
    """Yield the paths of the given names in a directory that are executable files."""
    for name in names:
        path = os.path.join(directory, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            yield path


@functools.cache
def find(version: str) -> Interpreter | None:
    """Return the first interpreter of a version that runs, or None. Its own name is tried everywhere before C(python3)."""
    for name in (f"python{version}", "python3"):
        for directory in directories():
            for path in _candidates(directory, (name,)):
                interpreter = ask(path)
                if interpreter is not None and interpreter.version == version:
                    return interpreter
    return None


def available() -> list[Interpreter]:
    """Return one interpreter of each version that runs here, oldest first."""
    return [found for found in map(find, VERSIONS) if found is not None]


def search_path() -> str:
    """Return PATH without the directories in which a versioned interpreter's name does not run.

    ansible-test calls C(python3.9) and the like by name and stops at the first that fails.
    """
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(entry for entry in entries if os.path.isabs(entry) and _all_run(entry))


def _all_run(directory: str) -> bool:
    """Tell whether every interpreter name of a directory runs."""
    return all(ask(path) is not None for path in _candidates(directory, tuple(f"python{version}" for version in VERSIONS)))
