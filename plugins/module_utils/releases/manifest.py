# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The manifest of a release: every file of it, whose it is, and what of it has drifted.

``release.json`` is renamed into place last: a release without it does not exist. Files are compared by size,
modification time and mode; only where size or time differ is the content hashed. The time matters by itself: byte code
whose source carries another time than the one it was compiled from is compiled again at every start.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, NamedTuple

NAME = "release.json"
#: Written when everything is installed and not yet proved by the import check; renamed to NAME after it.
UNPROVED = "release.json.unproved"
SCHEMA = 1

#: Owners that are no distribution: files the environment itself consists of, and byte code compiled on the host.
ENVIRONMENT = -1
BYTE_CODE = -2

_READ_BYTES = 1 << 20


class Entry(NamedTuple):
    """One file: owner (index of its distribution, or a negative constant), size in bytes, modification time in
    nanoseconds, permission bits, SHA-256 of the content. For a symbolic link ``sha256`` is ``->`` and its target."""

    owner: int
    size: int
    mtime_ns: int
    mode: int
    sha256: str

    @property
    def link(self) -> str | None:
        return self.sha256[2:] if self.sha256.startswith("->") else None


class Distribution(NamedTuple):
    """One installed package: name and version as its metadata spell them, size of its files in bytes."""

    name: str
    version: str
    size: int


class Manifest(NamedTuple):
    """Everything known of a finished release. ``facts``: id, lock digest, interpreter and more, for people and checks."""

    facts: dict[str, Any]
    distributions: list[Distribution]
    files: dict[str, Entry]

    @property
    def size(self) -> int:
        return sum(entry.size for entry in self.files.values())

    def fingerprint(self) -> str:
        """SHA-256 over all paths and contents but byte code: equal for equal installations."""
        rows = [f"{path} {entry.sha256}" for path, entry in sorted(self.files.items()) if entry.owner != BYTE_CODE]
        return text_digest("\n".join(rows))

    def dump(self, path: str) -> None:
        """Write it to ``path`` by way of a temporary file, mode 0644, on disk before the rename."""
        document = {
            "schema": SCHEMA,
            **self.facts,
            "fingerprint": self.fingerprint(),
            "distributions": [list(one) for one in self.distributions],
            "files": {name: list(entry) for name, entry in self.files.items()},
        }
        with open(path + ".new", "w", encoding="utf-8", errors="surrogateescape") as stream:
            json.dump(document, stream, separators=(",", ":"), ensure_ascii=False)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(path + ".new", 0o644)
        os.replace(path + ".new", path)


def load(path: str) -> Manifest | None:
    """Read a manifest; None where there is none, or it is not whole or not of this schema, or was edited."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            document = json.load(stream)
        if document.pop("schema") != SCHEMA:
            return None
        stated = document.pop("fingerprint")
        distributions = [Distribution(*one) for one in document.pop("distributions")]
        files = {name: Entry(*row) for name, row in document.pop("files").items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    manifest = Manifest(document, distributions, files)
    return manifest if manifest.fingerprint() == stated else None


class Drift(NamedTuple):
    """What differs from the manifest, as sorted relative paths. ``times`` and ``modes`` need no new content."""

    missing: list[str]
    altered: list[str]
    times: list[str]
    modes: list[str]
    extra: list[str]

    @property
    def broken(self) -> list[str]:
        return sorted(self.missing + self.altered)

    def __bool__(self) -> bool:
        return any(self[:])


def walk(root: str) -> Iterable[tuple[str, os.stat_result]]:
    """Every file and symbolic link below ``root`` as (relative path, lstat), manifests excepted; directories are not listed."""
    pending = [""]
    while pending:
        below = pending.pop()
        with os.scandir(os.path.join(root, below)) as entries:
            for entry in entries:
                name = os.path.join(below, entry.name)
                if entry.is_dir(follow_symlinks=False):
                    pending.append(name)
                elif not name.startswith(NAME):
                    yield name, entry.stat(follow_symlinks=False)


def digest_of(path: str, beat: Callable[[int], object] | None = None) -> str:
    """SHA-256 of a file's content, hexadecimal. ``beat`` is told how many bytes have been read."""
    value, done = hashlib.sha256(), 0
    with open(path, "rb", buffering=0) as stream:
        for block in iter(lambda: stream.read(_READ_BYTES), b""):
            value.update(block)
            done += len(block)
            if beat:
                beat(done)
    return value.hexdigest()


