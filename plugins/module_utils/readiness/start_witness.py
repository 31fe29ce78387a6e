# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a unit records as root before its main process starts: how much of the weights is in the page cache already.

Afterwards it cannot be known any more. It explains a start that is faster than the storage: the bytes need not be read.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from ..host.local import LocalHost
from ..snapshots.weights import WeightsError
from .instance_entry import run_file

SCHEMA = 1


def path_of(entry: Mapping[str, Any], invocation: str) -> str:
    """Where the witness of an invocation's start lies; empty where the entry names no state directory."""
    return run_file(entry, "starts", invocation)


def valid(content: Mapping[str, Any] | None, entry: Mapping[str, Any], invocation: str) -> bool:
    """Whether a file's content is the witness of this invocation of this unit."""
    return bool(content and content.get("schema") == SCHEMA and content.get("unit") == entry["unit"] and content.get("invocation") == invocation)


def take(entry: Mapping[str, Any], host: LocalHost, invocation: str) -> dict[str, Any]:
    """Look at the weights now. Whatever cannot be seen is said in ``problem``.

    ``cached_bytes`` is null where the kernel would not tell this user the truth.
    """
    seen: dict[str, Any] = {
        "schema": SCHEMA,
        "unit": entry["unit"],
        "invocation": invocation,
        "taken_at": host.utc(),
        "monotonic": round(host.monotonic(), 3),
        "file_system": "",
        "weight_bytes": None,
        "cached_bytes": None,
        "problem": "",
    }
    try:
        path = str((entry.get("model") or {})["path"])
        seen["file_system"] = host.file_system(path)
        weights = host.weights(path)
        seen["weight_bytes"] = weights.bytes
        seen["cached_bytes"] = host.cached_bytes(weights.files)
    except KeyError:
        seen["problem"] = "the entry names no model directory"
    except (WeightsError, OSError) as error:
        seen["problem"] = str(error)
    if seen["cached_bytes"] is None and not seen["problem"]:
        seen["problem"] = "the page cache shows itself to root only"
    return seen


def run(path: str) -> int:
    """For the unit's ``ExecStartPre``: take the witness of the start that systemd is making; always 0, since no start may fail for it."""
    invocation = os.environ.get("INVOCATION_ID", "")
    # The unit's own is 0077; what is written here is no secret, and is read by whoever looks.
    before = os.umask(0o022)
    try:
        with open(path, encoding="utf-8") as file:
            entry = json.load(file)
        host = LocalHost()
        target = path_of(entry, invocation)
        if not target:
            raise ValueError("no INVOCATION_ID in the environment, or no state directory in the entry")
        host.write_state(target, take(entry, host, invocation))
    except Exception as error:  # whatever it is, the engine starts
        sys.stdout.write(f"plumbline: this start has no witness: {type(error).__name__}: {error}\n")
    finally:
        os.umask(before)
    return 0
