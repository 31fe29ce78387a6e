# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps a release is built with: environment, packages, byte code.

The environment holds the lock's packages and nothing else, not even pip: pip lives in a second, passing environment
beside it and installs with ``--python``. So a release can be checked against its lock file by file, and its packages
can be reinstalled when any of them is damaged.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from typing import Any

from ..long_command import bytes_written, run_long
from ..planning.locks import canonical
from ..problem import Problem, indent, listed
from ..progress import Progress, human_bytes
from . import manifest as manifests
from . import wheels
from .interpreters import Interpreter, need_venv, wheel_directories
from .pip_output import explain, fetch_line

LOCK_NAME = "requirements.lock"

#: Settings of a user's shell that would change where pip installs to or which Python code runs.
_DROPPED = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_DRY_RUN", "PIP_REQUIREMENT", "PIP_PYTHON", "PIP_REPORT")


class Builder:
    """Builds one release, or a second copy of parts of it to mend the first one with.

    :param release: RELEASE of the plan.
    :param pins: the pins of its lock.
    :param work: directory for passing files (pip's own environment, downloads) on the release's file system.
    :param keep_open: descriptors that the programs it runs inherit (the lock of the release).
    """

    def __init__(
        self, release: dict[str, Any], pins: Sequence[wheels.Pin], interpreter: Interpreter, progress: Progress, work: str, keep_open: Sequence[int] = ()
    ) -> None:
        self.release = release
        self.pins = list(pins)
        self.interpreter = interpreter
        self.progress = progress
        self.work = work
        self._keep_open = keep_open
        self._pip: list[str] = []

    @property
    def site(self) -> str:
        """``site-packages``, relative to an environment."""
        return f"lib/python{self.interpreter.version[0]}.{self.interpreter.version[1]}/site-packages"

    @property
    def what(self) -> str:
        return f"release {self.release['id']} cannot be built"

    @property
    def source(self) -> str:
        """Where packages come from, for people."""
        directories = wheel_directories(self.release.get("wheelhouse"), self.interpreter.tag)
        return " and ".join(directories) if directories else "the package index of this host's pip settings"

    def make_environment(self, target: str) -> None:
        """An empty environment at ``target``, with the lock beside it in a file."""
        need_venv(self.release, self.interpreter)
        self.progress.line(f"making the environment {target} with Python {self.interpreter.dotted} ({self.interpreter.path})")
        self._run([self.interpreter.path, "-m", "venv", "--without-pip", target], "making the environment")
        with open(os.path.join(target, LOCK_NAME), "w", encoding="utf-8") as stream:
            stream.write(self.release["requirements"])

    def install(self, target: str, names: Sequence[str] | None = None) -> None:
        """Install the pins (only ``names``, canonical, if given) into the environment at ``target``."""
        pins = [pin for pin in self.pins if names is None or pin.name in names]
        requirements = os.path.join(self.work, "requirements.txt")
        with open(requirements, "w", encoding="utf-8") as stream:
            stream.write("".join(pin.line + "\n" for pin in pins))
        argv = [
            *self._own_pip(),
            "--python",
            os.path.join(target, "bin/python"),
            "install",
            "--no-deps",
            "--no-compile",
            "--no-input",
            "--no-warn-script-location",
            "--progress-bar",
            "off",
            "--no-color",
            "-r",
            requirements,
        ]
        directories = wheel_directories(self.release.get("wheelhouse"), self.interpreter.tag)
        if self.release.get("wheelhouse"):
            argv += ["--isolated", "--no-index", *(word for path in directories for word in ("--find-links", path))]
        watch = _InstallWatch(os.path.join(target, self.site), len(pins), self.progress)
        self.progress.line(f"installing {len(pins)} packages from {self.source}")
        # Downloads pass through the work directory: /tmp may be small, or in memory.
        environment = {**self._environment(), "TMPDIR": self.work}
        rc, rows = run_long(argv, watch.on_line, watch.on_silence, env=environment, every=0.5, keep_open=self._keep_open)
        watch.look()
        if rc:
            raise explain(rows, self.what, self.source, self.release["path"], self.interpreter.dotted)
        self._check_pins(target, pins)

    def compile(self, target: str) -> None:
        """Compile all byte code once, on all processors. Files that are no valid Python of this version are left out."""
        jobs = len(os.sched_getaffinity(0))
        began, done = time.monotonic(), [0]

        def count(row: str) -> None:
            done[0] += row.count("Compiling ")

        def beat(pid: int) -> None:
            self.progress.beat(lambda: f"compiling byte code: {done[0]} files, {time.monotonic() - began:.0f} s")

        self.progress.line(f"compiling byte code with {jobs} processes")
        argv = [os.path.join(target, "bin/python"), "-u", "-m", "compileall", os.path.join(target, self.site)]
        _rc, rows = run_long([*argv, "-j", str(jobs)], count, beat, env=self._environment(), keep_open=self._keep_open)
        if _crashed(rows):
            self.progress.line("compiling in one process: several did not work out (" + rows[-1][:160] + ")")
            _rc, rows = run_long(argv, count, beat, env=self._environment(), keep_open=self._keep_open)
        # The status itself says nothing: it is 1 where any file does not compile, and packages do ship such files (templates, tests).
        if _crashed(rows):
            raise Problem(
                self.what,
                "byte code could not be compiled:\n" + "\n".join(rows[-4:]),
                "byte code of every module: without it each start takes minutes longer",
                "see the words above; a full or read-only file system is the usual cause",
            )
        self.progress.line(f"compiled {done[0]} files in {time.monotonic() - began:.0f} s")

    def compile_files(self, target: str, names: Sequence[str]) -> None:
        """Compile these source files anew (paths relative to ``target``)."""
        listing = os.path.join(self.work, "sources.txt")
        with open(listing, "w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write("".join(os.path.join(target, name) + "\n" for name in names))
        argv = [os.path.join(target, "bin/python"), "-m", "compileall", "-q", "-f", "-i", listing]
        run_long(argv, lambda row: None, lambda pid: None, env=self._environment(), keep_open=self._keep_open)

    def clear(self) -> None:
        """Remove the passing files."""
        shutil.rmtree(self.work, ignore_errors=True)

    def _own_pip(self) -> list[str]:
        if not self._pip:
            home = os.path.join(self.work, "pip")
            shutil.rmtree(home, ignore_errors=True)
            self._run([self.interpreter.path, "-m", "venv", home], "making pip's own environment")
            self._pip = [os.path.join(home, "bin/python"), "-m", "pip"]
        return self._pip

    def _check_pins(self, target: str, pins: Sequence[wheels.Pin]) -> None:
        present = {canonical(one.name): one.version for one, _info in manifests.installed(os.path.join(target, self.site))}
        wrong = [
            f"{pin.shown} (installed: {present.get(pin.name, 'nothing')})"
            for pin in pins
            if not pin.conditional and not wheels.same_version(pin.version, present.get(pin.name, "0"))
        ]
        if wrong:
            raise Problem(
                self.what,
                "installed packages are not the lock's: " + listed(wrong),
                "exactly the versions of the lock",
                f"look at the files in {self.source}: their names and their metadata disagree",
            )

    def _run(self, argv: Sequence[str], doing: str) -> None:
        try:
            rc, rows = run_long(argv, lambda row: None, lambda pid: self.progress.beat(lambda: doing), env=self._environment(), keep_open=self._keep_open)
        except OSError as error:
            rc, rows = 127, [str(error)]
        if rc:
            raise Problem(
                self.what,
                f"{doing} failed (status {rc}):\n" + indent("\n".join(rows[-6:])),
                "status 0",
                "see the words above; try on the host: " + " ".join(argv),
            )

    def _environment(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON") and key not in _DROPPED}
        return {
            **kept,
            "LC_ALL": "C.UTF-8",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_ROOT_USER_ACTION": "ignore",
            "PYTHONUNBUFFERED": "1",
        }


def _crashed(rows: Sequence[str]) -> bool:
    """Whether compileall itself failed. Files that do not compile are reported without a traceback."""
    return any(row.startswith("Traceback (most recent call last)") for row in rows)


class _InstallWatch:
    """Says which packages have been installed, from the directory itself: pip reports nothing while it unpacks."""

    def __init__(self, site: str, total: int, progress: Progress) -> None:
        self._site = site
        self._total = total
        self._progress = progress
        self._known: set[str] = set()
        self._size = 0
        self._began = time.monotonic()
        self._collected = 0

    def on_line(self, row: str) -> None:
        self._collected += row.startswith(("Collecting ", "Processing "))
        text = fetch_line(row)
        if text:
            self._progress.line(text)

    def on_silence(self, pid: int) -> None:
        self.look()
        self._progress.beat(lambda: self._sign(pid))

    def look(self) -> None:
        """One line per package that has come since the last look."""
        for info in sorted(os.listdir(self._site)) if os.path.isdir(self._site) else ():
            if info in self._known or not os.path.exists(os.path.join(self._site, info, "INSTALLER")):
                continue
            self._known.add(info)
            one = manifests.describe(self._site, info)
            self._size += one.size
            self._progress.line(f"installed {len(self._known)} of {self._total}: {one.name} {one.version}, {human_bytes(one.size)}")

    def _sign(self, pid: int) -> str:
        seconds = time.monotonic() - self._began
        if not self._known:
            return f"collecting packages: {self._collected} of {self._total}, {human_bytes(bytes_written(pid))} written, {seconds:.0f} s"
        return f"installing: {len(self._known)} of {self._total} packages, {human_bytes(bytes_written(pid))} written, {seconds:.0f} s"
