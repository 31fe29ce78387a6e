# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A deployed PD group, as its operator would look at it: through systemd, files, sockets and a client's request."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
from typing import Any

import pytest
import testinfra.host

Hosts = dict[str, testinfra.host.Host]
Entries = dict[str, dict[str, Any]]
ROOT = pathlib.Path(__file__).resolve().parents[3]
ROLES = ("prefill", "decode", "router")


@pytest.mark.parametrize("role", ROLES)
def test_the_unit_runs_and_starts_at_boot(hosts: Hosts, entries: Entries, role: str) -> None:
    service = hosts[role].service(entries[role]["unit"])
    assert service.is_running and service.is_enabled, hosts[role].run(f"journalctl -u {entries[role]['unit']} -n 50").stdout


@pytest.mark.parametrize("role", ROLES)
def test_the_process_carries_the_digest_of_its_rendered_set(hosts: Hosts, entries: Entries, role: str) -> None:
    pid = hosts[role].check_output(f"systemctl show -P MainPID {entries[role]['unit']}")
    environment = hosts[role].check_output(f"tr '\\0' '\\n' < /proc/{pid}/environ")
    assert f"PLUMBLINE_RENDER={entries[role]['render']['digest']}" in environment.splitlines()


@pytest.mark.parametrize("role", ROLES)
def test_the_port_belongs_to_the_unit(hosts: Hosts, entries: Entries, role: str) -> None:
    sockets = hosts[role].check_output(f"ss -Hltnp sport = :{entries[role]['port']}")
    owner = re.search(r"pid=(\d+)", sockets)
    assert owner, sockets
    assert entries[role]["unit"] in hosts[role].check_output(f"cat /proc/{owner.group(1)}/cgroup")


@pytest.mark.parametrize("role", ROLES)
def test_the_service_runs_unprivileged_and_owns_only_its_cache(hosts: Hosts, entries: Entries, role: str) -> None:
    host, entry = hosts[role], entries[role]
    assert host.user(entry["user"]).shell == "/usr/sbin/nologin"
    pid = host.check_output(f"systemctl show -P MainPID {entry['unit']}")
    assert host.check_output(f"stat -c %U /proc/{pid}") == entry["user"]
    owned = host.check_output(f"find /etc/sglang /opt/sglang /var/lib/sglang /srv/models /etc/systemd/system -user {entry['user']} 2>/dev/null || true")
    assert owned == ""


@pytest.mark.parametrize("role", ["prefill", "decode"])
def test_the_unit_is_hardened(hosts: Hosts, entries: Entries, role: str) -> None:
    exposure = hosts[role].run(f"systemd-analyze security --no-pager {entries[role]['unit']}").stdout.splitlines()[-1]
    level = re.search(r"(\d+\.\d+)", exposure)
    assert level and float(level.group(1)) <= 3.0, exposure


@pytest.mark.parametrize("role", ROLES)
def test_the_unit_may_lock_all_memory_that_the_host_can_give(hosts: Hosts, entries: Entries, role: str) -> None:
    """A transfer engine registers memory. A host without CAP_SYS_RESOURCE gives no more than its own PID 1 has."""
    assert hosts[role].check_output(f"systemctl show -P LimitMEMLOCK {entries[role]['unit']}") == "infinity"
    pid = hosts[role].check_output(f"systemctl show -P MainPID {entries[role]['unit']}")
    live, own = (re.search(r"Max locked memory\s+(\S+)\s+(\S+)", hosts[role].file(f"/proc/{number}/limits").content_string) for number in (pid, 1))
    assert live and own
    assert live.group(2) in ("unlimited", own.group(2))


@pytest.mark.parametrize("role", ROLES)
def test_the_key_is_in_its_file_and_nowhere_else(hosts: Hosts, key: str, role: str) -> None:
    host = hosts[role]
    # The pattern goes in on standard input of grep's -f, so that the search does not find itself in a command line.
    host.run(f"umask 077; printf %s {key} > /run/planted-key")
    try:
        arguments = host.check_output("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -aFf /run/planted-key || true")
        environments = host.check_output("cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -aFf /run/planted-key || true")
        files = host.check_output("grep -rlIFf /run/planted-key /etc /opt/sglang/launchers /var/lib/sglang /var/cache/sglang /var/log /root /home /tmp || true")
        # sudo logs the commands that this test runs; what the units and Ansible wrote is what counts.
        journal = host.check_output("journalctl --no-pager | grep -v 'sudo\\[' | grep -aFf /run/planted-key || true")
    finally:
        host.run("rm -f /run/planted-key")
    assert (arguments, environments, journal) == ("", "", "")
    assert files.splitlines() == ["/etc/sglang/credentials/tiny/api-key"]
    credential = host.file("/etc/sglang/credentials/tiny/api-key")
    assert (credential.user, credential.group, oct(credential.mode)) == ("root", "sglang", "0o640")


def test_a_request_without_the_key_is_refused(hosts: Hosts, entries: Entries) -> None:
    for role in ROLES:
        body = json.dumps({"model": entries[role]["served_name"], "messages": [{"role": "user", "content": "hello"}]})
        url = f"{entries[role]['url']}/v1/chat/completions"
        status = hosts["router"].check_output(f"curl -s -o /dev/null -w %{{http_code}} -H 'Content-Type: application/json' -d '{body}' {url}")
        assert status == "401", (role, status)


def test_the_snapshot_is_complete_and_read_only_to_the_service(hosts: Hosts, entries: Entries) -> None:
    for role in ("prefill", "decode"):
        path = entries[role]["model"]["path"]
        assert hosts[role].file(f"{path}/config.json").exists
        assert hosts[role].check_output(f"find {path} ! -user root -o -perm /022") == ""
        assert hosts[role].check_output(f"ls -d {path}.partial* 2>/dev/null || true") == ""


def test_a_completion_moves_at_least_the_prompts_cache() -> None:
    """Asks as a client does; the program itself compares what moved with the prompt's cache and says no where it is less."""
    done = subprocess.run([ROOT / "tests" / "lab" / "chat"], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "bytes of KV cache moved" in done.stdout
