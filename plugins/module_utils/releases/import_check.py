# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the modules of a release import on this host, and what the first cause is where they do not.

The last line of an engine's traceback often blames the wrong thing ("Please install mooncake", although it is
installed); the first exception of the chain names the system library that is missing.
"""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Sequence
from typing import Callable, NamedTuple

from ..host.libraries import package_of
from ..long_command import run_long
from ..problem import Problem

#: Their import needs a GPU's driver or kernels: only that they are there is checked.
PRESENCE_ONLY = ("sglang", "sgl_kernel")

_MARK = "plumbline-import:"
_SCRIPT = """
import importlib, importlib.util, json, sys
name, load = sys.argv[1], sys.argv[2] == "load"
chain = []
try:
    if load:
        importlib.import_module(name)
    elif importlib.util.find_spec(name.partition(".")[0]) is None:
        raise ModuleNotFoundError("No module named %r" % name)
except BaseException as error:
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        chain.append([type(error).__name__, str(error)])
        error = error.__cause__ or error.__context__
print("\\nplumbline-import:" + json.dumps(chain))
"""
_LIBRARY = re.compile(r"(?P<library>lib[\w.+-]+\.so[\w.]*): cannot open shared object file")
_SYMBOL = re.compile(r"version [`'](?P<symbol>[A-Z]+_[\d.]+)' not found")


class Import(NamedTuple):
    """How one import went. ``causes``: texts of the exception chain, the first cause last; empty: it imports."""

    module: str
    causes: list[str]

    @property
    def ok(self) -> bool:
        return not self.causes

    @property
    def library(self) -> str | None:
        """The shared library that could not be opened, if that is the first cause that names one."""
        for cause in reversed(self.causes):
            match = _LIBRARY.search(cause)
            if match:
                return match.group("library")
        return None


def parse(module: str, rc: int, rows: Sequence[str]) -> Import:
    """The check's output -> how the import went. No answer at all is a failure too (a crash in native code)."""
    for row in reversed(rows):
        if row.startswith(_MARK):
            try:
                return Import(module, [f"{kind}: {text}" for kind, text in json.loads(row[len(_MARK) :])])
            except ValueError:
                break
    how = f"was ended by signal {-rc}" if rc < 0 else f"ended with status {rc}"
    last = f"; last words: {rows[-1]}" if rows else ""
    return Import(module, [f"importing {module} {how} without an answer{last}"])


def check(python: str, modules: Sequence[str], beat: Callable[[str], object] = lambda text: None) -> list[Import]:
    """Import each module in a process of its own with this interpreter. Writes no byte code."""
    found = []
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    for module in modules:
        mode = "find" if module.partition(".")[0] in PRESENCE_ONLY else "load"
        words: list[str] = []
        try:
            rc, words = run_long(
                [python, "-I", "-B", "-c", _SCRIPT, module, mode],
                lambda row: None,
                functools.partial(_tell, beat, module),
                env=environment,
            )
            found.append(parse(module, rc, words))
        except OSError as error:
            found.append(Import(module, [f"{python} cannot be run: {error.strerror}"]))
    return found


def _tell(beat: Callable[[str], object], module: str, pid: int) -> None:
    beat(f"importing {module}")


def to_problem(failed: Sequence[Import], what: str, family: str) -> Problem:
    """Imports that failed -> one problem that names every first cause and what to install."""
    rows, steps = [], []
    for one in failed:
        rows.append(f"{one.module}: {one.causes[-1]}")
        if one.causes[-1] != one.causes[0]:
            rows.append(f"  (shown by the engine as {one.causes[0].splitlines()[-1][:160]})")
        if one.library:
            package = package_of(one.library, family)
            steps.append(f"install {package} (it holds {one.library})" if package else f"install the package that holds {one.library}")
        elif any(_SYMBOL.search(cause) for cause in one.causes):
            steps.append("the wheels want a newer C or C++ library than this distribution has: take wheels made for it")
        else:
            steps.append(f"see why {one.module} does not import: the lock may lack a package it needs")
    return Problem(
        what,
        "modules do not import:\n" + "\n".join(rows),
        "every module of the import check imports on this host",
        "\n".join(dict.fromkeys(steps)),
    )
