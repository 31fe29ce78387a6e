# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of the plan about one host: GPUs, NUMA nodes, ports, addresses, names. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from .findings import Findings
from .instances import Host, Instance, ip_address
from .ports import EPHEMERAL, instance_ports
from .schema import ROLES


def check(hosts: Mapping[str, Host], instances: Sequence[Instance], findings: Findings) -> None:
    """Report every conflict that the instances of one host have among themselves or with what the host declares."""
    for name, host in hosts.items():
        mine = [item for item in instances if item.host == name]
        _declared_gpus(host, findings)
        _names(mine, findings)
        _gpu_overlap(mine, findings)
        _ports(mine, findings)
        for item in mine:
            if not item.is_router:
                _gpus(host, item, findings)
            _numa(host, item, findings)
        if mine:
            _address(host, mine, findings)
    _shared_addresses(hosts, {item.host for item in instances}, findings)


def check_unused(hosts: Mapping[str, Host], findings: Findings) -> None:
    """Report instances that are listed where they have no effect; a list that is shared with a host of the role is none."""
    for role in ROLES:
        variable = f"sglang_{role}_instances"
        effective = [host.variables[variable] for host in hosts.values() if host.has_role(role)]
        for host in hosts.values():
            if variable in host.given and not host.has_role(role) and host.variables[variable] not in effective:
                group = host.variables["sglang_inventory_groups"][role]
                findings.warning(
                    "instances-unused",
                    [host.name],
                    f"{variable} is set, but the host is not in the inventory group {group}",
                    f"hosts with {role} instances in the inventory group {group}",
                    f"add the host to {group}, or remove {variable} from it",
                )


def _names(instances: Sequence[Instance], findings: Findings) -> None:
    for name, same in _grouped((item.instance, item) for item in instances).items():
        if len(same) > 1:
            findings.error(
                "instance-duplicate",
                [same[0].where],
                f"{len(same)} instances of the host are called {name}",
                "each instance with a name of its own: units and directories are named after it",
                "set name in each item of the list",
            )


def _declared_gpus(host: Host, findings: Findings) -> None:
    every = host.declared_gpus
    twice = sorted({gpu for gpu in every if every.count(gpu) > 1})
    if twice:
        findings.error(
            "gpu-declared-twice",
            [host.name],
            f"sglang_numa_gpus holds GPU {_list(twice)} on more than one NUMA node",
            "each GPU on the one node it is attached to (nvidia-smi topo -m, column NUMA Affinity)",
            "correct sglang_numa_gpus",
        )


def _gpus(host: Host, item: Instance, findings: Findings) -> None:
    if item.device == "cpu":
        if item.gpus:
            findings.error(
                "gpu-unused",
                [item.where],
                f"gpus {_list(item.gpus)} with device: cpu",
                "GPUs only where the engine uses them",
                "remove gpus from the instance, or device from its arguments",
            )
        return
    if not item.gpus:
        findings.error(
            "gpu-missing",
            [item.where],
            "no GPUs for this instance" + ("" if host.numa else ", and sglang_numa_gpus is empty"),
            "the GPUs it may use",
            "declare the host's GPUs in sglang_numa_gpus, and set gpus where a host has several instances",
        )
        return
    undeclared = [gpu for gpu in item.gpus if host.node_of(gpu) is None]
    if undeclared:
        findings.error(
            "gpu-undeclared",
            [item.where],
            f"GPU {_list(undeclared)} is not in sglang_numa_gpus of {host.name} ({_list(host.declared_gpus) or 'empty'})",
            "GPUs that the host declares",
            "correct gpus, or declare them in sglang_numa_gpus",
        )
    sizes = item.parallel
    if sizes.gpus != len(item.gpus) * sizes.nnodes:
        findings.error(
            "gpu-count",
            [item.where],
            f"{len(item.gpus)} GPUs ({_list(item.gpus)}) for tp-size {sizes.tp} × pp-size {sizes.pp} × dp-size {sizes.dp} = {sizes.gpus}",
            "as many GPUs as the parallel sizes use",
            "correct gpus, or leave tp-size out: it follows from gpus",
        )


