# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the machine itself: init, NUMA, GPUs, addresses, ports, file systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..host.command import CommandError
from ..host.gpus import Gpu
from ..host.systemd import SystemdError
from ..problem import listed
from ..progress import human_bytes
from .types import CLEAN, INCONCLUSIVE, PROBLEM, UNCHECKED, Check, Context, Found

#: Debian 12 and RHEL 9 have 252, Ubuntu 22.04 has 249; NUMAPolicy= and CPUAffinity=numa are older.
OLDEST_SYSTEMD = 249
_ANY = ("0.0.0.0", "::")


def root(context: Context) -> Iterator[Found]:
    """Tasks run as root on the host; without it most of what matters can be neither seen nor written."""
    expected = "tasks run as root on this host"
    if context.read.user_id() == 0:
        yield Found(CLEAN, "this runs as root", expected)
    else:
        step = "set ansible_become: true for this host, or log in as root"
        yield Found(PROBLEM, f"this runs as user id {context.read.user_id()}", expected, step)


def systemd(context: Context) -> Iterator[Found]:
    """systemd runs the host and is new enough for the units."""
    expected = f"systemd {OLDEST_SYSTEMD} or newer as PID 1"
    init = context.read.init()
    if init != "systemd":
        yield Found(PROBLEM, f"PID 1 is {init or 'not visible'}", expected, "instances are systemd units: use a host that systemd runs")
        return
    try:
        words = context.read.command(["systemctl", "--version"]).stdout.split()
        version = int(words[1].split(".")[0])
    except (CommandError, IndexError, ValueError) as error:
        yield Found(UNCHECKED, f"systemctl --version gives no version ({error})", expected, "see whether systemctl runs")
        return
    if version < OLDEST_SYSTEMD:
        yield Found(PROBLEM, f"systemd {version}", expected, "use a newer release of the distribution")
    else:
        yield Found(CLEAN, f"systemd {version} is PID 1", expected)


def address(context: Context) -> Iterator[Found]:
    """The host's address is one of its own: servers bind to it and announce it to their peers."""
    for one in sorted({context.host["address"], *(entry["address"] for entry in context.instances)}):
        expected = f"{one} is an address of this host"
        advice = "set sglang_address of this host to the address that the other hosts reach it by"
        try:
            own = context.read.is_own_address(one)
        except OSError as error:
            yield Found(PROBLEM, f"{one} does not resolve on this host: {error.strerror or error}", expected, advice)
            continue
        yield Found(CLEAN, f"{one} belongs to this host", expected) if own else Found(PROBLEM, f"no interface of this host has {one}", expected, advice)


def numa(context: Context) -> Iterator[Found]:
    """Every NUMA node an instance is bound to exists and has memory and processors."""
    wanted: dict[int, list[str]] = {}
    for entry in context.instances:
        if entry.get("numa_node") is not None:
            wanted.setdefault(entry["numa_node"], []).append(entry["instance"])
    if not wanted:
        return
    try:
        nodes = context.read.numa_nodes()
    except (OSError, ValueError) as error:
        yield Found(UNCHECKED, f"the kernel shows no NUMA nodes ({error})", f"nodes {sorted(wanted)}", "set numa_node of the instances to null")
        return
    for number, instances in sorted(wanted.items()):
        expected = f"node {number} with memory and processors, for {listed(instances)}"
        node = nodes.get(number)
        if node is None:
            yield Found(
                PROBLEM,
                f"no node {number}; there are: {listed([str(one) for one in sorted(nodes)])}",
                expected,
                "mend sglang_numa_gpus or numa_node of these instances in the inventory",
            )
        elif not node.memory or not node.processors:
            lack = "memory" if not node.memory else "processors"
            yield Found(PROBLEM, f"node {number} has no {lack}", expected, "bind these instances to another node, or set numa_node to null")
        else:
            yield Found(CLEAN, f"node {number}: {human_bytes(node.memory)}, processors {node.processors}", expected)


