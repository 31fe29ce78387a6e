# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Proofs: written once, by a check that may; believed for their own invocation alone; no cover for what is wrong now."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.readiness import proof, start_witness
from ansible_collections.plumbline.sglang.plugins.module_utils.readiness.check import Request, check
from ansible_collections.plumbline.sglang.tests.unit.witness import CHILD, GIB, OTHER_RUN, RUN, Host, capture, entry

STATE = "/var/lib/sglang/prefill-g-a"
PATH = f"{STATE}/proofs/{RUN}.json"
ONE_LOOK = Request(timeout=0, record=True)


def running() -> Host:
    host = Host()
    host.serves("prefill")
    host.says(capture("prefill_ready.log").split("SIGTERM")[0])
    return host


def look(host: Host, request: Request = ONE_LOOK, **changes: Any) -> dict[str, Any]:
    (item,) = check([entry(paths={"state": STATE}, **changes)], host, request)
    return item


def weeks_later(host: Host) -> None:
    """The journal has forgotten the start; a line of everyday life is left."""
    host.log = []
    host.now += 21 * 86400
    host.says("[2026-12-21 10:00:00] Prefill batch, #new-seq: 1")


def test_the_first_ready_verdict_is_written_down_with_what_was_seen() -> None:
    host = running()
    item = look(host)
    assert (item["verdict"], item["proof"]) == ("READY", PATH)
    written = host.files[PATH]
    assert written["ranks"] == [CHILD]
    assert written["render"] == "d" * 64
    assert [stage["stage"] for stage in written["stages"]][-1] == "warmup-begin"
    assert written["resolved"]["context_length"] == 2048
    assert {name for name, signal in written["signals"].items() if signal["state"] != "passed"} == {"load"}
    assert written["memory"]["held_bytes"] == {str(CHILD): 2 << 30}


def test_a_later_check_leaves_the_first_proof_as_it_is() -> None:
    host = running()
    look(host)
    host.files[PATH]["proved_at"] = "the first time"
    assert look(host)["proved_at"] == "the first time"
    assert host.files[PATH]["proved_at"] == "the first time"


def test_nothing_is_written_where_that_is_not_wanted_or_nothing_is_proved() -> None:
    host = running()
    assert look(host, Request(timeout=0))["proof"] == ""
    host.sockets.clear()
    assert look(host)["verdict"] == "NOT_READY"
    assert host.files == {}


def test_a_run_whose_start_has_left_the_journal_is_ready_by_its_proof() -> None:
    host = running()
    before = look(host)
    weeks_later(host)
    item = look(host)
    assert item["verdict"] == "READY"
    assert "its start-up lines have left the journal" in item["signals"]["log"]["observed"]
    assert item["seconds"] == before["seconds"] and item["stages"] == before["stages"]


def test_without_a_proof_the_same_run_is_not_called_ready() -> None:
    host = running()
    weeks_later(host)
    item = look(host)
    assert item["verdict"] == "INCONCLUSIVE"
    assert "the end of its start is not in the journal, and it has no proof" in item["reason"]


@pytest.mark.parametrize("left", ["The server is fired up and ready to roll!", "Load weight end. elapsed=1 s", "Start of pd disaggregation warmup ..."])
def test_a_start_of_which_the_journal_has_kept_a_part_is_covered_by_the_proof_and_inconclusive_without(left: str) -> None:
    host = running()
    look(host)
    weeks_later(host)
    host.says(f"[2026-11-30 21:41:30] {left}")
    assert look(host)["verdict"] == "READY"
    del host.files[PATH]
    assert look(host)["verdict"] == "INCONCLUSIVE"


def test_a_start_that_was_explained_stays_so_when_the_page_cache_is_another() -> None:
    host = running()
    host.cached = 0
    host.files[f"{STATE}/starts/{RUN}.json"] = start_witness.take(entry(), host, RUN)
    # Another server of this host has read the weights meanwhile.
    host.cached = GIB
    item = look(host)
    assert (item["verdict"], item["signals"]["load"]["details"]["explained"]) == ("READY", True)
    host.cached = 0
    item = look(host)
    assert (item["verdict"], item["signals"]["load"]["state"]) == ("READY", "passed")
    del host.files[PATH]
    assert look(host)["verdict"] == "INCONCLUSIVE"


@pytest.mark.parametrize("change", [{"invocation": OTHER_RUN}, {"unit": "another.service"}, {"role": "decode"}, {"schema": 0}, {"ranks": None}])
def test_a_proof_of_something_else_proves_nothing(change: dict[str, Any]) -> None:
    host = running()
    look(host)
    host.files[PATH].update(change)
    weeks_later(host)
    assert look(host)["verdict"] != "READY"


def test_a_proof_is_no_cover_for_a_fatal_line_since() -> None:
    host = running()
    look(host)
    weeks_later(host)
    host.says("Scheduler hit an exception: Traceback (most recent call last):\nRuntimeError: boom")
    item = look(host)
    assert item["verdict"] == "FAILED" and "boom" in item["reason"]


def test_a_proof_is_no_cover_for_a_scheduler_that_is_gone() -> None:
    host = running()
    look(host)
    host.dead.add(CHILD)
    item = look(host)
    assert item["verdict"] == "NOT_READY" and f"PID {CHILD}" in item["reason"]


def test_a_disk_that_is_full_costs_the_proof_and_not_the_verdict() -> None:
    host = running()

    def full(path: str, content: Any) -> None:
        raise OSError(28, "No space left on device")

    host.write_state = full  # type: ignore[method-assign]
    item = look(host)
    assert (item["verdict"], item["proof"]) == ("READY", "")


def test_an_entry_without_a_state_directory_has_no_proof() -> None:
    assert proof.path_of(entry(), RUN) == "" and proof.path_of(entry(paths={"state": STATE}), "") == ""