def _numa(host: Host, item: Instance, findings: Findings) -> None:
    node = item.numa_node
    if node is None:
        return
    if node < 0:
        findings.error(
            "numa-unknown",
            [item.where],
            f"numa_node is {node}",
            "a node number from 0; -1 is the kernel's word for 'unknown', and binding to it fails",
            "leave numa_node out",
        )
        return
    if str(node) not in host.numa and host.numa:
        findings.error(
            "numa-undeclared",
            [item.where],
            f"numa_node is {node}, and sglang_numa_gpus of {host.name} has the nodes {', '.join(host.numa)}",
            "a node that the host declares",
            "correct numa_node, or declare the node",
        )
        return
    elsewhere = {gpu: host.node_of(gpu) for gpu in item.gpus if host.node_of(gpu) not in (node, None)}
    if elsewhere:
        findings.error(
            "numa-gpus",
            [item.where],
            f"numa_node is {node}, but " + ", ".join(f"GPU {gpu} is on node {other}" for gpu, other in sorted(elsewhere.items())),
            "all GPUs of a bound instance on its node",
            f"choose GPUs of node {node} ({_list(host.numa.get(str(node), []))}), or leave numa_node out",
        )


def _gpu_overlap(instances: Sequence[Instance], findings: Findings) -> None:
    for gpu, users in _grouped((gpu, item) for item in instances for gpu in item.gpus).items():
        if len(users) > 1:
            findings.error(
                "gpu-overlap",
                [item.where for item in users],
                f"GPU {gpu} is used by {len(users)} instances",
                "each GPU with one instance",
                "set gpus of these instances apart",
            )


def _ports(instances: Sequence[Instance], findings: Findings) -> None:
    users = _grouped((port["port"], (item, port)) for item in instances for port in instance_ports(item))
    for number, claims in sorted(users.items()):
        if len(claims) > 1:
            seen = "; ".join(f"{item.instance} for {port['purpose']} ({port['owner']})" for item, port in claims)
            findings.error(
                "port-overlap",
                [item.where for item, _port in claims],
                f"port {number} is claimed by {seen}",
                "each port of a host claimed once, derived ports included",
                "move one of them: port, bootstrap_port, dist_port or metrics_port of the instance",
            )
    for item in instances:
        high = sorted(port["port"] for port in instance_ports(item) if port["port"] in EPHEMERAL)
        if high:
            findings.warning(
                "port-ephemeral",
                [item.where],
                f"port {_list(high)} lies in the range that the kernel gives to outgoing connections (32768 to 60999)",
                "ports below 32768, which nothing takes by chance",
                "choose lower ports, or reserve them (net.ipv4.ip_local_reserved_ports)",
            )


def _address(host: Host, instances: Sequence[Instance], findings: Findings) -> None:
    address = ip_address(host.address)
    where = [item.where for item in instances]
    if address is None and host.address != "localhost":
        findings.error(
            "address-name",
            where,
            f"the address of {host.name} is {host.address!r}",
            "an IP address: engines bind sockets to it and announce it, and do not resolve names there",
            f"set sglang_address of {host.name}",
        )
    elif address is not None and address.is_unspecified:
        findings.error(
            "address-unspecified",
            where,
            f"the address of {host.name} is {host.address}",
            "an address that peers can connect to; this one only means 'listen everywhere'",
            f"set sglang_address of {host.name} to one of its addresses",
        )


def _shared_addresses(hosts: Mapping[str, Host], used: set[str], findings: Findings) -> None:
    for address, names in _grouped((host.address, name) for name, host in hosts.items() if name in used).items():
        if len(names) > 1:
            findings.error(
                "address-shared",
                names,
                f"the hosts {', '.join(names)} have the same address {address}",
                "one inventory host for each machine: ports and GPUs are compared per host",
                "list the machine once, with several instances, or correct sglang_address",
            )


def _grouped(pairs: Iterable[tuple]) -> dict:  # type: ignore[type-arg]
    result = defaultdict(list)
    for key, value in pairs:
        result[key].append(value)
    return dict(result)


def _list(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
