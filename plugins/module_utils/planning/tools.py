# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The environment of the collection's own modules on hosts with GPUs: a release beside the engine's, from a lock that comes with the collection.

It holds NVML's Python module and nothing else. HTTP needs no library: host/http.py does what is wanted of one with the standard library, and
the same code runs where nothing is installed. Without this environment nvidia-smi is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import locks
from .instances import Host, Instance

KIND = "tools"
PACKAGE = "nvidia-ml-py"
LOCK = f"{PACKAGE}==13.615.71\n"


def wanted(host: Host, instances: Sequence[Instance]) -> bool:
    """Whether the host is to have it: one of its instances computes on GPUs, and ``sglang_tools`` does not say no."""
    return bool(host.variables["sglang_tools"]) and any(item.host == host.name and item.gpus and item.device != "cpu" for item in instances)


def release(host: Host) -> dict[str, Any]:
    """The release entry of the plan."""
    lock = locks.parse(LOCK)
    made = locks.release(
        kind=KIND,
        package=PACKAGE,
        version=lock.pins[PACKAGE],
        lock=lock,
        interpreter=host.variables["sglang_python"],
        root=host.variables["sglang_root"],
        wheelhouse=host.variables["sglang_wheelhouse"],
    )
    # An engine's lock may pin the same package, and is not asked for this.
    return {**made, "import_check": ["pynvml"]}
