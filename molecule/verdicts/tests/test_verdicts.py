# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict of a real PD group under real faults: what must not be called ready is not, and is named."""

from __future__ import annotations

import json
from typing import Any

import pytest
import testinfra.host
from faults import causes
from faults.causes import is_ready, look, until

Hosts = dict[str, testinfra.host.Host]
Entries = dict[str, dict[str, Any]]
ENGINES = ("prefill", "decode")
ROLES = (*ENGINES, "router")


@pytest.fixture(autouse=True)
def all_is_well(hosts: Hosts) -> None:
    """Each test begins with a group that is ready, whatever the one before left."""
    for role in ROLES:
        until(lambda role=role: is_ready(hosts[role]), f"the {role} is ready")


def test_a_group_that_runs_is_ready_and_looking_changes_nothing(hosts: Hosts, verify: Any) -> None:
    for role in ROLES:
        hosts[role].check_output("touch /run/before")
    outcome = verify()
    assert outcome.status == 0, outcome.output[-3000:]
    assert {role: outcome[role]["verdict"] for role in ROLES} == dict.fromkeys(ROLES, "READY")
    for role in ROLES:
        assert outcome[role]["signals"]["process"] == "passed"
        assert hosts[role].check_output("find /etc /opt /var/lib/sglang -newer /run/before") == ""
    assert outcome["prefill"]["resolved"] == {
        "context_length": 2048,
        "kv_tokens": 8192,
        "disaggregation_mode": "prefill",
        "transfer_backend": "mooncake",
    }


def test_a_killed_scheduler_is_not_ready_until_a_new_invocation_has_proved_itself(hosts: Hosts, entries: Entries, verify: Any) -> None:
    host, entry = hosts["decode"], entries["decode"]
    # What happened before is forgotten, so that one restart is one.
    host.check_output(f"systemctl reset-failed {entry['unit']}")
    before = look(host)
    host.check_output(f"kill -KILL {causes.scheduler(host, entry)}")
    seen = []

    def proved() -> bool:
        item = look(host)
        seen.append((item["invocation"], item["verdict"]))
        return item["verdict"] == "READY"

    until(proved, "the decode is ready again")
    assert before["invocation"] not in {invocation for invocation, verdict in seen if verdict == "READY"}
    assert seen[0][1] != "READY"
    outcome = verify()
    assert outcome["decode"]["verdict"] == "READY"
    assert (before["restarts"], outcome["decode"]["restarts"]) == (0, 1)
    assert "restarted once" in outcome.output


def test_a_stopped_decode_is_failed(hosts: Hosts, entries: Entries, verify: Any) -> None:
    with causes.stopped(hosts["decode"], entries["decode"]):
        outcome = verify()
    assert outcome.status != 0
    assert outcome["decode"]["verdict"] == "FAILED" and "does not run" in outcome["decode"]["reason"]


def test_a_prefill_that_was_stopped_behind_a_router_that_says_ready(hosts: Hosts, entries: Entries, verify: Any) -> None:
    router = entries["router"]["url"]
    with causes.stopped(hosts["prefill"], entries["prefill"]):
        status = hosts["router"].check_output(f"curl -s -o /dev/null -w %{{http_code}} {router}/readiness")
        item = look(hosts["router"])
        outcome = verify()
    assert status == "200", "the router noticed at once: this test shows nothing"
    assert item["verdict"] != "READY" and entries["prefill"]["url"] in item["reason"]
    assert outcome["prefill"]["verdict"] == "FAILED"
    assert outcome["router"]["verdict"] != "READY" and entries["prefill"]["url"] in outcome["router"]["reason"]


def test_a_new_run_that_loads_is_not_ready_by_the_line_of_the_run_before(hosts: Hosts, entries: Entries, verify: Any) -> None:
    host, entry = hosts["prefill"], entries["prefill"]
    assert causes.ready_lines(host, entry) >= 1
    host.check_output(f"systemctl reset-failed {entry['unit']} || true; systemctl restart {entry['unit']}")
    outcome = verify("--limit", "lab1")
    assert outcome["prefill"]["verdict"] == "NOT_READY", outcome["prefill"]["reason"]
    assert list(outcome.rows) == ["prefill", "decode", "router"]
    assert outcome["decode"]["verdict"] == "NOT CHECKED"


