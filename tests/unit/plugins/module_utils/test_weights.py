# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What weights take in memory at least, and where a file's bytes are: headers, page cache, mount table, counters."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.host import page_cache, storage
from ansible_collections.plumbline.sglang.plugins.module_utils.snapshots import weights
from ansible_collections.plumbline.sglang.plugins.module_utils.snapshots.safetensors import Tensor
from ansible_collections.plumbline.sglang.tests.unit import artifacts


def bound(argv: Any = (), **tensors: tuple[str, int]) -> int:
    """The lower bound for these tensors (``a__b`` stands for ``a.b``) in a model of two layers."""
    named = {name.replace("__", "."): Tensor(*value) for name, value in tensors.items() if name != "config"}
    config = {"num_hidden_layers": 2, **dict(tensors.get("config", ()))}  # type: ignore[call-overload]
    return weights.lower_bound(weights.Weights("/m", {"/m/a": 1}, named, config), argv).bytes


def test_every_tensor_counts_as_it_is_stored() -> None:
    assert bound(model__layers__0__w=("BF16", 100), model__layers__1__w=("F8_E4M3", 50), model__embed=("U8", 7)) == 157


def test_what_is_stored_wider_than_it_is_loaded_counts_as_16_bit() -> None:
    assert bound(model__layers__0__w=("F32", 100), model__layers__1__w=("F64", 100)) == 75


@pytest.mark.parametrize("name", ["model__layers__2__w", "model__layers__61__mlp__w", "mtp__0__w"])
def test_layers_for_speculative_decoding_are_not_expected(name: str) -> None:
    assert bound(model__layers__1__w=("BF16", 100), **{name: ("BF16", 1000)}) == 100


def test_an_output_layer_that_is_the_embedding_is_held_once() -> None:
    tensors = {"model__embed_tokens__weight": ("BF16", 100), "lm_head__weight": ("BF16", 100)}
    assert bound(**tensors, config=(("tie_word_embeddings", False),)) == 200  # type: ignore[arg-type]
    assert bound(**tensors, config=(("tie_word_embeddings", True),)) == 100  # type: ignore[arg-type]
    # The class of the model decides, and transformers' own default is that it is.
    assert bound(**tensors) == 100


@pytest.mark.parametrize("argv", [[["--quantization", "fp8"]], [["--torchao-config", "int4wo"]], [["--load-format", "bitsandbytes"]]])
def test_a_server_that_quantizes_on_its_own_may_hold_a_quarter(argv: Any) -> None:
    assert bound(argv, model__layers__0__w=("BF16", 100)) == 25
    assert bound(argv, model__layers__0__w=("BF16", 100), config=(("quantization_config", {"a": 1}),)) == 100  # type: ignore[arg-type]


