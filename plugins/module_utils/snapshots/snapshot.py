# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a directory is a complete model: weights against their index both ways, sizes against headers, what must be beside them.

A directory that exists, or that has a configuration, or many files, is not a complete model: files are never counted, and
each one is held against what names it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from . import safetensors

_SHARD = re.compile(r"^(?P<stem>.+)-(?P<number>\d{5})-of-(?P<total>\d{5})\.safetensors$")
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "tekken.json", "spiece.model", "sentencepiece.bpe.model")
_TOKENIZER_ENDINGS = (".tiktoken", ".spm")
_OTHER_WEIGHTS = (".bin", ".pt", ".pth", ".gguf", ".npz")
_MUST_HAVE_CONTENT = (".safetensors", ".json", ".model", ".tiktoken", *_OTHER_WEIGHTS)
_PARTIAL = (".incomplete", ".part", ".partial", ".aria2", ".tmp")
#: Not part of a model: a download tool's book-keeping (below it lie locks and metadata) and version control.
SKIPPED = (".cache", ".git", ".locks")


class File(NamedTuple):
    """One file of a snapshot: path relative to it, size in bytes, modification time in nanoseconds. Links are followed."""

    path: str
    size: int
    mtime_ns: int

    @property
    def is_weight(self) -> bool:
        return self.path.endswith((".safetensors", *_OTHER_WEIGHTS))


class Verdict(NamedTuple):
    """``problems``: what makes it incomplete, one sentence each. ``notes``: what could not be proved, or is odd and harmless."""

    files: list[File]
    problems: list[str]
    notes: list[str]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


def listing(root: str) -> tuple[list[File], list[str]]:
    """(files of a snapshot sorted by path, problems: links that lead nowhere, unreadable directories)."""
    files: list[File] = []
    problems: list[str] = []
    for directory, names, filenames in os.walk(root, onerror=lambda error: problems.append(f"{error.filename}: {error.strerror}")):
        names[:] = sorted(name for name in names if name not in SKIPPED)
        for name in sorted(filenames):
            path = os.path.join(directory, name)
            relative = os.path.relpath(path, root)
            try:
                status = os.stat(path)
            except OSError:
                target = f" to {os.readlink(path)}" if os.path.islink(path) else ""
                problems.append(f"{relative} is a link{target} that leads nowhere")
                continue
            files.append(File(relative, status.st_size, status.st_mtime_ns))
    return sorted(files), problems


def examine(root: str) -> Verdict:
    """Verify a model directory. Reads headers and small files only, so it takes seconds for any size.

    What headers cannot show (zeros inside a file of the right size) only a hash can.
    """
    files, problems = listing(root)
    notes: list[str] = []
    names = {file.path for file in files}
    problems += _leftovers(root, files)
    problems += _configuration(root, names)
    weights = [file.path for file in files if file.path.endswith(".safetensors")]
    indexes = [name for name in sorted(names) if name.endswith(".safetensors.index.json")]
    headers: dict[str, safetensors.Header] = {}
    for name in weights:
        try:
            headers[name] = safetensors.read(os.path.join(root, name))
        except safetensors.FormatError as error:
            problems.append(f"{name}: {error}")
        except OSError as error:
            problems.append(f"{name} cannot be read: {error.strerror}")
    for name in indexes:
        problems += _index(root, name, headers, names)
    problems += _shards(weights, indexes)
    if not weights:
        more, note = _other_weights(root, names)
        problems += more
        notes += note
    elif indexes:
        notes += _unlisted(root, indexes, weights)
    return Verdict(files, problems, notes)


def _leftovers(root: str, files: Iterable[File]) -> list[str]:
    problems = []
    for file in files:
        if file.path.endswith(_PARTIAL):
            problems.append(f"{file.path} is what an unfinished download leaves")
        elif file.size == 0 and file.path.endswith(_MUST_HAVE_CONTENT) and not file.path.endswith(".safetensors"):
            problems.append(f"{file.path} is empty")
    cache = os.path.join(root, ".cache")
    for directory, _names, names in os.walk(cache):
        for name in sorted(names):
            if name.endswith(".incomplete"):
                problems.append(f"{os.path.relpath(os.path.join(directory, name), root)} is what an unfinished download leaves")
    return problems


