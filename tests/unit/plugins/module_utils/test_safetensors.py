# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A safetensors file says itself how long it must be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.snapshots import safetensors
from ansible_collections.plumbline.sglang.tests.unit import artifacts


def header(**tensors: dict[str, object]) -> bytes:
    return json.dumps(tensors).encode()


def test_a_whole_file(tmp_path: Path) -> None:
    path = artifacts.safetensors(tmp_path / "m.safetensors", {"a": 300, "b": 0, "c": 5})
    found = safetensors.read(str(path))
    assert ({name: tensor.bytes for name, tensor in found.tensors.items()}, found.size) == ({"a": 300, "b": 0, "c": 5}, path.stat().st_size)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data[:-1], "1 bytes short"),
        (lambda data: data[:20], "no safetensors header fits"),
        (lambda data: data[:5], "no safetensors header fits"),
        (lambda data: data + b"xyz", "3 bytes too long"),
        (lambda data: b"", "it is empty"),
        (lambda data: b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "Git LFS pointer"),
        (lambda data: (4).to_bytes(8, "little") + b"[1]" + b"x" * 50, "no safetensors header"),
    ],
)
def test_a_file_that_is_not_whole(tmp_path: Path, change, words: str) -> None:
    path = artifacts.safetensors(tmp_path / "m.safetensors", {"a": 300})
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(safetensors.FormatError, match=words):
        safetensors.read(str(path))


def test_the_size_is_eight_and_the_header_and_the_last_offset() -> None:
    text = header(a={"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}, __metadata__={"format": "pt"})
    assert safetensors.parse(text) == safetensors.Header({"a": safetensors.Tensor("BF16", 12)}, 8 + len(text) + 12)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (header(a={"dtype": "U8", "shape": [4], "data_offsets": [2, 6]}), "hole or an overlap before tensor a"),
        (header(a={"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}, b={"dtype": "U8", "shape": [4], "data_offsets": [3, 7]}), "before tensor b"),
        (header(a={"dtype": "F32", "shape": [4], "data_offsets": [0, 4]}), "tensor a has 4 bytes, its shape"),
        (header(a={"dtype": "U8", "shape": [4]}), "no safetensors header"),
        (b"[]", "no safetensors header"),
    ],
)
def test_a_header_that_cannot_be(text: bytes, words: str) -> None:
    with pytest.raises(safetensors.FormatError, match=words):
        safetensors.parse(text)
