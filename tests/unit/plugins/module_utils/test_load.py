# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The load signal: a start is explained, not observable, unexplained, or lacks its graphs; and the witness that is taken before it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.host.storage import BytesRead
from ansible_collections.plumbline.sglang.plugins.module_utils.readiness import start_witness
from ansible_collections.plumbline.sglang.plugins.module_utils.readiness.check import Request, check
from ansible_collections.plumbline.sglang.plugins.module_utils.signals import load
from ansible_collections.plumbline.sglang.tests.unit.witness import GIB, OTHER_RUN, RUN, Host, capture, context, entry, ready

STATE = {"state": "/var/lib/sglang/prefill-g-a"}
PATH = f"{STATE['state']}/starts/{RUN}.json"
LOG = capture("prefill_ready.log").split("SIGTERM")[0]


def started(cached_before: int | None, read: int | None = 0, cached_now: int | None = 0, **witness: Any) -> Host:
    """A server whose 1 GiB of weights was in the page cache to this extent, before and now, and that has read so much."""
    host = ready()
    host.cached = cached_before
    host.files[PATH] = {**start_witness.take(entry(paths=STATE), host, RUN), **witness}
    host.cached = cached_now
    host.storage = BytesRead(read, "the control group's io.stat")
    return host


def observed(host: Host, **changes: Any) -> Any:
    return load.observe(context(host, text=LOG, paths=STATE, **changes))


