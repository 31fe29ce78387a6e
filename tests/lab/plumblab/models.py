# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Small Llama models with random weights, written with the standard library alone.

They say nothing sensible, but the engine loads, serves and transfers them like any other.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import safetensors
from .console import Heartbeat, say, size
from .files import exclusive, read_json, remove_tree, sha256, write_json
from .safetensors import Tensor
from .settings import SOURCE, Settings

TOKENIZER = SOURCE / "tokenizer"
_VOCABULARY = 512
# Changes whenever the same shape gets other bytes, so that an older model is written again.
_GENERATION = 1
# Weights are read from one block of random values, at a place that depends on the tensor's name. An odd number of
# values keeps the repeats out of step with the rows.
_BLOCK_VALUES = 262_147
_SPREAD = 0.02
_ONE = struct.pack("<f", 1.0)[2:]


@dataclass(frozen=True)
class Shape:
    """What a model is made of."""

    name: str
    hidden: int
    intermediate: int
    layers: int
    heads: int
    key_value_heads: int
    head_dim: int
    shards: int
    seed: int = 0

    def tensors(self) -> list[Tensor]:
        """Return the tensors of a Llama of this shape, in the order of the layers."""
        hidden, inner = self.hidden, self.intermediate
        query, key = self.heads * self.head_dim, self.key_value_heads * self.head_dim
        result = [Tensor("model.embed_tokens.weight", (_VOCABULARY, hidden))]
        for layer in range(self.layers):
            prefix = f"model.layers.{layer}."
            result += [
                Tensor(prefix + "input_layernorm.weight", (hidden,)),
                Tensor(prefix + "self_attn.q_proj.weight", (query, hidden)),
                Tensor(prefix + "self_attn.k_proj.weight", (key, hidden)),
                Tensor(prefix + "self_attn.v_proj.weight", (key, hidden)),
                Tensor(prefix + "self_attn.o_proj.weight", (hidden, query)),
                Tensor(prefix + "post_attention_layernorm.weight", (hidden,)),
                Tensor(prefix + "mlp.gate_proj.weight", (inner, hidden)),
                Tensor(prefix + "mlp.up_proj.weight", (inner, hidden)),
                Tensor(prefix + "mlp.down_proj.weight", (hidden, inner)),
            ]
        return [*result, Tensor("model.norm.weight", (hidden,)), Tensor("lm_head.weight", (_VOCABULARY, hidden))]

    def config(self) -> dict[str, Any]:
        """Return the model's config.json."""
        return {
            "architectures": ["LlamaForCausalLM"],
            "attention_bias": False,
            "attention_dropout": 0.0,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "head_dim": self.head_dim,
            "hidden_act": "silu",
            "hidden_size": self.hidden,
            "initializer_range": _SPREAD,
            "intermediate_size": self.intermediate,
            "max_position_embeddings": 2048,
            "mlp_bias": False,
            "model_type": "llama",
            "num_attention_heads": self.heads,
            "num_hidden_layers": self.layers,
            "num_key_value_heads": self.key_value_heads,
            "pad_token_id": 0,
            "rms_norm_eps": 1e-6,
            "rope_theta": 10000.0,
            "tie_word_embeddings": False,
            "torch_dtype": "bfloat16",
            "use_cache": True,
            "vocab_size": _VOCABULARY,
        }


MODELS: dict[str, Shape] = {
    shape.name: shape
    for shape in (
        Shape("tiny-llama", hidden=128, intermediate=256, layers=2, heads=4, key_value_heads=2, head_dim=32, shards=1),
        Shape("half-gib-llama", hidden=1024, intermediate=2816, layers=26, heads=16, key_value_heads=4, head_dim=64, shards=2),
    )
}


class Weights:
    """Deterministic bf16 values: one block of small, roughly normal numbers, read from another place for each tensor."""

    def __init__(self, seed: int) -> None:
        generator = random.Random(seed)
        # The upper half of a float32 is its bf16.
        packed = struct.pack(f"<{_BLOCK_VALUES}f", *(generator.gauss(0.0, _SPREAD) for _ in range(_BLOCK_VALUES)))
        halves = bytearray(2 * _BLOCK_VALUES)
        halves[0::2], halves[1::2] = packed[2::4], packed[3::4]
        self._block = bytes(halves)
        self._seed = seed

    def __call__(self, tensor: Tensor) -> bytes:
        """Return a tensor's bytes; norms are 1.0."""
        if "norm" in tensor.name:
            return _ONE * (tensor.size // 2)
        start = 2 * random.Random(f"{self._seed}:{tensor.name}").randrange(_BLOCK_VALUES)
        turned = self._block[start:] + self._block[:start]
        whole, rest = divmod(tensor.size, len(turned))
        return turned * whole + turned[:rest]


def ensure(settings: Settings, names: Sequence[str]) -> list[Path]:
    """Have the named models, complete; return their directories."""
    with exclusive(settings.cache / "models.lock", "models"):
        return [_ensure(settings, MODELS[name]) for name in names]


def _ensure(settings: Settings, shape: Shape) -> Path:
    place = settings.models / shape.name
    note = settings.models / f".{shape.name}.json"
    if _complete(place, read_json(note), shape):
        say(f"{place}: nothing to do")
        return place
    begun = time.monotonic()
    staged = settings.models / f".{shape.name}.{os.getpid()}.partial"
    settings.models.mkdir(parents=True, exist_ok=True)
    for left in settings.models.glob(f".{shape.name}.*.partial"):
        remove_tree(left)
    write(staged, shape)
    files = {path.name: {"size": path.stat().st_size, "sha256": sha256(path)} for path in sorted(staged.iterdir())}
    note.unlink(missing_ok=True)
    remove_tree(place)
    staged.rename(place)
    write_json(note, {"generation": _GENERATION, "shape": shape.__dict__, "files": files})
    total = sum(path.stat().st_size for path in place.iterdir())
    say(f"{place}: {len(files)} files, {size(total)} ({time.monotonic() - begun:.1f} s)")
    return place


def write(directory: Path, shape: Shape) -> None:
    """Write a model with its tokenizer into a new directory."""
    directory.mkdir()
    write_json(directory / "config.json", shape.config())
    write_json(directory / "generation_config.json", {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0})
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        shutil.copyfile(TOKENIZER / name, directory / name)
    _write_weights(directory, shape)


def _write_weights(directory: Path, shape: Shape) -> None:
    weights = Weights(shape.seed)
    parts = safetensors.shards(shape.tensors(), shape.shards)
    index: dict[str, str] = {}
    with Heartbeat(f"writing {shape.name}"):
        for number, part in enumerate(parts, 1):
            name = "model.safetensors" if len(parts) == 1 else f"model-{number:05}-of-{len(parts):05}.safetensors"
            count = safetensors.write(directory / name, part, weights)
            say(f"  {shape.name}/{name}: {size(count)}")
            index.update({tensor.name: name for tensor in part})
    if len(parts) > 1:
        total = sum(tensor.size for tensor in shape.tensors())
        (directory / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": total}, "weight_map": index}, indent=2) + "\n")


def _complete(place: Path, note: Any, shape: Shape) -> bool:
    """Return whether the model is there as it was written: same shape, same files, same sizes."""
    if not note or note.get("generation") != _GENERATION or note.get("shape") != shape.__dict__:
        return False
    try:
        found = {path.name: path.stat().st_size for path in place.iterdir()}
    except OSError:
        return False
    return found == {name: entry["size"] for name, entry in note["files"].items()}
