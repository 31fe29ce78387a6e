# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small real artifacts for tests: wheels, safetensors files, model directories."""

from __future__ import annotations

import base64
import hashlib
import json
import zipfile
from pathlib import Path


def wheel(directory: Path, name: str, version: str, files: dict[str, str], script: str = "") -> Path:
    """Write a wheel by hand; ``script``: a console script as ``name = module:function``."""
    info = f"{name}-{version}.dist-info"
    content = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if script:
        content[f"{info}/entry_points.txt"] = f"[console_scripts]\n{script}\n"
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        record = ""
        for member, text in content.items():
            archive.writestr(member, text)
            value = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
            record += f"{member},sha256={value},{len(text.encode())}\n"
        archive.writestr(f"{info}/RECORD", f"{record}{info}/RECORD,,\n")
    return path


def safetensors(path: Path, tensors: dict[str, int]) -> Path:
    """Write a safetensors file of byte tensors: name -> size in bytes."""
    header, end = {}, 0
    for name, size in tensors.items():
        header[name] = {"dtype": "U8", "shape": [size], "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(range(256)) * (end // 256) + b"\1" * (end % 256))
    return path


def model(directory: Path) -> Path:
    """A complete model of two shards."""
    directory.mkdir(parents=True)
    (directory / "config.json").write_text('{"model_type": "llama"}')
    (directory / "tokenizer.json").write_text('{"version": "1.0"}')
    safetensors(directory / "model-00001-of-00002.safetensors", {"a": 300, "b": 20})
    safetensors(directory / "model-00002-of-00002.safetensors", {"c": 1000})
    index = {"a": "model-00001-of-00002.safetensors", "b": "model-00001-of-00002.safetensors", "c": "model-00002-of-00002.safetensors"}
    (directory / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))
    return directory