@pytest.mark.parametrize(
    ("host", "says"),
    [
        (started(GIB), "100 % were in the page cache before the start"),
        (started(0, read=GIB), "1.0 GiB were read from storage by this unit"),
        (started(GIB // 2, read=GIB // 2), "50 % were in the page cache before the start"),
        (started(0, read=0, cached_now=GIB), "read meanwhile by another process"),
        (started(GIB, file_system="nfs4"), "100 % were in the page cache before the start"),
    ],
)
def test_a_start_is_explained_by_where_the_bytes_came_from(host: Host, says: str) -> None:
    signal = observed(host)
    assert (signal.state, signal.details["explained"]) == ("passed", True), signal.observed
    assert says in signal.observed


def test_a_start_that_read_nothing_and_found_nothing_in_the_cache_is_not_explained() -> None:
    signal = observed(started(0, read=GIB // 10, cached_now=GIB // 10))
    assert (signal.state, signal.details["explained"]) == ("unknown", False)
    assert "came from nowhere" in signal.observed


def test_an_unexplained_start_makes_a_ready_server_inconclusive() -> None:
    host = started(0)
    host.says(LOG)
    (item,) = check([entry(paths=STATE)], host, Request(timeout=0))
    assert item["verdict"] == "INCONCLUSIVE" and "nothing explains this start" in item["reason"]


@pytest.mark.parametrize(
    ("host", "changes", "says"),
    [
        (ready(), {}, "has no witness"),
        (started(None), {}, "root only"),
        (started(0, file_system="nfs4"), {}, "nfs4, a network file system"),
        (started(0, file_system="fuse.sshfs"), {}, "fuse.sshfs, a network file system"),
        (started(0, invocation=OTHER_RUN), {}, "has no witness"),
        (started(0), {"argv": [["--load-format", "fastsafetensors"]]}, "--load-format fastsafetensors"),
        (started(GIB), {"argv": [["--weight-cache-mode", "client"]]}, "--weight-cache-mode client"),
        (started(0, read=None), {}, "is not counted"),
        (started(0), {"model": {"path": "/gone"}}, "/gone"),
    ],
)
def test_what_cannot_be_observed_is_not_held_against_a_start(host: Host, changes: dict[str, Any], says: str) -> None:
    signal = observed(host, **changes)
    assert (signal.state, signal.details["explained"]) == ("unknown", None), signal.observed
    assert "not observable" in signal.observed and says in signal.observed


def test_each_stage_of_the_start_is_told_with_its_seconds() -> None:
    host = started(GIB)
    made = context(host, paths=STATE)
    for at, text in ((10, "Load weight begin. avail mem"), (14, "Load weight end. elapsed"), (15, "Memory pool end. avail")):
        host.now = 1000.0 + at
        host.says(text)
    made.log.feed(host.journal(RUN))
    signal = load.observe(made)
    assert signal.details["stages"] == {
        "weights": {"seconds": 4.0, "bytes": GIB, "bytes_per_second": GIB // 4, "source": "100 % were in the page cache before the start"},
        "KV cache": {"seconds": 1.0},
    }
    assert "loaded in 4.0 s (256.0 MiB/s)" in signal.observed


def test_weights_that_are_committed_after_the_graphs_took_no_negative_time() -> None:
    host = started(GIB)
    made = context(host, paths=STATE)
    for at, text in ((10, "Load weight begin. avail mem"), (12, "Memory pool end. avail"), (15, "Load weight end. Committed real weights")):
        host.now = 1000.0 + at
        host.says(text)
    made.log.feed(host.journal(RUN))
    stages = load.observe(made).details["stages"]
    assert {name: stage["seconds"] for name, stage in stages.items()} == {"weights": 5.0}


GRAPHS = {"role": "decode", "device": "cuda", "gpus": [4]}


@pytest.mark.parametrize(
    ("changes", "text", "state"),
    [
        ({}, "", "failed"),
        ({}, "[2026-11-30 21:41:05] Capture target decode CUDA graph end. bs=[1], elapsed=1 s", "unknown"),
        ({}, "[2026-11-30 21:41:05] Capture draft decode CUDA graph end. bs=[1], elapsed=1 s", "failed"),
        ({}, "[2026-11-30 21:41:05] Capture cuda graph end. Time elapsed: 1 s", "unknown"),
        ({"argv": [["--disable-cuda-graph"]]}, "", "unknown"),
        ({"argv": [["--disable-decode-cuda-graph"]]}, "", "unknown"),
        ({"argv": [["--cuda-graph-backend-decode", "disabled"]]}, "", "unknown"),
        ({"argv": [["--cuda-graph-config", '{"decode": {"backend": "disabled"}}']]}, "", "unknown"),
        ({"argv": [["--cuda-graph-config", '{"decode": {"max_bs": 64}}']]}, "", "failed"),
        ({"argv": [["--disable-decode-cuda-graph"], ["--cuda-graph-backend-decode", "full"]]}, "", "failed"),
        ({"argv": [["--attention-backend", "torch_native"]]}, "", "unknown"),
        ({"argv": [["--decode-attention-backend", "flex_attention"]]}, "", "unknown"),
        ({"argv": [["--deepep-mode", "normal"]]}, "", "unknown"),
        ({"argv": [["--enable-mis"]]}, "", "unknown"),
        ({"device": "cpu"}, "", "unknown"),
    ],
)
def test_a_decode_that_captured_no_graphs_is_a_finding_and_never_a_fast_start(changes: dict[str, Any], text: str, state: str) -> None:
    host = ready("decode")
    options = {"argv": [], **GRAPHS, **changes}
    role = options.pop("role")
    signal = load.observe(context(host, role, text=text + "\n" + capture("decode_ready.log").split("SIGTERM")[0], **options))
    assert signal.state == state, signal.observed
    assert ("captured none" in signal.observed) == (state == "failed")


def test_a_journal_that_has_lost_the_load_says_nothing_of_graphs() -> None:
    text = "The server is fired up and ready to roll!"
    signal = load.observe(context(ready("decode"), "decode", text=text, device="cuda", gpus=[4], argv=[]))
    assert signal.state == "unknown", signal.observed


def test_a_prefill_is_not_asked_for_graphs() -> None:
    assert not load.wants_graphs({**entry("prefill"), **GRAPHS, "role": "prefill"})


# --- the witness ------------------------------------------------------------------------------------------------------


def test_the_witness_is_of_one_invocation_and_says_what_was_cached() -> None:
    host = ready()
    host.cached = GIB // 4
    seen = start_witness.take(entry(), host, RUN)
    assert (seen["weight_bytes"], seen["cached_bytes"], seen["file_system"], seen["problem"]) == (GIB, GIB // 4, "ext4", "")
    assert start_witness.valid(seen, entry(), RUN)
    assert not start_witness.valid(seen, entry(), OTHER_RUN)
    assert not start_witness.valid(seen, entry(unit="another.service"), RUN)


@pytest.mark.parametrize(("changes", "says"), [({"model": {"path": "/gone"}}, "/gone cannot be read"), ({"model": None}, "names no model directory")])
def test_what_the_witness_cannot_see_it_says(changes: dict[str, Any], says: str) -> None:
    seen = start_witness.take(entry(**changes), ready(), RUN)
    assert seen["cached_bytes"] is None and says in seen["problem"]


def test_no_start_fails_for_its_witness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("INVOCATION_ID", raising=False)
    file = tmp_path / "entry.json"
    assert start_witness.run(str(file)) == 0
    file.write_text("{")
    assert start_witness.run(str(file)) == 0
    file.write_text(json.dumps(entry()))
    assert start_witness.run(str(file)) == 0
    assert capsys.readouterr().out.count("this start has no witness") == 3


def test_a_real_start_leaves_its_witness_in_the_state_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INVOCATION_ID", RUN)
    file = tmp_path / "entry.json"
    file.write_text(json.dumps(entry(paths={"state": str(tmp_path / "state")}, model={"path": str(tmp_path / "gone")})))
    before = os.umask(0o077)
    try:
        assert start_witness.run(str(file)) == 0
        assert os.umask(0o077) == 0o077
    finally:
        os.umask(before)
    path = tmp_path / "state" / "starts" / f"{RUN}.json"
    assert path.stat().st_mode & 0o777 == 0o644
    written = json.loads(path.read_text())
    assert written["invocation"] == RUN and "gone" in written["problem"]