def test_a_scheduler_that_is_stopped_is_not_ready_and_named(hosts: Hosts, entries: Entries, verify: Any) -> None:
    with causes.scheduler_stopped(hosts["prefill"], entries["prefill"]) as pid:
        outcome = verify("--limit", "lab1")
    assert outcome["prefill"]["verdict"] == "NOT_READY"
    assert f"PID {pid}" in outcome["prefill"]["reason"] and "is stopped" in outcome["prefill"]["reason"]


def test_an_orphan_that_answers_everything_is_named_at_once_and_until_the_new_unit_dies(hosts: Hosts, entries: Entries, verify: Any) -> None:
    host, entry = hosts["prefill"], entries["prefill"]
    with causes.orphan(host, entry) as pid:
        causes.start(host, entry)
        invocation = causes.show(host, entry, "InvocationID")
        early = verify("--limit", "lab1")
        seen = []

        def over() -> bool:
            item = look(host)
            seen.append((item["verdict"], item["reason"], causes.ready_lines(host, entry, invocation)))
            return causes.show(host, entry, "ActiveState") == "failed"

        until(over, "the new unit has died")
        late = verify("--limit", "lab1")
        said_ready = causes.ready_lines(host, entry, invocation)
        status = causes.show(host, entry, "ExecMainStatus")
    for outcome in (early, late):
        assert outcome["prefill"]["verdict"] == "FAILED" and f"PID {pid}" in outcome["prefill"]["reason"]
    assert {verdict for verdict, _reason, _lines in seen} == {"FAILED"}
    assert all(f"PID {pid}" in reason for _verdict, reason, _lines in seen)
    assert (said_ready, status) == (1, "3"), "the unit did not say that it is ready in its own invocation: this test shows nothing"


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        ("/--decode http/d", "the decode {decode} is missing"),
        ("s#--prefill http[^ ]* [0-9]*#--prefill {decode} 8998#; s#--decode http[^ ]*#--decode {prefill}#", "{decode}"),
        ("s#\\(--prefill http[^ ]*\\) [0-9]*#\\1#", "bootstrap"),
    ],
    ids=["a worker is missing", "roles swapped", "no bootstrap port"],
)
def test_a_router_with_other_workers_than_planned_is_not_ready_and_says_which(
    hosts: Hosts, entries: Entries, verify: Any, edit: str, says: str
) -> None:
    urls = {role: entries[role]["url"] for role in ENGINES}
    host, entry = hosts["router"], entries["router"]
    with causes.other_arguments(host, entry, edit.format(**urls)):
        until(lambda: causes.listens(host, entry), "the router listens", 60)
        until(lambda: "missing so far" not in look(host)["reason"] or "missing" in says, "the router has registered its workers", 60)
        outcome = verify("--limit", "lab3")
    assert outcome["router"]["verdict"] != "READY"
    assert says.format(**urls) in outcome["router"]["reason"], outcome["router"]["reason"]


def test_a_served_name_that_changed_in_the_inventory_alone_names_both(verify: Any, entries: Entries) -> None:
    group = {"tiny": {"model": {"name": "tiny-llama"}, "served_name": "renamed", "args": {"disaggregation-transfer-backend": "mooncake_tcp"}}}
    outcome = verify("-e", json.dumps({"sglang_groups": group}))
    assert outcome.status != 0
    for role in ENGINES:
        row = outcome[role]
        assert row["verdict"] == "FAILED"
        assert "tiny-llama" in row["reason"] and "renamed" in row["reason"], row["reason"]


def test_a_run_whose_start_has_left_the_journal_is_ready_by_its_proof_and_not_without(hosts: Hosts, entries: Entries, verify: Any) -> None:
    host, entry = hosts["decode"], entries["decode"]
    # Nobody deployed this run: the unit has had it proved itself.
    until(lambda: look(host)["proved_at"], "the run has its proof", 60)
    causes.forget_the_start(host, entry)
    outcome = verify("--limit", "lab2")
    assert outcome["decode"]["verdict"] == "READY", outcome["decode"]["reason"]
    invocation = causes.show(host, entry, "InvocationID")
    proof = f"{entry['paths']['state']}/proofs/{invocation}.json"
    host.check_output(f"mv {proof} /run/proof.json")
    without = look(host)
    host.check_output(f"mv /run/proof.json {proof}")
    assert without["verdict"] != "READY"