def gpus(context: Context) -> Iterator[Found]:
    """Every GPU of the plan is there, and sits at the NUMA node the instance is bound to."""
    entries = [entry for entry in context.instances if entry.get("device") == "cuda" and entry.get("gpus")]
    if not entries:
        return
    planned = sorted({index for entry in entries for index in entry["gpus"]})
    expected = f"GPUs {listed([str(index) for index in planned], 16)}"
    report = context.read.gpus()
    if report.problem:
        yield Found(PROBLEM, report.problem, expected + " and a driver that answers", report.next)
        return
    present = {gpu.index: gpu for gpu in report.gpus}
    absent = [str(index) for index in planned if index not in present]
    if absent:
        yield Found(
            PROBLEM,
            f"no GPU {listed(absent, 16)}; there are: {listed([str(index) for index in sorted(present)], 16)}",
            expected,
            "mend gpus and sglang_numa_gpus in the inventory, or see why the driver does not show them (dmesg, nvidia-smi)",
        )
    for entry in entries:
        yield from _placement(entry, present)


def _placement(entry: Mapping[str, Any], present: Mapping[int, Gpu]) -> Iterator[Found]:
    there = [index for index in entry["gpus"] if index in present]
    nodes = {index: present[index].numa_node for index in there}
    wanted = entry.get("numa_node")
    seen = ", ".join(f"GPU {index} ({present[index].name}): node {'unknown' if nodes[index] is None else nodes[index]}" for index in there)
    expected = f"{entry['instance']}: its GPUs at node {wanted}"
    if not there or wanted is None:
        if there:
            yield Found(CLEAN, seen, f"{entry['instance']}: its GPUs are there")
    elif any(node is not None and node != wanted for node in nodes.values()):
        yield Found(PROBLEM, seen, expected, "mend sglang_numa_gpus of this host: memory would be bound to the wrong node")
    elif None in nodes.values():
        yield Found(INCONCLUSIVE, seen, expected, "the kernel does not say where these GPUs sit (common in virtual machines): nvidia-smi topo -m may")
    else:
        yield Found(CLEAN, seen, expected)


def ports(context: Context) -> Iterator[Found]:
    """Every planned port is free, or held by the very instance that is to have it."""
    for entry in context.instances:
        for port in entry.get("ports") or ():
            yield from _port(context, entry, port)


def _port(context: Context, entry: Mapping[str, Any], port: Mapping[str, Any]) -> Iterator[Found]:
    number, where = port["port"], port["address"]
    subject = f"port {number} ({port['purpose']}, {port['owner']})"
    expected = f"{subject} free, or held by {entry['unit']}"
    try:
        sockets = [one for one in context.read.listeners(number) if one.address == where or one.address in _ANY or where in _ANY]
    except OSError as error:
        yield Found(UNCHECKED, f"listening sockets cannot be read: {error.strerror}", expected, "run with become")
        return
    if not sockets:
        yield Found(CLEAN, f"{subject} is free", expected)
        return
    try:
        own = context.read.unit_pids(entry["unit"])
    except SystemdError:
        own = set()
    for one in sockets:
        owners = context.read.owners(one.inode)
        if owners and owners <= own:
            yield Found(CLEAN, f"{subject} is held by {entry['unit']} itself", expected)
        elif owners:
            yield Found(
                PROBLEM,
                f"{one.address}:{number} is held by {listed([context.read.describe_process(pid) for pid in sorted(owners)], 3)}",
                expected,
                f"stop that process if it is a leftover, or give {entry['instance']} another port",
            )
        else:
            yield Found(
                PROBLEM,
                f"{one.address}:{number} is held by a process that is not visible from here",
                expected,
                "find it as root on the host, outside of any container: ss -ltnp",
            )


def executable(context: Context) -> Iterator[Found]:
    """Programs may run from /tmp: compilers of the engine and their loaders write there."""
    expected = "/tmp is not mounted noexec"
    try:
        runs = context.read.may_execute("/tmp")
    except OSError as error:
        yield Found(UNCHECKED, f"/tmp: {error.strerror}", expected, "see whether /tmp is there")
        return
    yield (
        Found(CLEAN, "programs may run from /tmp", expected)
        if runs
        else Found(
            INCONCLUSIVE,
            "/tmp is mounted noexec",
            expected,
            "kernels that are compiled at run time fail there: remount it, or set TMPDIR in sglang_env to a directory of the service user",
        )
    )


CHECKS: Mapping[str, Check] = {
    "root": root,
    "systemd": systemd,
    "address": address,
    "numa": numa,
    "gpus": gpus,
    "ports": ports,
    "executable": executable,
}
