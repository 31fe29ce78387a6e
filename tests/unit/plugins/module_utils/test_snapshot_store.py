# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots on a host: verified in place, staged and switched, taken up, left alone."""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.problem import Problem
from ansible_collections.plumbline.sglang.plugins.module_utils.progress import Progress
from ansible_collections.plumbline.sglang.plugins.module_utils.releases.manifest import digest_of
from ansible_collections.plumbline.sglang.plugins.module_utils.snapshots import manifest as snapshot_manifest
from ansible_collections.plumbline.sglang.plugins.module_utils.snapshots import store as snapshot_store
from ansible_collections.plumbline.sglang.plugins.module_utils.snapshots.manifest import Source
from ansible_collections.plumbline.sglang.plugins.module_utils.snapshots.snapshot import listing
from ansible_collections.plumbline.sglang.tests.unit import artifacts

FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    return artifacts.model(tmp_path / "controller" / "tiny")


@pytest.fixture
def store(tmp_path: Path, origin: Path) -> snapshot_store.Store:
    model = {"name": "org/tiny", "path": str(tmp_path / "host" / "tiny"), "copy_from": str(origin)}
    user = pwd.getpwuid(os.geteuid()).pw_name
    return snapshot_store.Store(model, str(tmp_path / "state" / "manifests"), user, Progress(None))


def source(origin: Path, hashed: bool = False) -> list[Source]:
    """What the controller says of its directory: small files hashed, weights only where asked."""
    return [Source(*file, digest_of(str(origin / file.path)) if hashed or snapshot_manifest.is_small(file) else None) for file in listing(str(origin))[0]]


def copy(store: snapshot_store.Store, origin: Path) -> dict[str, Any]:
    """Does what the action plugin does."""
    plan = store.prepare(source(origin))
    for one in plan["transfers"]:
        with open(origin / one["path"], "rb") as stream, open(os.path.join(plan["stage"], one["path"]), "r+b") as target:
            stream.seek(one["offset"])
            target.seek(one["offset"])
            target.write(stream.read())
    store.finish(source(origin, hashed=True))
    return plan


def touch(path: Path) -> None:
    os.utime(path, ns=(1, 1))


def test_a_copy_is_whole_before_it_has_its_name(store: snapshot_store.Store, origin: Path) -> None:
    assert store.inspect(source(origin))["send"] == [file.path for file in source(origin)]
    plan = store.prepare(source(origin))
    assert not os.path.exists(store.path)
    shutil.rmtree(plan["stage"])
    copy(store, origin)
    assert os.listdir(os.path.dirname(store.path)) == ["tiny"]
    assert {path.stat().st_mode & 0o777 for path in Path(store.path).iterdir()} == {0o644}
    assert store.manifest.endswith("/org--tiny.json")


def test_a_copy_that_matches_costs_nothing(store: snapshot_store.Store, origin: Path) -> None:
    copy(store, origin)
    result = store.inspect(source(origin))
    assert (result["current"], result["changed"], result["send"], result["bytes"]) == (True, False, [], 0)


def test_only_what_differs_is_sent_again(store: snapshot_store.Store, origin: Path) -> None:
    copy(store, origin)
    inode = os.stat(os.path.join(store.path, FIRST)).st_ino
    artifacts.safetensors(origin / SECOND, {"c": 1001})
    plan = copy(store, origin)
    assert [one["path"] for one in plan["transfers"]] == [SECOND]
    assert os.stat(os.path.join(store.path, FIRST)).st_ino == inode
    assert store.inspect(source(origin))["current"]


def test_weights_with_another_time_are_asked_for_and_not_sent(store: snapshot_store.Store, origin: Path) -> None:
    copy(store, origin)
    touch(origin / SECOND)
    assert store.inspect(source(origin))["ask"] == [SECOND]
    result = store.inspect(source(origin, hashed=True))
    assert result["current"]
    store.refresh(source(origin, hashed=True))
    assert store.inspect(source(origin))["ask"] == []


