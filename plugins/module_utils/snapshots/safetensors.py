# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Completeness of a safetensors file from itself: its header says how long it must be.

Format: 8 bytes little-endian length of the header, the header as JSON (tensor name -> dtype, shape, data_offsets), the
data. A file that is too short is still mapped by loaders and reads as zeros or garbage; a file that is too long was
not written by one writer.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import NamedTuple

#: Upper limit that the reference implementation sets for a header.
HEADER_LIMIT = 100_000_000
_LFS = b"version https://git-lfs"
_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "U16": 16, "I16": 16, "F16": 16, "BF16": 16,
    "U32": 32, "I32": 32, "F32": 32, "U64": 64, "I64": 64, "F64": 64, "C64": 64, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}  # fmt: skip


class Tensor(NamedTuple):
    """One tensor of a file: its dtype as the format spells it, its bytes."""

    dtype: str
    bytes: int


class Header(NamedTuple):
    """What the header of a file promises: the tensors by name, whole size of the file in bytes."""

    tensors: Mapping[str, Tensor]
    size: int


class FormatError(ValueError):
    """The file is no whole safetensors file; the text says what is wrong with it."""


def read(path: str) -> Header:
    """Read the header of a file and hold its size against it.

    :raises FormatError: where the header is broken, or the file is shorter or longer than it says.
    :raises OSError: where it cannot be read.
    """
    size = os.stat(path).st_size
    if size == 0:
        raise FormatError("it is empty")
    with open(path, "rb") as stream:
        start = stream.read(32)
        if start.startswith(_LFS):
            raise FormatError("it is a Git LFS pointer, not the weights: fetch them (git lfs pull)")
        length = int.from_bytes(start[:8], "little")
        if len(start) < 8 or length > min(HEADER_LIMIT, size - 8):
            raise FormatError(f"no safetensors header fits into its {size} bytes: it is cut off, or of another format")
        stream.seek(8)
        header = parse(stream.read(length))
    if size != header.size:
        how = f"{header.size - size} bytes short" if size < header.size else f"{size - header.size} bytes too long"
        raise FormatError(f"it is {how}: {size} bytes, and its header says {header.size}")
    return header


def parse(text: bytes) -> Header:
    """The header's JSON -> tensors and the size of the whole file: 8 + length of the header + end of the last tensor.

    :raises FormatError: for anything that is no header, for tensors that overlap, leave holes, or do not have the size of their shape.
    """
    try:
        entries = json.loads(text)
        tensors = {name: entry for name, entry in entries.items() if name != "__metadata__"}
        spans = sorted((int(entry["data_offsets"][0]), int(entry["data_offsets"][1]), name) for name, entry in tensors.items())
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        raise FormatError("its header is no safetensors header") from None
    end = 0
    for first, last, name in spans:
        if first != end or last < first:
            raise FormatError(f"its header leaves a hole or an overlap before tensor {name}")
        _check_size(name, tensors[name], last - first)
        end = last
    sizes = {name: Tensor(str(tensors[name].get("dtype")), last - first) for first, last, name in spans}
    return Header(sizes, 8 + len(text) + end)


def _check_size(name: str, entry: Mapping[str, object], size: int) -> None:
    bits = _BITS.get(str(entry.get("dtype")))
    shape = entry.get("shape")
    if bits is None or not isinstance(shape, list):
        return
    if math.prod(shape) * bits != size * 8:
        raise FormatError(f"tensor {name} has {size} bytes, its shape {shape} of {entry.get('dtype')} takes {math.prod(shape) * bits // 8}")
