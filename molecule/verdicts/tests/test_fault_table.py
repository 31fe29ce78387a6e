# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Four faults, eight probes that people trust, and our verdict: who is fooled."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import testinfra.host
from faults import causes, probes
from faults.causes import until

Hosts = dict[str, testinfra.host.Host]
Entries = dict[str, dict[str, Any]]


def verdict(host: testinfra.host.Host) -> str:
    """What the program on the host says of its one instance."""
    (item,) = json.loads(host.run("/opt/sglang/tools/plumbline.pyz look --json").stdout)
    return str(item["verdict"])


@contextmanager
def scheduler_killed(host: testinfra.host.Host, entry: dict[str, Any]) -> Iterator[None]:
    """Its scheduler is killed, a moment ago."""
    host.check_output(f"kill -KILL {causes.scheduler(host, entry)}")
    try:
        yield
    finally:
        until(lambda: verdict(host) == "READY", "the unit has started again")


@contextmanager
def unit_beside_an_orphan(host: testinfra.host.Host, entry: dict[str, Any]) -> Iterator[None]:
    """The unit was started while an orphan holds its port."""
    with causes.orphan(host, entry):
        causes.start(host, entry)
        yield


FAULTS: dict[str, tuple[str, Callable[..., AbstractContextManager[Any]]]] = {
    "decode's scheduler killed": ("decode", scheduler_killed),
    "prefill's scheduler stopped": ("prefill", causes.scheduler_stopped),
    "orphan on prefill's port": ("prefill", unit_beside_an_orphan),
    "prefill stopped": ("prefill", causes.stopped),
}


def test_who_is_fooled(hosts: Hosts, entries: Entries, key: str) -> None:
    results, ours = {}, {}
    for fault, (role, cause) in FAULTS.items():
        for name in hosts:
            until(lambda name=name: verdict(hosts[name]) == "READY", f"the {name} is ready before: {fault}")
        target = probes.Target(hosts[role], entries[role], hosts["router"], entries["router"], key)
        with cause(hosts[role], entries[role]), ThreadPoolExecutor(max_workers=1) as pool:
            mine = pool.submit(verdict, hosts[role])
            results[fault] = probes.ask_all(target)
            ours[fault] = mine.result()
    print("\n" + probes.table(results, ours))
    assert "READY" not in ours.values()
    for fault, said in results.items():
        assert sum(said.values()) >= 3, f"{fault}: hardly a probe was fooled, so this shows nothing"