@pytest.mark.parametrize("drift", ["altered", "deleted", "stray", "mode"])
def test_what_was_changed_by_hand_is_mended(store: snapshot_store.Store, origin: Path, drift: str) -> None:
    copy(store, origin)
    file = Path(store.path) / SECOND
    if drift == "altered":
        file.write_bytes(file.read_bytes()[:-1] + b"x")
    elif drift == "deleted":
        file.unlink()
    elif drift == "stray":
        (Path(store.path) / "extra.safetensors").write_bytes(b"x")
    else:
        file.chmod(0o666)
    assert not store.inspect(source(origin))["current"]
    plan = copy(store, origin)
    assert [one["path"] for one in plan["transfers"]] == ([SECOND] if drift in ("altered", "deleted") else [])
    assert store.inspect(source(origin))["current"]
    assert file.read_bytes() == (origin / SECOND).read_bytes()


def test_an_interrupted_copy_is_taken_up_within_a_file(store: snapshot_store.Store, origin: Path) -> None:
    plan = store.prepare(source(origin))
    with open(os.path.join(plan["stage"], SECOND), "r+b") as stream:
        stream.write((origin / SECOND).read_bytes()[:500])
    again = copy(store, origin)
    offsets = {one["path"]: one["offset"] for one in again["transfers"]}
    assert again["stage"] == plan["stage"]
    assert (offsets[SECOND], offsets[FIRST]) == (500, 0)
    assert store.inspect(source(origin))["current"]


def test_the_stage_of_another_source_is_removed(store: snapshot_store.Store, origin: Path) -> None:
    old = store.prepare(source(origin))["stage"]
    artifacts.safetensors(origin / SECOND, {"c": 999})
    new = store.prepare(source(origin))["stage"]
    assert new != old
    assert not os.path.exists(old)


def test_what_others_keep_beside_the_model_stays(store: snapshot_store.Store, origin: Path) -> None:
    kept = [Path(f"{store.path}.{ending}") for ending in ("old-2025-known-good", "partial-notes", "replaced-by-me", "partial-0123456789ab.keep")]
    mine = [Path(f"{store.path}.{ending}") for ending in ("partial-0123456789ab", "replaced-4711")]
    for directory in kept + mine:
        directory.mkdir(parents=True)
    copy(store, origin)
    assert [path.name for path in kept if not path.exists()] == []
    assert [path.name for path in mine if path.exists()] == []


def test_a_file_that_arrived_otherwise_is_not_switched_to(store: snapshot_store.Store, origin: Path) -> None:
    plan = store.prepare(source(origin))
    for one in plan["transfers"]:
        shutil.copyfile(origin / one["path"], os.path.join(plan["stage"], one["path"]))
    bad = Path(plan["stage"]) / SECOND
    bad.write_bytes(bad.read_bytes()[:-1] + b"x")
    with pytest.raises(Problem) as caught:
        store.finish(source(origin, hashed=True))
    assert SECOND in caught.value.seen
    assert not os.path.exists(store.path)
    assert not bad.exists()