def _load(root: str, name: str) -> Any:
    try:
        with open(os.path.join(root, name), encoding="utf-8") as stream:
            return json.load(stream)
    except (OSError, ValueError):
        return None


def _configuration(root: str, names: set[str]) -> list[str]:
    problems = []
    # Mistral's own format carries params.json instead.
    configuration = "config.json" if "config.json" in names or "params.json" not in names else "params.json"
    if configuration not in names:
        problems.append("config.json is missing")
    elif not isinstance(_load(root, configuration), dict):
        problems.append(f"{configuration} is no JSON object")
    if not any(name in _TOKENIZERS or name.endswith(_TOKENIZER_ENDINGS) for name in names):
        problems.append(f"no tokenizer: none of {', '.join(_TOKENIZERS[:4])} is there")
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        if name in names and not isinstance(_load(root, name), dict):
            problems.append(f"{name} is no JSON object")
    return problems


def _index(root: str, name: str, headers: dict[str, safetensors.Header], names: set[str]) -> list[str]:
    """An index against the files, both ways: every tensor is in the file named for it, every tensor of these files is in the index."""
    document = _load(root, name)
    weight_map = document.get("weight_map") if isinstance(document, dict) else None
    if not isinstance(weight_map, dict) or not weight_map:
        return [f"{name} is no index (no weight_map)"]
    problems = []
    base = os.path.dirname(name)
    by_file: dict[str, set[str]] = {}
    for tensor, file in weight_map.items():
        by_file.setdefault(os.path.join(base, str(file)), set()).add(tensor)
    for file, tensors in sorted(by_file.items()):
        if file not in names:
            problems.append(f"{file} is missing ({name} names it for {len(tensors)} tensors)")
            continue
        header = headers.get(file)
        if header is None:
            continue
        lacking, strangers = sorted(tensors - header.tensors.keys()), sorted(header.tensors.keys() - weight_map.keys())
        if lacking:
            problems.append(f"{file} lacks {len(lacking)} tensors that {name} says are in it, such as {lacking[0]}")
        if strangers:
            problems.append(f"{file} holds {len(strangers)} tensors that {name} does not know, such as {strangers[0]}: they belong to another model")
    return problems


def _shards(weights: Iterable[str], indexes: Iterable[str]) -> list[str]:
    """Files named as shards need an index, and every number up to their total."""
    problems = []
    stems: dict[tuple[str, int], set[int]] = {}
    for name in weights:
        match = _SHARD.match(name)
        if match:
            stems.setdefault((match.group("stem"), int(match.group("total"))), set()).add(int(match.group("number")))
    for (stem, total), numbers in sorted(stems.items()):
        lacking = sorted(set(range(1, total + 1)) - numbers)
        if lacking:
            problems.append(f"{stem}-{lacking[0]:05d}-of-{total:05d}.safetensors is missing" + (f" and {len(lacking) - 1} more" if lacking[1:] else ""))
        if f"{stem}.safetensors.index.json" not in set(indexes):
            problems.append(f"{stem}.safetensors.index.json is missing: shards without it cannot be told to be complete")
    return problems


def _unlisted(root: str, indexes: Iterable[str], weights: Iterable[str]) -> list[str]:
    listed: set[str] = set()
    for name in indexes:
        weight_map = (_load(root, name) or {}).get("weight_map") or {}
        listed |= {os.path.join(os.path.dirname(name), str(file)) for file in weight_map.values()}
    return [f"{name} is in no index; loaders may read it beside the others" for name in weights if name not in listed and "/" not in name]


def _other_weights(root: str, names: set[str]) -> tuple[list[str], list[str]]:
    others = sorted(name for name in names if name.endswith(_OTHER_WEIGHTS) and not name.startswith(("training_args", "optimizer")))
    if not others:
        return ["no weights: there is no .safetensors file"], []
    problems = []
    for name in sorted(names):
        if name.endswith(".bin.index.json"):
            weight_map = (_load(root, name) or {}).get("weight_map") or {}
            lacking = sorted({str(file) for file in weight_map.values()} - names)
            problems += [f"{file} is missing ({name} names it)" for file in lacking]
    return problems, [f"the weights ({others[0]} …) are in a format that does not tell whether a file is whole"]
