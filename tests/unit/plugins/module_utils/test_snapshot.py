# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a directory is a complete model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.snapshots.snapshot import examine
from ansible_collections.plumbline.sglang.tests.unit import artifacts

FIRST, SECOND, INDEX = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json"


def change_index(root: Path, **tensors: str) -> None:
    document = json.loads((root / INDEX).read_text())
    document["weight_map"].update(tensors)
    (root / INDEX).write_text(json.dumps(document))


def partial_download(root: Path) -> None:
    (root / ".cache" / "huggingface" / "download").mkdir(parents=True)
    (root / ".cache" / "huggingface" / "download" / "x.incomplete").touch()


def test_a_complete_model(tmp_path: Path) -> None:
    verdict = examine(str(artifacts.model(tmp_path / "m")))
    assert (verdict.problems, verdict.notes) == ([], [])
    assert len(verdict.files) == 5


def test_one_file_needs_no_index(tmp_path: Path) -> None:
    root = artifacts.model(tmp_path / "m")
    for name in (FIRST, SECOND, INDEX):
        (root / name).unlink()
    artifacts.safetensors(root / "model.safetensors", {"a": 4})
    assert examine(str(root)).problems == []


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda root: (root / SECOND).unlink(), f"{SECOND} is missing"),
        (lambda root: (root / SECOND).write_bytes((root / SECOND).read_bytes()[:-7]), "7 bytes short"),
        (lambda root: (root / SECOND).write_bytes(b""), f"{SECOND}: it is empty"),
        (lambda root: artifacts.safetensors(root / FIRST, {"a": 300}), "lacks 1 tensors"),
        (lambda root: artifacts.safetensors(root / FIRST, {"a": 300, "b": 20, "stranger": 4}), "such as stranger"),
        (lambda root: change_index(root, d="model-00003-of-00003.safetensors"), "model-00003-of-00003.safetensors is missing"),
        (lambda root: (root / INDEX).unlink(), f"{INDEX} is missing"),
        (lambda root: (root / INDEX).write_text("{}"), "is no index"),
        (lambda root: (root / "config.json").unlink(), "config.json is missing"),
        (lambda root: (root / "config.json").write_text("{torn"), "config.json is no JSON object"),
        (lambda root: (root / "tokenizer.json").unlink(), "no tokenizer"),
        (lambda root: (root / "tokenizer.json").write_text(""), "tokenizer.json is empty"),
        (lambda root: (root / "x.safetensors.incomplete").touch(), "unfinished download"),
        (partial_download, ".cache/huggingface/download/x.incomplete"),
        (lambda root: (root / "link.json").symlink_to(root / "nowhere"), "leads nowhere"),
        (lambda root: [path.unlink() for path in root.glob("*.safetensors*")], "no weights"),
    ],
)
def test_an_incomplete_model_says_what_is_wrong(tmp_path: Path, spoil, words: str) -> None:
    root = artifacts.model(tmp_path / "m")
    spoil(root)
    problems = examine(str(root)).problems
    assert any(words in problem for problem in problems), problems


def test_a_file_beside_the_index_is_told_and_does_no_harm(tmp_path: Path) -> None:
    root = artifacts.model(tmp_path / "m")
    artifacts.safetensors(root / "consolidated.safetensors", {"x": 4})
    verdict = examine(str(root))
    assert verdict.problems == []
    assert verdict.notes == ["consolidated.safetensors is in no index; loaders may read it beside the others"]


def test_links_into_a_cache_are_followed(tmp_path: Path) -> None:
    root = artifacts.model(tmp_path / "m")
    (tmp_path / "blobs").mkdir()
    (root / SECOND).rename(tmp_path / "blobs" / "abc")
    (root / SECOND).symlink_to("../blobs/abc")
    assert examine(str(root)).problems == []


def test_other_formats_are_not_called_proved(tmp_path: Path) -> None:
    root = artifacts.model(tmp_path / "m")
    for path in root.glob("*.safetensors*"):
        path.unlink()
    (root / "pytorch_model-1.bin").write_bytes(b"x")
    (root / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": {"a": "pytorch_model-1.bin"}}))
    assert examine(str(root)).problems == []
    assert "does not tell" in examine(str(root)).notes[0]
    (root / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": {"a": "pytorch_model-2.bin"}}))
    assert "pytorch_model-2.bin is missing" in examine(str(root)).problems[0]
