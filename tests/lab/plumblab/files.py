# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that are either whole or absent: written beside their place, then renamed."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .console import Heartbeat, say

_CHUNK = 1 << 20


def write_text(path: Path, text: str, mode: int = 0o644) -> bool:
    """Write a small file atomically; return False when it already says the same."""
    data = text.encode()
    with contextlib.suppress(OSError):
        if path.read_bytes() == data and (path.stat().st_mode & 0o7777) == mode:
            return False
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = path.with_name(f".{path.name}.{os.getpid()}.partial")
    descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    staged.chmod(mode)
    staged.replace(path)
    return True


def write_json(path: Path, value: Any) -> bool:
    """Write a JSON file atomically; return False when it already says the same."""
    return write_text(path, json.dumps(value, indent=2, sort_keys=True) + "\n")


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in a JSON file, or None where the file is missing or not whole."""
    try:
        value = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def sha256(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        for chunk in iter(lambda: stream.read(_CHUNK), b""):
            digest.update(chunk)
    return digest.hexdigest()


def mirror_tree(source: Path, target: Path) -> None:
    """Make target hold the files of source and no others, file by file: a mounted directory keeps its inode."""
    wanted = {path.relative_to(source) for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    for relative in sorted(wanted):
        write_text(target / relative, (source / relative).read_text())
    for path in sorted(target.rglob("*"), reverse=True):
        relative = path.relative_to(target)
        if path.is_file() and relative not in wanted:
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()


def remove_tree(path: Path) -> None:
    """Remove a directory and everything below it; one that is not there is fine."""
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(path)


@contextlib.contextmanager
def exclusive(path: Path, purpose: str) -> Iterator[None]:
    """Hold a lock file while changing what it guards. The kernel drops it when the holder dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.seek(0)
            say(f"waiting: {stream.read().strip() or 'another lab command'} is at work on {path.parent}")
            with Heartbeat("waiting for it to end"):
                fcntl.flock(stream, fcntl.LOCK_EX)
        stream.seek(0)
        stream.truncate()
        stream.write(f"`lab {purpose}` (pid {os.getpid()})")
        stream.flush()
        yield