def text_digest(text: str) -> str:
    """SHA-256 of a text in UTF-8, hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def digests(root: str, names: Sequence[str], beat: Callable[[int], object] = lambda done: None) -> dict[str, str]:
    """SHA-256 of many files, as many at once as there are processors up to four. ``beat`` is told how many are done."""
    found = {}
    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        paths = [os.path.join(root, name) for name in names]
        for done, (name, value) in enumerate(zip(names, pool.map(digest_of, paths)), 1):
            found[name] = value
            beat(done)
    return found


def is_byte_code(name: str) -> bool:
    return name.endswith(".pyc") and os.path.basename(os.path.dirname(name)) == "__pycache__"


def seal(root: str, uid: int | None, gid: int | None) -> None:
    """Give the whole tree to ``uid``/``gid`` (None: leave), readable by all and writable by its owner alone."""
    for directory, directories, names in os.walk(root):
        for name in [*directories, *names, ""]:
            path = os.path.join(directory, name) if name else directory
            status = os.lstat(path)
            if uid is not None and gid is not None and (status.st_uid, status.st_gid) != (uid, gid):
                os.lchown(path, uid, gid)
            if not stat.S_ISLNK(status.st_mode) and stat.S_IMODE(status.st_mode) != sealed_mode(status.st_mode):
                os.chmod(path, sealed_mode(status.st_mode))


def sealed_mode(mode: int) -> int:
    """Permission bits as a release has them: what its owner may do others may too, but for writing."""
    executable = 0o111 if stat.S_ISDIR(mode) or mode & 0o111 else 0
    return (stat.S_IMODE(mode) | 0o644 | executable) & ~0o6022 & 0o7777


def installed(site: str) -> list[tuple[Distribution, str]]:
    """Distributions in a ``site-packages`` directory with their ``.dist-info`` directory's name, sorted by name."""
    infos = sorted(os.listdir(site)) if os.path.isdir(site) else []
    return [(describe(site, info), info) for info in infos if info.endswith(".dist-info") and os.path.exists(os.path.join(site, info, "INSTALLER"))]


def describe(site: str, info: str) -> Distribution:
    """What one ``.dist-info`` directory says of its distribution."""
    headers = _headers(os.path.join(site, info, "METADATA"))
    size = sum(int(row[2]) for row in _record(site, info) if len(row) > 2 and row[2].isdigit())
    name, _dash, version = info[: -len(".dist-info")].partition("-")
    return Distribution(headers.get("name", name), headers.get("version", version), size)


def _headers(path: str) -> dict[str, str]:
    headers: dict[str, str] = {}
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            for row in stream:
                if not row.strip():
                    break
                key, colon, value = row.partition(":")
                if colon and not row[0].isspace():
                    headers.setdefault(key.strip().lower(), value.strip())
    except OSError:
        pass
    return headers


def _record(site: str, info: str) -> list[list[str]]:
    try:
        with open(os.path.join(site, info, "RECORD"), encoding="utf-8", newline="") as stream:
            return list(csv.reader(stream))
    except OSError:
        return []


def owners(root: str, site: str, infos: Sequence[str]) -> dict[str, int]:
    """Relative path -> index of the distribution whose RECORD lists it. ``site`` is relative to ``root``."""
    found: dict[str, int] = {}
    for index, info in enumerate(infos):
        for row in _record(os.path.join(root, site), info):
            if row:
                found[os.path.normpath(os.path.join(site, row[0]))] = index
    return found


def take(root: str, site: str, facts: Mapping[str, Any], beat: Callable[[int, int], object] = lambda done, total: None) -> Manifest:
    """Make the manifest of an installed and sealed tree. ``site``: its ``site-packages``, relative to ``root``."""
    packages = installed(os.path.join(root, site))
    owned = owners(root, site, [info for _one, info in packages])
    found = sorted(walk(root))
    regular = [name for name, status in found if stat.S_ISREG(status.st_mode)]
    hashes = digests(root, regular, lambda done: beat(done, len(regular)))
    files = {}
    for name, status in found:
        owner = BYTE_CODE if is_byte_code(name) else owned.get(name, ENVIRONMENT)
        files[name] = entry_of(os.path.join(root, name), status, owner, hashes.get(name))
    return Manifest(dict(facts), [one for one, _info in packages], files)


def entry_of(path: str, status: os.stat_result, owner: int, sha256: str | None) -> Entry:
    """The entry of one file; ``sha256`` None: a symbolic link, or hash it now."""
    if stat.S_ISLNK(status.st_mode):
        return Entry(owner, 0, 0, 0, "->" + os.readlink(path))
    return Entry(owner, status.st_size, status.st_mtime_ns, stat.S_IMODE(status.st_mode), sha256 or digest_of(path))


def compare(root: str, manifest: Manifest, uid: int | None = None, full: bool = False, beat: Callable[[int], object] = lambda done: None) -> Drift:
    """What of ``root`` differs from its manifest.

    :param uid: expected owner of every file; None: owners are not compared.
    :param full: hash every file, also those whose size and time are as they were.
    """
    present = dict(walk(root))
    drift = Drift([], [], [], [], [])
    suspects = []
    for name, entry in manifest.files.items():
        status = present.pop(name, None)
        if status is None:
            drift.missing.append(name)
        elif entry.link is not None or not stat.S_ISREG(status.st_mode):
            same = stat.S_ISLNK(status.st_mode) and os.readlink(os.path.join(root, name)) == entry.link
            drift.altered.extend([] if same else [name])
        else:
            if stat.S_IMODE(status.st_mode) != entry.mode or (uid is not None and status.st_uid != uid):
                drift.modes.append(name)
            if status.st_size != entry.size:
                drift.altered.append(name)
            elif full or status.st_mtime_ns != entry.mtime_ns:
                suspects.append(name)
    hashes = digests(root, suspects, beat)
    for name in suspects:
        if hashes[name] != manifest.files[name].sha256:
            drift.altered.append(name)
        elif os.lstat(os.path.join(root, name)).st_mtime_ns != manifest.files[name].mtime_ns:
            drift.times.append(name)
    # Python adds byte code of its own accord when root runs it; stale or foreign byte code is ignored by Python itself.
    drift.extra.extend(name for name in present if not is_byte_code(name))
    for names in drift:
        names.sort()
    return drift
