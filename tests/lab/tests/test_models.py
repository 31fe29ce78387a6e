# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The models: a safetensors file says of itself exactly what is in it."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from plumblab import models, safetensors
from plumblab.models import MODELS, Shape, Weights
from plumblab.safetensors import Tensor

SMALL = Shape("small", hidden=8, intermediate=16, layers=3, heads=2, key_value_heads=1, head_dim=4, shards=2)


def read(path: Path) -> tuple[dict[str, Any], bytes]:
    """Read a file as the format defines it: the header, and the data behind it."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    assert length % 8 == 0
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def test_header_offsets_are_contiguous_and_end_with_the_file(tmp_path: Path) -> None:
    tensors = [Tensor("a", (2, 3)), Tensor("b.norm", (4,)), Tensor("c", (1, 1, 5))]
    count = safetensors.write(tmp_path / "x", tensors, Weights(0))
    assert count == (tmp_path / "x").stat().st_size
    header, data = read(tmp_path / "x")
    assert header.pop("__metadata__") == {"format": "pt"}
    assert [header[name]["data_offsets"] for name in ("a", "b.norm", "c")] == [[0, 12], [12, 20], [20, 30]]
    assert header["c"] == {"dtype": "BF16", "shape": [1, 1, 5], "data_offsets": [20, 30]}
    assert len(data) == 30
    # bf16 of 1.0, little-endian.
    assert data[12:20] == b"\x80\x3f" * 4


def test_wrong_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a: 3 bytes"):
        safetensors.write(tmp_path / "x", [Tensor("a", (2,))], lambda _tensor: b"123")


def test_weights_are_small_differ_and_repeat_from_the_seed() -> None:
    one, other = Tensor("one", (64, 64)), Tensor("other", (64, 64))
    first = Weights(7)
    assert first(one) == Weights(7)(one) != Weights(8)(one)
    assert first(one) != first(other)
    bits = struct.unpack(f"<{64 * 64}H", first(one))
    values = [struct.unpack("<f", struct.pack("<I", value << 16))[0] for value in bits]
    assert max(map(abs, values)) < 0.2
    assert abs(sum(values) / len(values)) < 0.005


def test_a_tensor_larger_than_the_block_is_filled() -> None:
    tensor = Tensor("large", (models._BLOCK_VALUES, 3))
    assert len(Weights(0)(tensor)) == tensor.size


def test_shards_keep_the_order_and_are_about_equal() -> None:
    tensors = MODELS["half-gib-llama"].tensors()
    parts = safetensors.shards(tensors, 2)
    assert [tensor for part in parts for tensor in part] == tensors
    sizes = [sum(tensor.size for tensor in part) for part in parts]
    assert max(sizes) / min(sizes) < 1.05


def test_half_gib_model_has_half_a_gibibyte_in_several_shards() -> None:
    shape = MODELS["half-gib-llama"]
    assert sum(tensor.size for tensor in shape.tensors()) >= 512 << 20
    assert shape.shards >= 2


def test_written_model_is_complete(tmp_path: Path) -> None:
    models.write(tmp_path / "small", SMALL)
    index = json.loads((tmp_path / "small" / "model.safetensors.index.json").read_text())
    found: dict[str, str] = {}
    for path in sorted((tmp_path / "small").glob("*.safetensors")):
        header, _data = read(path)
        found.update({name: path.name for name in header if name != "__metadata__"})
    assert index["weight_map"] == found
    assert set(found) == {tensor.name for tensor in SMALL.tensors()}
    assert index["metadata"]["total_size"] == sum(tensor.size for tensor in SMALL.tensors())
    config = json.loads((tmp_path / "small" / "config.json").read_text())
    vocabulary = json.loads((tmp_path / "small" / "tokenizer.json").read_text())["model"]["vocab"]
    assert config["vocab_size"] > max(vocabulary.values())


def test_one_shard_has_no_index(tmp_path: Path) -> None:
    models.write(tmp_path / "tiny", MODELS["tiny-llama"])
    names = {path.name for path in (tmp_path / "tiny").iterdir()}
    assert "model.safetensors" in names
    assert "model.safetensors.index.json" not in names
