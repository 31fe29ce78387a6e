# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPUs of a host by their index, from nvidia-smi."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Callable

from .command import Completed, run

_QUERY = ("nvidia-smi", "--query-gpu=index,uuid,name,pci.bus_id", "--format=csv,noheader,nounits")
_SECONDS = 30.0  # without the persistence daemon the driver initialises each GPU first

Runner = Callable[[Sequence[str]], Completed]


class GpuError(Exception):
    """nvidia-smi could not list the GPUs; the text says why."""


@dataclass(frozen=True)
class Gpu:
    """One GPU: index in PCI order, UUID, product name, PCI bus id (``00000000:17:00.0``)."""

    index: int
    uuid: str
    name: str
    bus_id: str | None


def parse(text: str) -> list[Gpu]:
    """nvidia-smi's CSV -> GPUs. A name may hold a comma, a field may be ``[N/A]``; a row that is no GPU is left out."""
    found = []
    for row in text.splitlines():
        words = [word.strip() for word in row.split(",")]
        if len(words) < 4 or not words[0].isdigit():
            continue
        bus_id = None if words[-1].startswith("[") else words[-1]
        found.append(Gpu(int(words[0]), words[1], ",".join(words[2:-1]), bus_id))
    return found


def gpus(runner: Runner | None = None) -> list[Gpu]:
    """The GPUs that the driver shows.

    :raises GpuError: where the driver does not answer.
    :raises CommandError: where nvidia-smi is not installed or does not end.
    """
    done = runner(_QUERY) if runner else run(_QUERY, timeout=_SECONDS)
    if done.rc:
        said = (done.stdout + done.stderr).strip().splitlines()
        raise GpuError(f"nvidia-smi ended with status {done.rc}: {said[-1] if said else 'no output'}")
    return parse(done.stdout)
