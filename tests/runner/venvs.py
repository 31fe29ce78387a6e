# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Virtual environments of the development tools, one per file of C(requirements/), made once and kept in the user's cache.

An environment's directory name holds the hash of its requirements and the Python version, so a changed pin makes a new
one. A stamp written last says that it is complete: one without the stamp is made again.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runner import interpreters, places
from runner.errors import RunnerError

STAMP = "complete"
REQUIREMENTS = places.CHECKOUT / "requirements"

_SUPPORTED = re.compile(r"^# python: (?P<versions>[0-9. ]+)$", re.MULTILINE)


def names() -> list[str]:
    """Return the names of all environments: the files of C(requirements/)."""
    return sorted(path.stem for path in REQUIREMENTS.glob("*.in"))


def supported(name: str) -> list[str]:
    """Return the Python versions that an environment may be made with, best first, as its requirements declare them."""
    source = REQUIREMENTS / f"{name}.in"
    if not source.is_file():
        raise RunnerError(f"no environment is called {name!r}. There are: {', '.join(names())}.")
    declared = _SUPPORTED.search(source.read_text(encoding="utf-8"))
    if declared is None:
        raise RunnerError(f"{source} has no line '# python: VERSION…'. Add the Python versions it supports, best first.")
    return declared["versions"].split()


def interpreter(name: str) -> interpreters.Interpreter | None:
    """Return the best interpreter of this machine for an environment; None where there is none."""
    return next((found for found in map(interpreters.find, supported(name)) if found is not None), None)


def ensure(name: str) -> Path:
    """Return the bin directory of a complete environment, making it where it is not there yet."""
    python = interpreter(name)
    if python is None:
        running = ", ".join(found.version for found in interpreters.available())
        raise RunnerError(
            f"environment {name!r} needs Python {' or '.join(supported(name))}; running here: {running or 'none'}. "
            "Install one of them, or name the directory that holds it in PLUMBLINE_PYTHONS."
        )
    pins = REQUIREMENTS / f"{name}.txt"
    digest = hashlib.sha256(pins.read_bytes()).hexdigest()[:10]
    path = places.cache() / "venvs" / f"{name}-{digest}-py{python.version}"
    if not _complete(path):
        with _lock(path):
            if not _complete(path):
                _make(path, python, pins)
    return path / "bin"


def refresh(name: str) -> Path:
    """Resolve C(requirements/NAME.in) anew and write what came out to C(requirements/NAME.txt); return that file."""
    oldest = supported(name)[0]
    python = interpreters.find(oldest)
    if python is None:
        raise RunnerError(f"the pins of {name!r} are resolved with Python {oldest}, which does not run here.")
    source = REQUIREMENTS / f"{name}.in"
    with tempfile.TemporaryDirectory(prefix="plumbline-pins-") as scratch:
        _create(Path(scratch), python)
        pip = [os.path.join(scratch, "bin", "python"), "-m", "pip", "--disable-pip-version-check"]
        _run([*pip, "install", "--quiet", "--requirement", str(source)])
        frozen = subprocess.run([*pip, "freeze"], check=True, capture_output=True, text=True).stdout
    about = [line for line in source.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    about.append(f"# Every package at an exact version. Written by: tests/venv --refresh {name}")
    pins = source.with_suffix(".txt")
    staged = pins.with_suffix(".txt.new")
    staged.write_text("\n".join(about) + "\n" + frozen, encoding="utf-8")
    staged.replace(pins)
    return pins


def _complete(path: Path) -> bool:
    """Tell whether an environment is complete and its interpreter still there."""
    return (path / STAMP).is_file() and (path / "bin" / "python").exists()


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold the lock of one environment, so that two runs do not make it at the same time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f".{path.name}.lock").open("w", encoding="utf-8") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _make(path: Path, python: interpreters.Interpreter, pins: Path) -> None:
    """Make an environment from its pins; the stamp comes last."""
    print(f"making {path} with Python {python.version} ({python.path})", file=sys.stderr)
    shutil.rmtree(path, ignore_errors=True)
    _create(path, python)
    pip = [str(path / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    # The pins are complete, so nothing is to be resolved; the check afterwards says so.
    _run([*pip, "install", "--progress-bar", "off", "--no-deps", "--requirement", str(pins)])
    _run([*pip, "check"])
    (path / STAMP).touch()


def _create(path: Path, python: interpreters.Interpreter) -> None:
    """Make an empty environment with pip, installing Debian's missing half of venv first where that is possible."""
    if subprocess.run([python.path, "-c", "import ensurepip"], capture_output=True, check=False).returncode != 0:
        package = f"python{python.version}-venv"
        apt = shutil.which("apt-get")
        if apt is None or os.geteuid() != 0:
            raise RunnerError(
                f"{python.path} has no ensurepip, so it cannot make virtual environments. Install its venv package "
                f"(Debian, Ubuntu: apt-get install {package}), then run this again."
            )
        _run([apt, "update", "--quiet"])
        _run([apt, "install", "--yes", "--quiet", "--no-install-recommends", package])
    _run([python.path, "-m", "venv", str(path)])


def _run(command: list[str]) -> None:
    """Run a command with its output on standard error: standard output is for answers."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, stdout=sys.stderr, stdin=subprocess.DEVNULL, env=environment, check=False)
    if done.returncode != 0:
        raise RunnerError(f"this command ended with status {done.returncode}; see its output above: {' '.join(command)}")
