# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deploying again: what drifted is mended and nothing else, and a host outside --limit is left alone."""

from __future__ import annotations

from typing import Any

import testinfra.host

Hosts = dict[str, testinfra.host.Host]
Entries = dict[str, dict[str, Any]]


def invocations(hosts: Hosts, entries: Entries) -> dict[str, str]:
    return {role: hosts[role].check_output(f"systemctl show -P InvocationID {entries[role]['unit']}") for role in hosts}


def test_three_drifts_are_three_changes(hosts: Hosts, entries: Entries, key: str, deploy: Any) -> None:
    before = invocations(hosts, entries)
    victim = hosts["prefill"].check_output(f"ls {entries['prefill']['release']['path']}/lib/python3*/site-packages/requests/models.py")
    hosts["prefill"].check_output(f"rm {victim}")
    hosts["decode"].check_output(f"sed -i 's/^RestartSec=.*/RestartSec=1/' {entries['decode']['paths']['unit']}")
    hosts["router"].check_output(f"chmod 0666 {entries['router']['paths']['config']}")

    run = deploy()

    assert run.status == 0, run.output[-4000:]
    assert len(run.changed) == 3, run.changed
    for host, what in (("lab1", "release"), ("lab2", "Switch the units"), ("lab3", "Write what the plan says")):
        assert any(change.startswith(host) and what in change for change in run.changed), run.changed
    assert hosts["prefill"].file(victim).exists
    assert "RestartSec=10" in hosts["decode"].file(entries["decode"]["paths"]["unit"]).content_string
    assert hosts["router"].file(entries["router"]["paths"]["config"]).mode == 0o644
    assert invocations(hosts, entries) == before, "mending a file must not restart what runs its rendered set"
    assert key not in run.output


def test_limit_touches_one_host_and_plans_the_whole(hosts: Hosts, entries: Entries, deploy: Any) -> None:
    for role in hosts:
        hosts[role].check_output(f"chmod 0600 {entries[role]['paths']['config']}")

    run = deploy("--limit", "lab2")

    assert run.status == 0, run.output[-4000:]
    modes = {role: hosts[role].file(entries[role]["paths"]["config"]).mode for role in hosts}
    assert modes == {"prefill": 0o600, "decode": 0o644, "router": 0o600}
    assert len(run.changed) == 1, run.changed
    assert deploy().status == 0
