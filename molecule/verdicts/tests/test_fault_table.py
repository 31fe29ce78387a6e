# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Four faults, eight probes that people trust, and our verdict: who is fooled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import testinfra.host
from faults import causes, probes
from faults.causes import is_ready, look, until
from faults.probes import Target

Hosts = dict[str, testinfra.host.Host]
Entries = dict[str, dict[str, Any]]


@contextmanager
def scheduler_killed(target: Target) -> Iterator[None]:
    """Its scheduler is killed, and the server has not seen it yet.

    It looks once a second (srt/utils/watchdog.py, SubprocessWatchdog) and then kills itself, so that what a probe says would depend on
    chance. After a pause that is longer than a second it looks at once, and then the whole second is left.
    """
    host, entry = target.host, target.entry
    main, rank = causes.show(host, entry, "MainPID"), causes.scheduler(host, entry)
    host.check_output(f"kill -STOP {main}; sleep 1.2; kill -CONT {main}; sleep 0.05; kill -KILL {rank}")
    try:
        yield
    finally:
        until(lambda: is_ready(host), "the unit has started again")


@contextmanager
def unit_beside_an_orphan(target: Target) -> Iterator[None]:
    """The unit was started while an orphan holds its port, which the router has taken for the server since."""
    with causes.orphan(target.host, target.entry):
        until(lambda: probes.router_readiness(target) and probes.router_lists_it(target), "the router accepts the orphan", 60)
        causes.start(target.host, target.entry)
        yield


@dataclass(frozen=True)
class Fault:
    """A fault: the role of the server that it is about, how it is brought about, and how many of the eight probes it fools at least."""

    role: str
    cause: Callable[[Target], AbstractContextManager[Any]]
    fooled: int


FAULTS = {
    "decode's scheduler killed": Fault("decode", scheduler_killed, 6),
    "prefill's scheduler stopped": Fault("prefill", lambda target: causes.scheduler_stopped(target.host, target.entry), 6),
    "orphan on prefill's port": Fault("prefill", unit_beside_an_orphan, 7),
    # Four of the eight ask the dead server itself.
    "prefill stopped": Fault("prefill", lambda target: causes.stopped(target.host, target.entry), 4),
}


def test_who_is_fooled(hosts: Hosts, entries: Entries) -> None:
    results, ours = {}, {}
    for name, fault in FAULTS.items():
        for role in hosts:
            until(lambda role=role: is_ready(hosts[role]), f"the {role} is ready before: {name}")
        target = Target(hosts[fault.role], entries[fault.role], hosts["router"], entries["router"])
        with fault.cause(target), ThreadPoolExecutor(max_workers=1) as pool:
            mine = pool.submit(look, target.host)
            results[name] = probes.ask_all(target)
            ours[name] = mine.result()["verdict"]
    print("\n" + probes.table(results, ours))
    assert "READY" not in ours.values()
    for name, fault in FAULTS.items():
        assert sum(results[name].values()) >= fault.fooled, f"{name}: fewer probes were fooled than are known to be, so this shows less than it says"