def test_a_real_directory_is_measured_by_its_index(tmp_path: Path) -> None:
    artifacts.safetensors(tmp_path / "a.safetensors", {"model.layers.0.w": 300})
    artifacts.safetensors(tmp_path / "b.safetensors", {"model.layers.1.w": 200})
    artifacts.safetensors(tmp_path / "stray.safetensors", {"x": 999})
    index = {"weight_map": {"model.layers.0.w": "a.safetensors", "model.layers.1.w": "b.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    (tmp_path / "config.json").write_text(json.dumps({"text_config": {"num_hidden_layers": 1}}))
    found = weights.read(str(tmp_path))
    assert sorted(found.files) == [str(tmp_path / "a.safetensors"), str(tmp_path / "b.safetensors")]
    assert found.bytes == sum((tmp_path / name).stat().st_size for name in ("a.safetensors", "b.safetensors"))
    assert weights.lower_bound(found, []).bytes == 300


def test_other_formats_count_half_since_they_do_not_say_their_width(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"x" * 1000)
    assert weights.lower_bound(weights.read(str(tmp_path)), []).bytes == 500


@pytest.mark.parametrize(("make", "says"), [(lambda path: None, "holds no weights"), (lambda path: (path / "a.safetensors").write_bytes(b"xx"), "is broken")])
def test_a_directory_without_whole_weights_is_named(make: Any, says: str, tmp_path: Path) -> None:
    make(tmp_path)
    with pytest.raises(weights.WeightsError, match=says) as caught:
        weights.read(str(tmp_path))
    assert str(tmp_path) in str(caught.value)
    with pytest.raises(weights.WeightsError, match="No such file"):
        weights.read(str(tmp_path / "gone"))


# --- the page cache ---------------------------------------------------------------------------------------------------


def test_what_was_just_written_is_in_the_page_cache(tmp_path: Path) -> None:
    file = tmp_path / "weights"
    file.write_bytes(os.urandom(3 << 20) + b"tail")
    assert page_cache.resident(str(file)) == file.stat().st_size
    (tmp_path / "empty").touch()
    assert page_cache.resident(str(tmp_path / "empty")) == 0


def test_windows_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_cache, "_WINDOW", 1 << 20)
    file = tmp_path / "weights"
    file.write_bytes(os.urandom((5 << 20) + 17))
    assert page_cache.resident(str(file)) == file.stat().st_size


def test_a_hole_that_nobody_has_read_is_not_in_the_page_cache(tmp_path: Path) -> None:
    file = tmp_path / "weights"
    with open(file, "wb") as stream:
        stream.truncate(64 << 20)
    assert page_cache.resident(str(file)) < 64 << 20


def test_only_root_is_told_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert not page_cache.trustworthy()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert page_cache.trustworthy()


# --- mount table and counters -----------------------------------------------------------------------------------------

MOUNTS = r"""21 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw
22 21 0:30 / /srv rw - xfs /dev/sdb rw
23 22 0:31 / /srv/models rw,relatime shared:2 master:1 - nfs4 nas:/models rw
24 22 0:32 / /srv/with\040blank rw - fuse.sshfs nas: rw
"""


@pytest.mark.parametrize(
    ("path", "kind"), [("/etc", "ext4"), ("/srv/x", "xfs"), ("/srv/models/a", "nfs4"), ("/srv/modelsx", "xfs"), ("/srv/with blank/a", "fuse.sshfs")]
)
def test_the_file_system_is_that_of_the_longest_mount_point(path: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "mountinfo").write_text(MOUNTS)
    assert storage.file_system(path, str(tmp_path)) == kind


def test_no_mount_table_is_no_file_system(tmp_path: Path) -> None:
    assert storage.file_system("/srv", str(tmp_path)) == ""


def test_what_a_unit_has_read_is_taken_from_its_control_group_and_else_from_its_processes(tmp_path: Path) -> None:
    group = tmp_path / "cg" / "system.slice" / "x.service"
    group.mkdir(parents=True)
    for pid, count in ((7, 100), (8, 23)):
        (tmp_path / "proc" / str(pid)).mkdir(parents=True)
        (tmp_path / "proc" / str(pid) / "io").write_text(f"rchar: 9\nread_bytes: {count}\nwrite_bytes: 5\n")
    places = {"cgroups": str(tmp_path / "cg"), "proc": str(tmp_path / "proc")}
    found = storage.bytes_read("/system.slice/x.service", [7, 8, 9], **places)
    assert (found.bytes, found.source) == (123, "/proc/PID/io of its processes")
    (group / "io.stat").write_text("8:0 rbytes=1000 wbytes=5 rios=1\n8:16 rbytes=24 wbytes=0\n")
    found = storage.bytes_read("/system.slice/x.service", [7], **places)
    assert (found.bytes, "io.stat" in found.source) == (1024, True)
    assert storage.bytes_read("", [9], **places).bytes is None


def test_anonymous_memory_is_told_per_process_in_bytes(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "status").write_text("Name:\tx\nVmRSS:\t  900 kB\nRssAnon:\t  463500 kB\nRssFile:\t 1 kB\n")
    assert storage.anonymous_bytes([7, 8], str(tmp_path)) == {7: 463500 * 1024}
    assert storage.anonymous_bytes([os.getpid()])[os.getpid()] > 1 << 20
