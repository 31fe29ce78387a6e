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
_ONLINE = ("--torchao-config", "--modelopt-quant", "--quantize-and-serve")
_ONLINE_FORMATS = ("bitsandbytes", "flash_rl")
_QUANTIZED = {"F64": 16, "F32": 8, "F16": 4, "BF16": 4, "F8_E4M3": 2, "F8_E5M2": 2}
#: ``mtp.0.``, ``language_model.mtp.layers.0.``, ``model.mtp_layers.0.`` (srt/models/qwen3_5_mtp.py, nemotron_h_mtp.py, hunyuan_v4_nextn.py).
_DRAFT = re.compile(r"(?:^|\.)mtp(?:_layers)?\.")
#: Left out with ``--language-only`` and by models that serve text unless asked otherwise (srt/models/kimi_vl.py:269).
_ENCODER = re.compile(r"(?:^|\.)(?:visual|vision_tower|vision_model|vision_encoder|audio_tower|audio_encoder|multi_modal_projector|mm_projector)\.")
#: Leftovers of a training (srt/model_loader/weight_utils.py, filter_files_not_needed_for_inference).
_LEFTOVERS = ("training_args.bin", "optimizer.bin", "optimizer.pt", "scheduler.pt", "scaler.pt")


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
    flags = flags_of(argv)
    config = {**weights.config, **_overrides(flags)}
    text: Any = config.get("text_config")
    language: Mapping[str, Any] = text if isinstance(text, Mapping) else config
    layers = language.get("num_hidden_layers")
    # Where the config says nothing, the model's class does: True in transformers, False in many classes.
    tied = language.get("tie_word_embeddings", config.get("tie_word_embeddings")) is not False
    quantizes = _quantizes(flags, config)
    smaller = _QUANTIZED if quantizes else _HALVED
    total, extra, twice, outside = 0, 0, 0, 0
    for name, tensor in weights.tensors.items():
        held = tensor.bytes // smaller.get(tensor.dtype, 1)
        layer = _LAYER.search(name)
        if _DRAFT.search(name) or (layer and isinstance(layers, int) and int(layer.group(1)) >= layers):
            extra += held  # layers for speculative decoding, which only a draft model loads
        elif tied and name.endswith("lm_head.weight"):
            twice += held
        elif _ENCODER.search(name):
            outside += held
        else:
            total += held
    left_out = [f"{extra} bytes of layers for speculative decoding"] if extra else []
    left_out += [f"{twice} bytes of an output layer that may be the embedding"] if twice else []
    left_out += [f"{outside} bytes of encoders of pictures and sound, which a text-only server does not load"] if outside else []
    if quantizes:
        left_out.append("three quarters of what is 16 bit, and half of what is 8 bit, since the server quantizes while it loads")
    return Bound(total, tuple(left_out))


def flags_of(argv: Sequence[Sequence[Any]]) -> dict[str, str]:
    """The flags of an argv with their first values."""
    return {str(words[0]): str(words[1]) if len(words) > 1 else "" for words in argv if words}


def kept_elsewhere(argv: Sequence[Sequence[Any]]) -> str:
    """The flag by which weights lie outside of a rank's own GPU memory, so that there is no lower bound for it; else nothing.

    ``--cpu-offload-gb`` is not among them: it says itself how much that is.
    """
    flags = flags_of(argv)
    for flag in ("--enable-paged-experts", "--kt-weight-path"):
        if flag in flags:
            return flag
    if flags.get("--offload-group-size", "-1") not in ("-1", "0"):
        return "--offload-group-size"
    mode = flags.get("--weight-cache-mode", "off")
    return "" if mode == "off" else f"--weight-cache-mode {mode}"


def _quantizes(flags: Mapping[str, str], config: Mapping[str, Any]) -> bool:
    """Whether the server makes the weights smaller than the files hold them."""
    online = any(flag in flags for flag in _ONLINE) or flags.get("--load-format") in _ONLINE_FORMATS
    method = flags.get("--quantization", "unquant").replace("_", "-")
    stored = config.get("quantization_config")
    if not isinstance(stored, Mapping) or not stored:
        return online or method != "unquant"
    if method == "unquant":
        return False
    own = str(stored.get("quant_method") or "").replace("_", "-")
    # gptq is loaded as gptq_marlin, modelopt as modelopt_fp4; anything else is another format than that of the files.
    return not (method.startswith(own) or own.startswith(method))


def _overrides(flags: Mapping[str, str]) -> dict[str, Any]:
    try:
        found = json.loads(flags.get("--json-model-override-args") or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _names(directory: str) -> list[str]:
    """The weight files by the index, else all that are there."""
    index = _json(os.path.join(directory, _INDEX)).get("weight_map")
    if isinstance(index, Mapping):
        return sorted(set(map(str, index.values())))
    names = sorted(name for name in os.listdir(directory) if name.endswith(".safetensors"))
    # The same weights once more, in another layout (srt/model_loader/weight_utils.py:769).
    return [name for name in names if not name.startswith("consolidated")] or names


def _others(directory: str) -> dict[str, int]:
    """Weight files of other formats: path -> bytes. :raises WeightsError: where there is none."""
    names = [name for name in sorted(os.listdir(directory)) if name.endswith(_OTHERS) and name not in _LEFTOVERS]
    found = {os.path.join(directory, name): os.stat(os.path.join(directory, name)).st_size for name in names}
    if len([name for name in names if name.endswith(".gguf")]) > 1:
        raise WeightsError(f"{directory} holds {len(names)} GGUF files, and nothing says which of them is served")
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
