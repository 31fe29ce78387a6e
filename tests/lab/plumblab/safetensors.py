# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes the safetensors format: a length, a JSON header, then the tensors' bytes one after the other."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

BYTES_PER_BF16 = 2


@dataclass(frozen=True)
class Tensor:
    """A named tensor of bf16 values."""

    name: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of its bytes."""
        count = BYTES_PER_BF16
        for length in self.shape:
            count *= length
        return count


Source = Callable[[Tensor], bytes]


def header(tensors: Sequence[Tensor]) -> bytes:
    """Return the file's beginning: the header's length and the header, padded so that the data is aligned to 8 bytes."""
    entries: dict[str, object] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for tensor in tensors:
        entries[tensor.name] = {"dtype": "BF16", "shape": list(tensor.shape), "data_offsets": [offset, offset + tensor.size]}
        offset += tensor.size
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def write(path: Path, tensors: Sequence[Tensor], source: Source) -> int:
    """Write one file and return the number of its bytes."""
    beginning = header(tensors)
    count = len(beginning)
    with path.open("wb") as stream:
        stream.write(beginning)
        for tensor in tensors:
            data = source(tensor)
            if len(data) != tensor.size:
                raise ValueError(f"{tensor.name}: {len(data)} bytes for the shape {tensor.shape}, which takes {tensor.size}")
            stream.write(data)
            count += len(data)
        stream.flush()
        os.fsync(stream.fileno())
    return count


def shards(tensors: Sequence[Tensor], count: int) -> Sequence[Sequence[Tensor]]:
    """Split tensors, in their order, into a number of shards of about the same size."""
    total = sum(tensor.size for tensor in tensors)
    result: list[list[Tensor]] = [[] for _ in range(count)]
    seen = 0
    for tensor in tensors:
        result[min(count - 1, seen * count // total)].append(tensor)
        seen += tensor.size
    return result