def test_the_room_is_checked_before_anything_is_sent(store: snapshot_store.Store, origin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    neighbour = Path(os.path.dirname(store.path)) / "neighbour"
    neighbour.mkdir(parents=True)
    (neighbour / "weights").write_bytes(b"x" * 8192)
    monkeypatch.setattr("ansible_collections.plumbline.sglang.plugins.module_utils.space.free_bytes", lambda path: 1000)
    with pytest.raises(Problem) as caught:
        store.prepare(source(origin))
    assert "1000 B are free" in caught.value.seen
    assert "neighbour" in caught.value.seen
    assert "MiB free" in caught.value.expected
    assert os.listdir(os.path.dirname(store.path)) == ["neighbour"]


@pytest.mark.parametrize("kind", ["directory", "file", "link"])
def test_what_others_put_there_is_never_replaced(store: snapshot_store.Store, origin: Path, kind: str) -> None:
    os.makedirs(os.path.dirname(store.path))
    if kind == "directory":
        shutil.copytree(origin, store.path)
    elif kind == "file":
        Path(store.path).write_text("x")
    else:
        os.symlink(origin, store.path)
    for phase in (store.inspect, store.prepare):
        with pytest.raises(Problem):
            phase(source(origin))


def test_a_directory_on_the_host_is_verified_and_never_altered(store: snapshot_store.Store, origin: Path) -> None:
    shutil.copytree(origin, store.path)
    before = sorted((path.name, path.stat().st_mtime_ns, path.stat().st_mode) for path in Path(store.path).iterdir())
    assert store.verify(check_mode=True)["changed"]
    assert not os.path.exists(store.manifest)
    assert store.verify(check_mode=False)["changed"]
    assert not store.verify(check_mode=False)["changed"]
    assert sorted((path.name, path.stat().st_mtime_ns, path.stat().st_mode) for path in Path(store.path).iterdir()) == before


def test_a_directory_that_changed_since_is_told(store: snapshot_store.Store, origin: Path) -> None:
    shutil.copytree(origin, store.path)
    store.verify(check_mode=False)
    artifacts.safetensors(Path(store.path) / SECOND, {"c": 1001})
    result = store.verify(check_mode=False)
    assert (result["changed"], result["differs"]) == (True, [f"~ {SECOND}"])


def test_content_that_changed_at_the_same_size_and_time_takes_a_full_check(store: snapshot_store.Store, origin: Path) -> None:
    shutil.copytree(origin, store.path)
    store.verify(check_mode=False, full=True)
    file = Path(store.path) / SECOND
    status = file.stat()
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert not store.verify(check_mode=False)["changed"]
    with pytest.raises(Problem) as caught:
        store.verify(check_mode=False, full=True)
    assert SECOND in caught.value.seen


@pytest.mark.parametrize("spoil", ["absent", "incomplete"])
def test_a_directory_that_is_no_complete_model(store: snapshot_store.Store, origin: Path, spoil: str) -> None:
    if spoil == "incomplete":
        shutil.copytree(origin, store.path)
        (Path(store.path) / FIRST).unlink()
    with pytest.raises(Problem) as caught:
        store.verify(check_mode=True)
    assert (FIRST if spoil == "incomplete" else "no such directory") in caught.value.seen


def test_what_the_service_user_cannot_read_is_named(store: snapshot_store.Store, origin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(origin, store.path)
    monkeypatch.setattr(snapshot_store, "unreadable", lambda paths, user: [path for path in paths if path.endswith(SECOND)])
    with pytest.raises(Problem) as caught:
        store.verify(check_mode=True)
    assert SECOND in caught.value.seen
    assert "chmod" in caught.value.next


def test_another_run_on_the_same_snapshot_is_refused(store: snapshot_store.Store, origin: Path) -> None:
    plan = copy(store, origin)
    artifacts.safetensors(origin / SECOND, {"c": 999})
    with open(store.manifest + ".lock", "rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        for part in (store.prepare, store.finish, store.refresh):
            with pytest.raises(Problem) as caught:
                part(source(origin))
            assert "another run is verifying this snapshot" in caught.value.seen
            assert "wait until it has ended" in caught.value.next
    assert os.listdir(os.path.dirname(store.path)) == ["tiny"]
    assert plan["stage"] != copy(store, origin)["stage"]


def test_a_stage_that_another_run_finished_is_told(store: snapshot_store.Store, origin: Path) -> None:
    copy(store, origin)
    with pytest.raises(Problem) as caught:
        store.finish(source(origin, hashed=True))
    assert "is gone" in caught.value.seen
    assert store.inspect(source(origin))["current"]


def test_a_copy_says_how_much_was_sent(store: snapshot_store.Store, origin: Path) -> None:
    store.prepare(source(origin))
    plan = copy(store, origin)
    assert plan["bytes"] > 0
    (origin / "config.json").write_text((origin / "config.json").read_text() + " ")
    stage = store.prepare(source(origin))["stage"]
    shutil.copyfile(origin / "config.json", os.path.join(stage, "config.json"))
    assert store.finish(source(origin, hashed=True))["bytes"] == os.path.getsize(origin / "config.json")
