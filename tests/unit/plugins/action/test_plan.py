# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action plugin through real ansible-playbook runs: nothing but the inventory decides, and errors come together."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.plumbline.sglang.tests.unit.update_plan_fixtures import INVENTORIES, ROOT, fixture, planned, run, shown_plan

KEY = "k3y-that-no-output-may-hold"
PLAYBOOK = """
- name: Plan
  hosts: all
  gather_facts: false
  tasks:
    - name: Derive every instance
      plumbline.sglang.plan:
        show: json
      run_once: true
    - name: Every host has the fact
      ansible.builtin.assert:
        that: ansible_facts.plumbline_plan.digest is string
        success_msg: "FACT {{ inventory_hostname }} {{ ansible_facts.plumbline_plan.digest }}"
"""
INVENTORY = """
all:
  vars:
    sglang_groups: {chat: {model: {path: /srv/models/tiny}}}
    sglang_engine_requirements: locks/engine.txt
    sglang_router_requirements: router.txt
    sglang_args: {device: cpu}
    sglang_api_key: k3y-that-no-output-may-hold
  children:
    sglang_prefill: {hosts: {p1: {ansible_host: 10.0.0.1}}}
    sglang_decode: {hosts: {d1: {sglang_address: "10.0.0.{{ number }}", number: 2}}}
    sglang_router:
      hosts:
        r1:
          sglang_address: "{{ hostvars['p1']['ansible_host'] | regex_replace('1$', '3') }}"
"""


def write_site(tmp_path: Path) -> Path:
    """A directory with an inventory, its locks (one beside it, one in files/) and a playbook."""
    (tmp_path / "locks").mkdir()
    (tmp_path / "files").mkdir()
    (tmp_path / "hosts.yml").write_text(INVENTORY, encoding="utf-8")
    (tmp_path / "locks" / "engine.txt").write_text("sglang==0.5.23\nnixl==1.5.1\n", encoding="utf-8")
    (tmp_path / "files" / "router.txt").write_text("smg==1.13.0\n", encoding="utf-8")
    (tmp_path / "play.yml").write_text(PLAYBOOK, encoding="utf-8")
    return tmp_path


@pytest.fixture(name="site")
def site_fixture(tmp_path: Path) -> Path:
    return write_site(tmp_path)


