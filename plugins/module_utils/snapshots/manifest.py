# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is recorded of a snapshot on its host, and what of a source it still matches. Pure but for reading and writing the record.

Weights are hashed once, when they are copied or when a full check is asked for; from then on size and modification time
stand for them. Small files are hashed every time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from .snapshot import File

SCHEMA = 1
#: Files up to this size in bytes are hashed at every look; a shard's index and a large vocabulary are below it.
SMALL_BYTES = 64 << 20


class Source(NamedTuple):
    """One file of the directory a snapshot is copied from. ``sha256`` is null for weights that were not hashed there."""

    path: str
    size: int
    mtime_ns: int
    sha256: str | None


class Recorded(NamedTuple):
    """One file of a snapshot on the host. ``source_mtime_ns``: modification time it had where it was copied from."""

    path: str
    size: int
    mtime_ns: int
    sha256: str | None
    source_mtime_ns: int | None = None


class Record(NamedTuple):
    """The manifest of a snapshot: its directory and its files by path."""

    path: str
    files: dict[str, Recorded]


def is_small(file: File) -> bool:
    """Whether a file is hashed at every look."""
    return not file.is_weight and file.size <= SMALL_BYTES


def manifest_path(directory: str, name: str) -> str:
    """Where the manifest of a model lies; a slash in its name becomes two dashes."""
    return os.path.join(directory, name.replace("/", "--") + ".json")


def load(path: str) -> Record | None:
    """Read a manifest; None where there is none or it cannot be understood."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            document = json.load(stream)
        if document["schema"] != SCHEMA:
            return None
        return Record(document["path"], {row["path"]: Recorded(**row) for row in document["files"]})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def dump(path: str, name: str, record: Record, facts: Mapping[str, Any]) -> None:
    """Write a manifest by way of a temporary file, mode 0644. ``facts``: more for people (when, from where)."""
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    rows = [record.files[key]._asdict() for key in sorted(record.files)]
    document = {"schema": SCHEMA, "name": name, "path": record.path, **facts, "files": rows}
    with open(path + ".new", "w", encoding="utf-8", errors="surrogateescape") as stream:
        json.dump(document, stream, indent=1)
        stream.flush()
        os.fsync(stream.fileno())
    os.chmod(path + ".new", 0o644)
    os.replace(path + ".new", path)


def intact(record: Record, present: Iterable[File]) -> set[str]:
    """Paths whose size and modification time on the host are as recorded."""
    return {
        file.path
        for file in present
        if file.path in record.files and (record.files[file.path].size, record.files[file.path].mtime_ns) == (file.size, file.mtime_ns)
    }


def same(source: Source, recorded: Recorded | None) -> bool | None:
    """Whether a recorded file has the source's content. None: equal sizes, and only the source's hash can tell."""
    if recorded is None or source.size != recorded.size:
        return False
    if source.sha256 is not None and recorded.sha256 is not None:
        return source.sha256 == recorded.sha256
    if source.mtime_ns == recorded.source_mtime_ns:
        return True
    return None if recorded.sha256 is not None else False
