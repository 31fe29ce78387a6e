# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small JSON files that hold what is known of one run: written whole or not at all, and believed only where nobody else could write them."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from typing import Any


def write(path: str, content: Mapping[str, Any], keep: int = 10) -> None:
    """Write ``content`` beside ``path`` and rename it into place; of all files of that directory the newest ``keep`` stay.

    :raises OSError: where it cannot be written; what was there is then as it was.
    """
    directory = os.path.dirname(path)
    os.makedirs(directory, mode=0o755, exist_ok=True)
    staged = f"{path}.{os.getpid()}.partial"
    try:
        handle = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=1, sort_keys=True)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(staged, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(staged)
        raise
    _thin_out(directory, keep)


def read(path: str) -> dict[str, Any] | None:
    """The content of a file that only root, or the user who asks, can have written; None where there is no such file.

    A file of somebody else is no evidence, so it is passed over like one that is broken.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(handle, encoding="utf-8") as file:
            facts = os.fstat(file.fileno())
            if facts.st_uid not in (0, os.geteuid()) or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return None
            content = json.load(file)
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def _thin_out(directory: str, keep: int) -> None:
    with suppress(OSError):
        files = [entry for entry in os.scandir(directory) if entry.name.endswith(".json")]
        for entry in sorted(files, key=lambda item: item.stat().st_mtime)[:-keep]:
            os.unlink(entry.path)
