# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the weights of a model take: on disk, and at least in the memory of the server that has loaded them.

The lower bound is taken from the headers of the safetensors files, tensor by tensor, and errs on the low side: a server that
has loaded the model holds that much, and holds more.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import safetensors
from .safetensors import Tensor

_OTHERS = (".bin", ".pt", ".pth", ".gguf")
_INDEX = "model.safetensors.index.json"
_LAYER = re.compile(r"(?:^|\.)layers\.(\d+)\.")
#: Loaded as 16 bit where the server chooses the type itself (``--dtype auto``, srt/configs/model_config.py).
_HALVED = {"F32": 2, "F64": 4}
#: Flags that make the server quantize on its own while it loads; down to 4 bit, a quarter of 16.
_ONLINE = ("--quantization", "--torchao-config", "--modelopt-quant", "--quantize-and-serve")
_ONLINE_FORMATS = ("bitsandbytes", "flash_rl")
_QUARTER = 4


class WeightsError(Exception):
    """The weights cannot be measured; the text says why and names the path."""


@dataclass(frozen=True)
class Weights:
    """The weights of a model directory. ``files`` maps each weight file's path to its bytes; ``tensors`` each tensor's name to dtype and bytes."""

    directory: str
    files: Mapping[str, int]
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """Bytes on disk."""
        return sum(self.files.values())


@dataclass(frozen=True)
class Bound:
    """At least so many bytes are held by the whole server, all ranks together; ``left_out`` says what was not counted."""

    bytes: int
    left_out: tuple[str, ...] = ()


def read(directory: str) -> Weights:
    """Measure a model directory; reads headers only.

    :raises WeightsError: where there is no readable directory with weights in it.
    """
    try:
        names = _names(directory)
        headers = {os.path.join(directory, name): safetensors.read(os.path.join(directory, name)) for name in names}
    except OSError as error:
        raise WeightsError(f"{error.filename or directory} cannot be read: {error.strerror}") from None
    except (safetensors.FormatError, ValueError) as error:
        raise WeightsError(f"a weight file of {directory} is broken: {error}") from None
    if not headers:
        return Weights(directory, _others(directory))
    tensors = {name: tensor for header in headers.values() for name, tensor in header.tensors.items()}
    return Weights(directory, {path: header.size for path, header in headers.items()}, tensors, _json(os.path.join(directory, "config.json")))


def lower_bound(weights: Weights, argv: Sequence[Sequence[Any]]) -> Bound:
    """What a server started with ``argv`` holds at least."""
    if not weights.tensors:
        return Bound(weights.bytes // 2, ("half of the files, whose format does not say whether they hold 32 bit",))
    text: Any = weights.config.get("text_config")
    language: Mapping[str, Any] = text if isinstance(text, Mapping) else weights.config
    layers = language.get("num_hidden_layers")
    tied = bool(language.get("tie_word_embeddings", weights.config.get("tie_word_embeddings")))
    total, extra, twice = 0, 0, 0
    for name, tensor in weights.tensors.items():
        held = tensor.bytes // _HALVED.get(tensor.dtype, 1)
        layer = _LAYER.search(name)
        if name.startswith("mtp.") or (layer and isinstance(layers, int) and int(layer.group(1)) >= layers):
            extra += held  # layers for speculative decoding, which only a draft model loads
        elif tied and name.endswith("lm_head.weight"):
            twice += held
        else:
            total += held
    left_out = [f"{extra} bytes of layers for speculative decoding"] if extra else []
    left_out += [f"{twice} bytes of an output layer that is the embedding"] if twice else []
    flags = {str(words[0]): str(words[1]) if len(words) > 1 else "" for words in argv if words}
    online = flags.keys() & set(_ONLINE) or flags.get("--load-format") in _ONLINE_FORMATS
    if online and not weights.config.get("quantization_config"):
        total //= _QUARTER
        left_out.append("three quarters of the rest, since the server quantizes while it loads")
    return Bound(total, tuple(left_out))


def _names(directory: str) -> list[str]:
    """The weight files by the index, else all that are there."""
    index = _json(os.path.join(directory, _INDEX)).get("weight_map")
    if isinstance(index, Mapping):
        return sorted(set(map(str, index.values())))
    return sorted(name for name in os.listdir(directory) if name.endswith(".safetensors"))


def _others(directory: str) -> dict[str, int]:
    """Weight files of other formats: path -> bytes. :raises WeightsError: where there is none."""
    found = {os.path.join(directory, name): os.stat(os.path.join(directory, name)).st_size for name in sorted(os.listdir(directory)) if name.endswith(_OTHERS)}
    if not found:
        raise WeightsError(f"{directory} holds no weights: no file that ends in .safetensors or {', '.join(_OTHERS)}")
    return found


def _json(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
