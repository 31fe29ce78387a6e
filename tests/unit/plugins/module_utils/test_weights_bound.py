# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lower bound of weights is never above what a healthy server holds, whatever its checkpoint and its flags."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.snapshots.weights import WeightsError, kept_elsewhere, lower_bound, read

SIZES = {"F32": 4, "BF16": 2, "F8_E4M3": 1, "U8": 1}
HEAD = {"model.embed_tokens.weight": ("BF16", 100), "lm_head.weight": ("BF16", 100)}


def model(directory: Path, tensors: Mapping[str, tuple[str, int]], config: Mapping[str, Any] | None = None, name: str = "model.safetensors") -> Path:
    """A model whose headers are real and whose data is a hole in the file; tensors: name -> dtype, elements."""
    header, end = {}, 0
    for tensor, (dtype, count) in tensors.items():
        header[tensor] = {"dtype": dtype, "shape": [count], "data_offsets": [end, end + count * SIZES[dtype]]}
        end += count * SIZES[dtype]
    text = json.dumps(header).encode()
    with (directory / name).open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + end)
    (directory / "config.json").write_text(json.dumps(config or {}))
    return directory


def bound(directory: Path, *argv: list[str]) -> int:
    return lower_bound(read(str(directory)), argv).bytes


def test_32_bit_counts_as_16(tmp_path: Path) -> None:
    assert bound(model(tmp_path, {"w": ("F32", 100), "v": ("BF16", 10), "u": ("F8_E4M3", 7)})) == 227


@pytest.mark.parametrize(
    ("config", "size"),
    [({"tie_word_embeddings": True}, 200), ({"tie_word_embeddings": False}, 400), ({}, 200), ({"text_config": {"tie_word_embeddings": False}}, 400)],
)
def test_an_output_layer_counts_only_where_the_config_says_that_it_is_one(tmp_path: Path, config: dict[str, Any], size: int) -> None:
    assert bound(model(tmp_path, HEAD, config)) == size


@pytest.mark.parametrize("name", ["mtp.0.w", "model.mtp.0.w", "model.layers.4.w", "model.mtp_layers.0.w", "language_model.mtp.layers.0.w"])
def test_layers_for_speculation_are_left_out(tmp_path: Path, name: str) -> None:
    found = lower_bound(read(str(model(tmp_path, {"model.layers.3.w": ("BF16", 10), name: ("BF16", 100)}, {"num_hidden_layers": 4}))), [])
    assert found.bytes == 20 and "200 bytes of layers for speculative decoding" in found.left_out[0]


@pytest.mark.parametrize(
    ("dtype", "stored", "argv", "size"),
    [
        ("BF16", None, ["--quantization", "fp8"], 200),
        ("BF16", None, ["--quantization", "unquant"], 800),
        ("BF16", None, ["--torchao-config", "int4wo-128"], 200),
        ("BF16", None, ["--load-format", "bitsandbytes"], 200),
        ("F8_E4M3", "fp8", ["--quantization", "fp8"], 400),
        ("F8_E4M3", "fp8", ["--quantization", "quark_mxfp4"], 200),
        ("U8", "modelopt", ["--quantization", "modelopt_fp4"], 400),
        ("U8", "gptq", ["--quantization", "gptq_marlin"], 400),
    ],
)
def test_what_is_quantized_while_it_is_loaded_gets_smaller(tmp_path: Path, dtype: str, stored: str | None, argv: list[str], size: int) -> None:
    config = {"quantization_config": {"quant_method": stored}} if stored else {}
    assert bound(model(tmp_path, {"w": (dtype, 400)}, config), argv) == size


def test_layers_that_an_override_takes_away_are_left_out(tmp_path: Path) -> None:
    made = model(tmp_path, {"model.layers.0.w": ("BF16", 100), "model.layers.1.w": ("BF16", 100)}, {"num_hidden_layers": 2})
    assert bound(made) == 400
    assert bound(made, ["--json-model-override-args", '{"num_hidden_layers": 1}']) == 200
    assert bound(made, ["--json-model-override-args", "no JSON"]) == 400


def test_encoders_that_a_text_server_does_not_load_are_left_out(tmp_path: Path) -> None:
    found = lower_bound(read(str(model(tmp_path, {"model.layers.0.w": ("BF16", 100), "visual.blocks.0.w": ("BF16", 50)}))), [])
    assert found.bytes == 200 and "100 bytes of encoders" in found.left_out[0]


def test_the_same_weights_in_a_second_layout_count_once(tmp_path: Path) -> None:
    model(tmp_path, {"layers.0.attention.wq.weight": ("BF16", 100)}, name="consolidated.safetensors")
    assert bound(tmp_path) == 200
    assert bound(model(tmp_path, {"model.layers.0.self_attn.q_proj.weight": ("BF16", 100)})) == 200


def test_files_that_the_index_does_not_name_are_left_out(tmp_path: Path) -> None:
    model(tmp_path, {"stray": ("BF16", 100)}, name="stray.safetensors")
    model(tmp_path, {"a": ("BF16", 10)})
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "model.safetensors"}}))
    assert bound(tmp_path) == 20


def test_other_formats_count_half_without_the_leftovers_of_a_training(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"x" * 100)
    (tmp_path / "optimizer.bin").write_bytes(b"x" * 900)
    assert bound(tmp_path) == 50


def test_what_cannot_be_measured_says_why(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="holds no weights"):
        read(str(tmp_path))
    for name in ("q4.gguf", "q8.gguf"):
        (tmp_path / name).write_bytes(b"x")
    with pytest.raises(WeightsError, match="which of them is served"):
        read(str(tmp_path))
    with pytest.raises(WeightsError, match=r"nowhere cannot be read: No such file"):
        read(str(tmp_path / "nowhere"))
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "missing.safetensors"}}))
    with pytest.raises(WeightsError, match=r"missing\.safetensors cannot be read"):
        read(str(tmp_path))
    (tmp_path / "missing.safetensors").write_bytes(b"short")
    with pytest.raises(WeightsError, match="is broken"):
        read(str(tmp_path))


@pytest.mark.parametrize(
    ("argv", "flag"),
    [
        ([], ""),
        ([["--weight-cache-mode", "off"]], ""),
        ([["--cpu-offload-gb", "4"]], ""),
        ([["--offload-group-size", "-1"]], ""),
        ([["--offload-group-size", "4"]], "--offload-group-size"),
        ([["--weight-cache-mode", "client"]], "--weight-cache-mode client"),
        ([["--kt-weight-path", "/k"]], "--kt-weight-path"),
    ],
)
def test_flags_that_keep_weights_outside_of_a_rank(argv: list[list[str]], flag: str) -> None:
    assert kept_elsewhere(argv) == flag