@pytest.fixture(name="whole", scope="module")
def whole_fixture(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The plan of the unchanged site, made without any option."""
    return shown_plan(go(write_site(tmp_path_factory.mktemp("whole"))).stdout)


def go(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(site / "play.yml", site / "hosts.yml", *arguments)


def facts(stdout: str) -> dict[str, str]:
    words = [line.split("FACT ", 1)[1].strip('"').split() for line in stdout.splitlines() if "FACT " in line]
    return dict(words)


@pytest.mark.parametrize("name", INVENTORIES)
def test_the_inventories_of_the_collection_give_the_known_plans(name: str) -> None:
    expected = json.loads(fixture(name).read_text(encoding="utf-8"))
    assert planned(ROOT / "inventory" / name) == expected, "run tests/unit/update_plan_fixtures.py and read the difference"


@pytest.mark.parametrize("name", INVENTORIES)
def test_the_inventories_of_the_collection_have_no_errors(name: str) -> None:
    findings = json.loads(fixture(name).read_text(encoding="utf-8"))["findings"]
    assert [item["rule"] for item in findings] == ([] if name == "lab" else ["no-key"]), "their key comes from the controller's environment"


def test_the_fact_is_on_every_host_and_templates_are_resolved_per_host(site: Path) -> None:
    result = go(site)
    assert result.returncode == 0, result.stdout + result.stderr
    plan = shown_plan(result.stdout)
    assert {host["address"] for host in plan["hosts"].values()} == {"10.0.0.1", "10.0.0.2", "10.0.0.3"}
    assert facts(result.stdout) == dict.fromkeys(("p1", "d1", "r1"), plan["digest"])
    assert KEY not in result.stdout + result.stderr
    assert all(item["render"]["digest"] in item["render"]["files"]["unit"] for item in plan["instances"])


@pytest.mark.parametrize("arguments", [("--limit", "d1"), ("--limit", "r1,p1"), ("--forks", "1"), ("--check", "--diff")])
def test_limit_forks_and_check_mode_do_not_change_the_plan(site: Path, whole: dict[str, Any], arguments: tuple[str, ...]) -> None:
    result = go(site, *arguments)
    assert result.returncode == 0, result.stdout + result.stderr
    assert shown_plan(result.stdout) == whole
    if arguments[0] == "--limit":
        assert set(facts(result.stdout)) == set(arguments[1].split(","))
    assert "changed=0" in result.stdout and "changed=1" not in result.stdout


def test_extra_variables_are_seen(site: Path) -> None:
    result = go(site, "-e", "sglang_start_budget_seconds=77")
    assert {item["start_budget_seconds"] for item in shown_plan(result.stdout)["instances"]} == {77}


def test_all_errors_are_shown_before_any_host_is_touched(site: Path) -> None:
    text = INVENTORY.replace("number: 2}", "number: 2, sglang_nonsense: 1, sglang_args: {page_size: 1}, sglang_admin_api_key: '{{ undefined_key }}'}")
    (site / "hosts.yml").write_text(text.replace("{device: cpu}", "'{{ nowhere }}'"), encoding="utf-8")
    result = go(site)
    output = result.stdout + result.stderr
    assert result.returncode == 2 and "FACT" not in output
    for rule in ("unknown-variable: d1", "arg-spelling: d1", "template: d1", "template: p1", "gpu-missing: d1/decode-chat-0, p1/prefill-chat-0"):
        assert f"ERROR {rule}" in output
    assert "sglang_args cannot be templated" in output and "'nowhere' is undefined" in output
    assert "no host was touched" in output


def test_errors_can_be_left_to_the_caller(site: Path) -> None:
    (site / "hosts.yml").write_text(INVENTORY.replace("number: 2}", "number: 2, sglang_nonsense: 1}"), encoding="utf-8")
    (site / "play.yml").write_text(PLAYBOOK.replace("show: json", "fail_on: never\n        show: json"), encoding="utf-8")
    result = go(site)
    assert result.returncode == 0 and [item["rule"] for item in shown_plan(result.stdout)["findings"]] == ["unknown-variable"]
    assert len(facts(result.stdout)) == 3


def test_warnings_are_printed(site: Path) -> None:
    (site / "hosts.yml").write_text(INVENTORY.replace("    sglang_api_key: k3y-that-no-output-may-hold\n", ""), encoding="utf-8")
    (site / "play.yml").write_text(PLAYBOOK.replace("show: json", "show: none"), encoding="utf-8")
    result = go(site)
    assert result.returncode == 0 and "[WARNING]: no-key: chat" in " ".join((result.stdout + result.stderr).split())


def test_a_task_without_run_once_is_refused(site: Path) -> None:
    (site / "play.yml").write_text(PLAYBOOK.replace("      run_once: true\n", ""), encoding="utf-8")
    result = go(site)
    assert result.returncode == 2 and "Add 'run_once: true'" in " ".join((result.stdout + result.stderr).split())


@pytest.mark.parametrize("missing", ["locks/engine.txt", "files/router.txt"])
def test_a_lock_that_is_not_there(site: Path, missing: str) -> None:
    (site / missing).unlink()
    result = go(site)
    assert result.returncode == 2 and "ERROR lock-missing" in result.stdout + result.stderr


def test_vaulted_keys_are_compared_and_stay_out(site: Path) -> None:
    (site / "secret").write_text("vault-password", encoding="utf-8")
    (site / "group_vars").mkdir()
    (site / "group_vars" / "all.yml").write_text(f"sglang_api_key: {KEY}\n", encoding="utf-8")
    (site / "hosts.yml").write_text(INVENTORY.replace("    sglang_api_key: k3y-that-no-output-may-hold\n", ""), encoding="utf-8")
    encrypt(site / "group_vars" / "all.yml", site / "secret")
    assert KEY not in (site / "group_vars" / "all.yml").read_text(encoding="utf-8")
    result = go(site, "--vault-password-file", str(site / "secret"))
    assert result.returncode == 0, result.stdout + result.stderr
    plan: dict[str, Any] = shown_plan(result.stdout)
    assert plan["hosts"]["p1"]["credentials"][0]["variable"] == "sglang_api_key" and plan["findings"] == []
    assert KEY not in result.stdout + result.stderr


def encrypt(path: Path, password: Path) -> None:
    from ansible.parsing.vault import VaultLib, VaultSecret

    vault = VaultLib([("default", VaultSecret(password.read_bytes()))])
    path.write_bytes(vault.encrypt(path.read_text(encoding="utf-8")))
