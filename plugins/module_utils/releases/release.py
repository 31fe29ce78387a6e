# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A release on a host: built where it is missing, mended where it has drifted, left alone where it is whole.

A release is a virtual environment at its final absolute path (environments cannot be moved), made from an exact lock.
It exists when its manifest ``release.json`` does, which is renamed into place last, after the import check. Whatever
lies at the path without a manifest is an unfinished build and is removed.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import time
import zipfile
from collections.abc import Sequence
from typing import Any

from ..host.libraries import os_release
from ..planning import locks
from ..problem import Problem, listed
from ..progress import Progress, human_bytes
from ..space import need
from . import import_check, wheels
from . import manifest as manifests
from . import mend as release_mend
from .build import LOCK_NAME, Builder
from .interpreters import Interpreter, Unanswered, ask_interpreter, choose, need_venv, wheel_directories, wheel_names

_BUILDING = ".building"
#: What is to be removed gets such a name first: a removal that is cut short leaves no half of a release at a release's path.
_TRASH = re.compile(r"\.trash-.+-[0-9a-f]{12}\Z")
#: What of a built release comes on top of the wheels' content: byte code, pip's own passing environment.
_OVERHEAD = 1.25
_OVERHEAD_BYTES = 64 << 20


class Releases:
    """Sees to one release.

    :param release: RELEASE of the plan.
    :param full: hash every file of an installed release instead of only those whose size or time changed.
    """

    def __init__(self, release: dict[str, Any], progress: Progress, full: bool = False) -> None:
        self.release = release
        self.progress = progress
        self.full = full
        self.path: str = release["path"]
        self.lock = locks.parse(release["requirements"])
        self.pins = wheels.pins(self.lock)
        self._owner = 0 if os.geteuid() == 0 else None
        self._held = -1

    def ensure(self, check_mode: bool) -> dict[str, Any]:
        """Make the release be there and be whole; in check mode say what that would take. See the module's RETURN.

        :raises Problem: where this cannot be done.
        """
        self._accept()
        began = time.monotonic()
        os.umask(0o022)
        if not check_mode:
            self._hold()
        try:
            if not check_mode:
                self._clear_trash()
            result = self._ensure(check_mode)
        finally:
            if self._held >= 0:
                os.close(self._held)
        return {"id": self.release["id"], "directory": self.path, **result, "seconds": round(time.monotonic() - began, 1)}

    def _accept(self) -> None:
        what = f"release {self.release['id']} cannot be built"
        if self.lock.refused or not self.lock.pins:
            raise Problem(
                what,
                "lines of the lock that are no exact pin: " + listed(self.lock.refused) if self.lock.refused else "an empty lock",
                "one name==version per line",
                "make the lock exact (pip freeze, pip-compile or uv pip compile write such files)",
            )
        if not os.path.isabs(self.path) or os.path.basename(self.path) != self.release["id"]:
            raise Problem(what, f"the path {self.path}", "an absolute path that ends in the release's id", "take the release from the plan")

    def _hold(self) -> None:
        """Hold the directory of releases: two runs must not build in it at once. Programs started here inherit the hold."""
        os.makedirs(os.path.dirname(self.path), mode=0o755, exist_ok=True)
        self._held = os.open(os.path.dirname(self.path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        while True:
            try:
                fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                self.progress.beat(lambda: f"waiting: another run is at work in {os.path.dirname(self.path)}")
                time.sleep(0.5)

    def _clear_trash(self) -> None:
        root = os.path.dirname(self.path)
        for name in sorted(os.listdir(root)):
            path = os.path.join(root, name)
            if _TRASH.match(name) and os.path.isdir(path) and not os.path.islink(path):
                self.progress.line(f"removing {path}, left by a removal that was cut short")
                shutil.rmtree(path, ignore_errors=True)

    def _remove(self) -> None:
        """Remove what lies at the path: out of the way at once, then piece by piece."""
        if not os.path.lexists(self.path):
            return
        if os.path.islink(self.path):
            os.unlink(self.path)
            return
        trash = os.path.join(os.path.dirname(self.path), f".trash-{self.release['id']}-{secrets.token_hex(6)}")
        os.rename(self.path, trash)
        shutil.rmtree(trash, ignore_errors=True)

    def _base(self, manifest: manifests.Manifest) -> Interpreter | None:
        """The interpreter that the release was built with, None where it is gone.

        :raises Problem: it could not be asked; that is no reason to remove anything.
        """
        try:
            return ask_interpreter(manifest.facts["interpreter"]["path"])
        except Unanswered as error:
            raise Problem(
                f"release {self.release['id']} cannot be checked",
                f"its interpreter gave no answer: {error}",
                "an answer, or no interpreter at that path",
                "see to the host's load, memory and process limits, then run again; nothing was changed",
            ) from None

    def _ensure(self, check_mode: bool) -> dict[str, Any]:
        manifest = manifests.load(os.path.join(self.path, manifests.NAME))
        proved = manifest is not None
        if manifest is None:
            manifest = manifests.load(os.path.join(self.path, manifests.UNPROVED))
        reason = self._why_not(manifest)
        if manifest is None or reason:
            return self._would_build(reason) if check_mode else self._build(reason)
        self.progress.line(f"comparing {len(manifest.files)} files ({human_bytes(manifest.size)}) with the manifest")
        drift = manifests.compare(self.path, manifest, self._owner, self.full, self._beat_hash(manifest))
        if drift:
            return self._mend(manifest, drift, proved, check_mode)
        if not proved and not check_mode:
            self._prove()
        state = "unchanged" if proved else "would_build" if check_mode else "built"
        return {**self._facts(manifest), "changed": not proved, "state": state, "reason": "" if proved else "its import check had not passed yet"}

    def _why_not(self, manifest: manifests.Manifest | None) -> str:
        """Why what lies at the path is not this release; empty where it is."""
        if manifest is None:
            if not os.path.isdir(self.path) or not os.listdir(self.path):
                return "not installed"
            if not any(os.path.lexists(os.path.join(self.path, name)) for name in (manifests.NAME, _BUILDING, "pyvenv.cfg", LOCK_NAME)):
                raise Problem(
                    f"release {self.release['id']} cannot be built",
                    f"{self.path} holds something that is no release: " + listed(sorted(os.listdir(self.path)), 5),
                    "nothing there, or a release",
                    "move it away",
                )
            return "an unfinished build lies there"
        if manifest.facts.get("lock_sha256") != self._lock_digest():
            return "it was built from another lock"
        base = self._base(manifest)
        if base is None:
            return f"its interpreter {manifest.facts['interpreter']['path']} is no longer there"
        if list(base.version[:2]) != manifest.facts["interpreter"]["version"][:2]:
            return f"its interpreter {base.path} is now Python {base.dotted}"
        return ""

    def _would_build(self, reason: str) -> dict[str, Any]:
        result: dict[str, Any] = {"changed": True, "state": "would_build", "reason": reason, "warnings": []}
        interpreter = ""
        try:
            chosen = choose(self.release, self.pins)
            interpreter = chosen.path
            need_venv(self.release, chosen)
        except Problem as problem:
            # On a host where nothing is installed yet this is what a real run may well be about to change.
            result["warnings"].append(str(problem))
        after = [f"release {self.release['id']}", f"interpreter {interpreter or self.release['interpreter']}", *self.lock.lines]
        result["diff"] = {"before": "", "after": "\n".join(after) + "\n", "before_header": self.path, "after_header": self.path}
        return {**result, "interpreter": interpreter, "distributions": []}

    def _build(self, reason: str) -> dict[str, Any]:
        chosen = choose(self.release, self.pins)
        need_venv(self.release, chosen)
        self._need_space(chosen)
        self.progress.line(f"building {self.release['id']}: {reason}")
        self._remove()
        os.makedirs(self.path, mode=0o755)
        with open(os.path.join(self.path, _BUILDING), "w", encoding="ascii"):
            pass
        builder = self._builder(chosen)
        try:
            builder.make_environment(self.path)
            builder.install(self.path)
            builder.compile(self.path)
        finally:
            builder.clear()
        manifest = self._write_manifest(builder)
        self._prove()
        after = [f"release {self.release['id']}", f"interpreter {chosen.path}", *self.lock.lines]
        diff = {"before": "", "after": "\n".join(after) + "\n", "before_header": self.path, "after_header": self.path}
        return {**self._facts(manifest), "changed": True, "state": "built", "reason": reason, "diff": diff}

    def _write_manifest(self, builder: Builder) -> manifests.Manifest:
        self.progress.line("recording every file")
        os.unlink(os.path.join(self.path, _BUILDING))
        manifests.seal(self.path, self._owner, self._owner)
        facts = {
            "id": self.release["id"],
            "kind": self.release["kind"],
            "package": self.release["package"],
            "version": self.release["version"],
            "lock_sha256": self._lock_digest(),
            "interpreter": {"path": builder.interpreter.path, "version": list(builder.interpreter.version), "machine": builder.interpreter.machine},
            "built_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        manifest = manifests.take(self.path, builder.site, facts, lambda done, total: self.progress.beat(lambda: f"recorded {done} of {total} files"))
        manifest.dump(os.path.join(self.path, manifests.UNPROVED))
        return manifest

    def _prove(self) -> None:
        """The import check; the manifest gets its name only when it has passed."""
        modules = self.release["import_check"]
        self.progress.line("import check: " + listed(modules))
        began = time.monotonic()
        failed = [
            one
            for one in import_check.check(self.release["python"], modules, lambda text: self.progress.beat(lambda: f"{text}, {time.monotonic() - began:.0f} s"))
            if not one.ok
        ]
        if failed:
            raise import_check.to_problem(failed, f"release {self.release['id']} is installed but not usable", os_release().family)
        os.replace(os.path.join(self.path, manifests.UNPROVED), os.path.join(self.path, manifests.NAME))

    def _mend(self, manifest: manifests.Manifest, drift: manifests.Drift, proved: bool, check_mode: bool) -> dict[str, Any]:
        repair = release_mend.plan(manifest, drift)
        rows = release_mend.described(manifest, repair, drift)
        names = [manifest.distributions[index].name for index in repair.distributions]
        diff = {"before": "\n".join(rows) + "\n", "after": "", "before_header": f"{self.path} (drift)", "after_header": self.path}
        if not check_mode:
            for row in rows:
                self.progress.line("mending " + row)
            base = self._base(manifest)
            if base is None:
                raise Problem(f"release {self.release['id']} cannot be mended", "its interpreter went away meanwhile", "an interpreter", "run again")
            builder = self._builder(base)
            if proved:
                # From here on it is proved no more: a run that is cut short, or whose import check fails, must not leave it so named.
                os.replace(os.path.join(self.path, manifests.NAME), os.path.join(self.path, manifests.UNPROVED))
            try:
                manifest = release_mend.mend(builder, manifest, drift, repair, self._owner, self._owner)
            finally:
                builder.clear()
            manifest.dump(os.path.join(self.path, manifests.UNPROVED))
            self._prove()
        state = "would_mend" if check_mode else "mended"
        return {
            **self._facts(manifest),
            "changed": True,
            "state": state,
            "reason": "it differs from its manifest",
            "drift": rows,
            "reinstalled": names,
            "diff": diff,
        }

    def _builder(self, interpreter: Interpreter) -> Builder:
        work = os.path.join(os.path.dirname(self.path), ".work-" + self.release["id"])
        shutil.rmtree(work, ignore_errors=True)
        os.makedirs(work, mode=0o700)
        return Builder(self.release, self.pins, interpreter, self.progress, work, (self._held,))

    def _need_space(self, interpreter: Interpreter) -> None:
        size = wheel_content(self.release.get("wheelhouse"), self.pins, interpreter)
        if size:
            need(
                self.path,
                int(size * _OVERHEAD) + _OVERHEAD_BYTES,
                f"release {self.release['id']} cannot be built",
                "Releases that no instance names any more can be removed.",
            )

    def _beat_hash(self, manifest: manifests.Manifest) -> Any:
        return lambda done: self.progress.beat(lambda: f"hashed {done} files of {len(manifest.files)}")

    def _lock_digest(self) -> str:
        return manifests.text_digest(self.lock.text)

    def _facts(self, manifest: manifests.Manifest) -> dict[str, Any]:
        return {
            "interpreter": manifest.facts["interpreter"]["path"],
            "distributions": [f"{one.name}=={one.version}" for one in manifest.distributions],
            "size": manifest.size,
            "fingerprint": manifest.fingerprint(),
        }


def wheel_content(wheelhouse: str | None, pins: Sequence[wheels.Pin], interpreter: Interpreter) -> int:
    """Bytes that the pinned wheels of a wheelhouse unpack to; 0 without a wheelhouse. Several fitting wheels: the largest."""
    largest: dict[str, int] = {}
    wanted = {pin.name: pin.version for pin in pins}
    for directory in wheel_directories(wheelhouse, interpreter.tag):
        for filename in wheel_names([directory]):
            found = wheels.serves(filename, interpreter.version, interpreter.machine)
            if not found or not filename.endswith(".whl") or not wheels.same_version(wanted.get(found[0], "-"), found[1]):
                continue
            try:
                with zipfile.ZipFile(os.path.join(directory, filename)) as archive:
                    size = sum(member.file_size for member in archive.infolist())
            except (OSError, zipfile.BadZipFile):
                continue
            largest[found[0]] = max(size, largest.get(found[0], 0))
    return sum(largest.values())
