# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The whole: bringing the lab up, saying how it is, and taking it down without a trace."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import cgroup, guest, hosts, images, layout, namespace, network, process, ssh, tools
from .console import say
from .errors import LabError
from .files import exclusive, read_json, remove_tree, write_json
from .layout import Host
from .podman import Podman
from .settings import Settings


def up(settings: Settings, wanted: Sequence[Host] | None, recreate: bool = False) -> None:
    """Have the lab running; what is there already is left alone."""
    tools.ensure()
    begun = time.monotonic()
    with exclusive(settings.lock, "up"):
        chosen = list(wanted) if wanted else recorded_layout(settings) or layout.load("default")
        podman = open_podman(settings)
        guest.ensure(settings)
        ssh.ensure(settings, [host.name for host in chosen])
        if not recreate and _all_well(settings, podman, chosen):
            say(f"{len(chosen)} hosts are up; nothing to do ({time.monotonic() - begun:.1f} s)")
            return
        _record(settings, chosen, complete=False)
        network.remember_forwarding(settings)
        network.ensure(settings, podman)
        new = hosts.ensure(settings, podman, chosen, recreate)
        hosts.make_reachable(settings, podman, [host.name for host in chosen], new)
        _record(settings, chosen, complete=True)
        say(f"{len(chosen)} hosts are up ({time.monotonic() - begun:.1f} s): ssh -F {ssh.config_path(settings)} {chosen[0].name}")


def open_podman(settings: Settings) -> Podman:
    """Return podman in the lab's namespace, after clearing away what an earlier boot or a dead namespace left."""
    holder = namespace.current(settings)
    if holder and (read_json(settings.run / "lab.json") or {}).get("boot_id", process.boot_id()) == process.boot_id():
        return Podman(settings, holder)
    monitor = hosts.live_monitor(settings)
    if monitor:
        say("the namespace's holder is gone, the hosts still run: entering their namespace")
        return Podman(settings, namespace.ensure(settings, adopt=monitor))
    holder = namespace.ensure(settings)
    # Podman's volatile state describes mounts and processes that are no more; without it podman starts afresh.
    _sweep(settings, holder)
    return Podman(settings, holder)


def down(settings: Settings, cache: bool) -> None:
    """Remove hosts, network, rules, processes and mounts; the caches too where asked."""
    if settings.run.exists():
        tools.ensure()
        with exclusive(settings.lock, "down"):
            names = _take_down(settings)
        say(f"down: {len(names)} hosts removed" + ("" if cache else f"; the caches stay in {settings.home}"))
    else:
        say(f"no lab is up in {settings.home}")
    if cache:
        say(f"removing {settings.home}")
        remove_tree(settings.home)


def _take_down(settings: Settings) -> list[str]:
    """Remove all that runs; return the names of the hosts there were."""
    podman = open_podman(settings)
    names = sorted(hosts.seen(settings, podman))
    for name in names:
        say(f"removing {name}")
        hosts.remove(settings, podman, name)
    podman.attempt("network", "rm", "--force", settings.network)
    holder = namespace.current(settings)
    if holder:
        _sweep(settings, holder)
    network.remove(settings)
    namespace.end(settings)
    images.tidy(settings)
    remove_tree(settings.run)
    return names


def status(settings: Settings) -> list[dict[str, Any]]:
    """Return what is known of each host, without changing anything."""
    holder = namespace.current(settings)
    chosen = recorded_layout(settings) or []
    found = hosts.seen(settings, Podman(settings, holder)) if holder else {}
    # Hosts outlive the holder; they answer, but podman cannot be asked about them until `up` has entered again.
    unseen = "absent" if holder else "no holder" if hosts.live_monitor(settings) else "down"
    rows = []
    for host in chosen:
        item = found.get(host.name)
        address = settings.address(host.number)
        rows.append(
            {
                "host": host.name,
                "address": address,
                "suite": host.suite,
                "flavour": host.flavour,
                "state": item.state if item else unseen,
                "ssh": unseen != "down" and ssh.answers(address),
                "current": not item or item.spec == hosts.spec(settings, host),
            }
        )
    return rows


def recorded_layout(settings: Settings) -> list[Host] | None:
    """Return the layout of the lab that was last brought up and not taken down."""
    value = read_json(settings.run / "lab.json")
    return layout.parse(value["hosts"], str(settings.run / "lab.json")) if value and value.get("hosts") else None


def running(settings: Settings) -> namespace.Holder:
    """Return the holder of a lab that is up, or say that there is none."""
    holder = namespace.current(settings)
    if not holder:
        raise LabError(f"no lab is running in {settings.home}", "a lab that is up", "run `lab up` first")
    return holder


def _all_well(settings: Settings, podman: Podman, wanted: Sequence[Host]) -> bool:
    """Return whether exactly the wanted hosts run as they should and answer, and the last `up` came to its end."""
    if not (read_json(settings.run / "lab.json") or {}).get("complete"):
        return False
    found = hosts.seen(settings, podman)
    if set(found) != {host.name for host in wanted} or not network.is_open(settings):
        return False
    return all(
        found[host.name].state == "running" and found[host.name].spec == hosts.spec(settings, host) and ssh.answers(settings.address(host.number))
        for host in wanted
    )


def _record(settings: Settings, wanted: Sequence[Host], complete: bool) -> None:
    write_json(settings.run / "lab.json", {"boot_id": process.boot_id(), "hosts": layout.dump(wanted), "complete": complete})


def _sweep(settings: Settings, holder: namespace.Holder) -> None:
    """End and remove what podman itself may not know of any more."""
    cgroup.remove(settings, holder)
    bridge = Path(f"/sys/class/net/{settings.bridge}")
    if bridge.exists():
        process.attempt(["ip", "link", "delete", settings.bridge])
    for name in ("podman", "libpod", "conmon"):
        remove_tree(settings.run / name)
