# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Put a drifted release right without touching what is whole, and without a moment in which a file is missing.

What is broken is installed again in a second environment beside the release; each file is compared with the manifest
and only then renamed over the broken one. Processes that run from the release keep what they have open.
"""

from __future__ import annotations

import base64
import contextlib
import csv
import hashlib
import io
import os
import shutil
import stat
from collections.abc import Sequence
from typing import Callable, NamedTuple

from ..planning.locks import canonical
from ..problem import Problem, listed
from . import manifest as manifests
from .build import Builder
from .manifest import BYTE_CODE, ENVIRONMENT, Drift, Entry, Manifest


class Repair(NamedTuple):
    """What a drift takes: distributions to reinstall (index in the manifest), whether files of the environment itself are
    needed, sources whose byte code is compiled again, files to remove, files whose time or mode is set back."""

    distributions: list[int]
    environment: bool
    byte_code: list[str]
    remove: list[str]
    touch: list[str]


def plan(manifest: Manifest, drift: Drift) -> Repair:
    """Drift -> repair. Pure."""
    owners = {manifest.files[name].owner for name in drift.broken}
    return Repair(
        sorted(owner for owner in owners if owner >= 0),
        ENVIRONMENT in owners,
        sorted(name for name in drift.broken if manifest.files[name].owner == BYTE_CODE),
        list(drift.extra),
        sorted(set(drift.times) | set(drift.modes)),
    )


def described(manifest: Manifest, repair: Repair, drift: Drift) -> list[str]:
    """The repair as lines for people: one per package, then the rest."""
    rows = []
    for index in repair.distributions:
        one = manifest.distributions[index]
        names = [name for name in drift.broken if manifest.files[name].owner == index]
        rows.append(f"{one.name} {one.version}: {listed([_how(name, drift) for name in names], 3)}")
    own = [name for name in drift.broken if manifest.files[name].owner == ENVIRONMENT]
    if own:
        rows.append("the environment's own files: " + listed([_how(name, drift) for name in own], 3))
    if repair.byte_code:
        rows.append(f"byte code: {listed(repair.byte_code, 3)}")
    if repair.touch:
        rows.append(f"owner, mode or time: {listed(repair.touch, 3)}")
    if repair.remove:
        rows.append(f"not part of the release, to be removed: {listed(repair.remove, 3)}")
    return rows


def _how(name: str, drift: Drift) -> str:
    return f"{name} ({'missing' if name in drift.missing else 'altered'})"


def mend(builder: Builder, manifest: Manifest, drift: Drift, repair: Repair, uid: int | None, gid: int | None) -> Manifest:
    """Carry the repair out; give the manifest that holds from now on (byte code may differ from what was).

    :raises Problem: where a package cannot be installed, or its files are no longer those of the manifest. The release is
        then as it was.
    """
    root = builder.release["path"]
    sources = [name for name in drift.broken if manifest.files[name].owner != BYTE_CODE]
    stage = os.path.join(builder.work, os.path.basename(root))
    if sources:
        shutil.rmtree(stage, ignore_errors=True)
        builder.make_environment(stage)
        if repair.distributions:
            builder.install(stage, [canonical(manifest.distributions[index].name) for index in repair.distributions])
        _as_if_at(stage, root, builder.site)
        manifests.seal(stage, uid, gid)
        _check(stage, manifest, sources)
        for name in sources:
            _put(stage, root, name, manifest.files[name])
    for name in repair.touch:
        _set_back(os.path.join(root, name), manifest.files[name], uid, gid)
    for name in repair.remove:
        os.unlink(os.path.join(root, name))
        _remove_empty(root, os.path.dirname(name))
    if not repair.byte_code:
        return manifest
    return _recompile(builder, manifest, repair.byte_code, uid, gid)


def source_of(byte_code: str) -> str:
    """``a/__pycache__/b.cpython-311.pyc`` -> ``a/b.py``."""
    directory, name = os.path.split(byte_code)
    return os.path.join(os.path.dirname(directory), name.split(".")[0] + ".py")


def _as_if_at(stage: str, root: str, site: str) -> None:
    """Write the release's own path where the second environment's stands: scripts, their hashes in RECORD, settings."""
    old, new = os.fsencode(stage), os.fsencode(root)
    rewritten = set()
    for name in ["pyvenv.cfg", *(os.path.join("bin", entry) for entry in os.listdir(os.path.join(stage, "bin")))]:
        path = os.path.join(stage, name)
        if os.path.islink(path) or not os.path.isfile(path):
            continue
        with open(path, "rb") as stream:
            content = stream.read()
        if old in content:
            with open(path, "wb") as stream:
                stream.write(content.replace(old, new))
            rewritten.add(os.path.normpath(name))
    for info in os.listdir(os.path.join(stage, site)):
        record = os.path.join(stage, site, info, "RECORD")
        if os.path.isfile(record):
            _rehash(record, stage, site, rewritten)


def _rehash(record: str, stage: str, site: str, rewritten: set[str]) -> None:
    with open(record, encoding="utf-8", newline="") as stream:
        text = stream.read()
    rows = list(csv.reader(io.StringIO(text)))
    for row in rows:
        name = os.path.normpath(os.path.join(site, row[0])) if row else ""
        if name in rewritten:
            with open(os.path.join(stage, name), "rb") as stream:
                content = stream.read()
            value = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
            row[1:3] = [f"sha256={value}", str(len(content))]
    if rewritten:
        # pip sorts its rows (operations/install/wheel.py) and ends them with a line feed alone.
        rows = sorted(rows, key=lambda row: [str(word) for word in row])
        with open(record, "w", encoding="utf-8", newline="") as stream:
            csv.writer(stream, lineterminator="\r\n" if "\r\n" in text else "\n").writerows(rows)


def _check(stage: str, manifest: Manifest, names: Sequence[str]) -> None:
    wrong = []
    for name in names:
        path, entry = os.path.join(stage, name), manifest.files[name]
        if not os.path.lexists(path) or manifests.entry_of(path, os.lstat(path), entry.owner, None).sha256 != entry.sha256:
            wrong.append(name)
    if wrong:
        raise Problem(
            f"release {manifest.facts.get('id')} cannot be mended",
            f"files differ from what was installed when the release was built: {listed(wrong, 5)}",
            "the same packages give the same files",
            "a wheel was replaced by another one of the same name: find out which is right. "
            "To build the release anew remove its directory when no instance runs from it, then run the play again",
        )


def _put(stage: str, root: str, name: str, entry: Entry) -> None:
    source, target = os.path.join(stage, name), os.path.join(root, name)
    if os.path.isdir(target) and not os.path.islink(target):
        shutil.rmtree(target)
    parent = os.path.dirname(target)
    if not os.path.isdir(parent):
        os.makedirs(parent, mode=0o755)
    if entry.link is None:
        os.chmod(source, entry.mode)
        os.utime(source, ns=(entry.mtime_ns, entry.mtime_ns))
    os.replace(source, target)


def _set_back(path: str, entry: Entry, uid: int | None, gid: int | None) -> None:
    if uid is not None and gid is not None:
        os.lchown(path, uid, gid)
    if entry.link is None:
        os.chmod(path, entry.mode)
        os.utime(path, ns=(entry.mtime_ns, entry.mtime_ns))


def _remove_empty(root: str, below: str) -> None:
    while below:
        try:
            os.rmdir(os.path.join(root, below))
        except OSError:
            return
        below = os.path.dirname(below)


def _recompile(builder: Builder, manifest: Manifest, names: Sequence[str], uid: int | None, gid: int | None) -> Manifest:
    root = builder.release["path"]
    for name in names:
        _unlink(os.path.join(root, name))
    builder.compile_files(root, [source_of(name) for name in names])
    files = dict(manifest.files)
    for name in names:
        path = os.path.join(root, name)
        if not os.path.exists(path):
            raise Problem(
                f"release {manifest.facts.get('id')} cannot be mended",
                f"{source_of(name)} does not compile any more",
                "byte code of every file that had it",
                "remove the release's directory and run the play again",
            )
        _set_back_mode(path, uid, gid)
        status = os.lstat(path)
        files[name] = manifests.entry_of(path, status, BYTE_CODE, None)
    return manifest._replace(files=files)


def _set_back_mode(path: str, uid: int | None, gid: int | None) -> None:
    if uid is not None and gid is not None:
        os.lchown(path, uid, gid)
    os.chmod(path, manifests.sealed_mode(stat.S_IMODE(os.lstat(path).st_mode)))


def _unlink(path: str, remove: Callable[[str], None] = os.unlink) -> None:
    with contextlib.suppress(FileNotFoundError):
        remove(path)
