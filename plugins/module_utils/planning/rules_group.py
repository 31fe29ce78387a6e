# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of the plan about one PD group: is it whole, do its members reach each other, share keys, and fit together. Pure."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence

from .findings import Findings, shown
from .instances import Host, Instance, ip_address
from .rules_pair import check as check_pairs
from .schema import ROLES

_KEYS = ("sglang_api_key", "sglang_admin_api_key")


def check(hosts: Mapping[str, Host], instances: Sequence[Instance], findings: Findings) -> None:
    """Report what is wrong inside each PD group and between groups."""
    groups: dict[str, list[Instance]] = defaultdict(list)
    for item in instances:
        groups[item.group].append(item)
    for name, members in sorted(groups.items()):
        _complete(name, members, findings)
        _one_definition(name, members, findings)
        _served_name(name, members, findings)
        _reachable(members, findings)
        _bootstrap(members, findings)
        _keys(name, [hosts[item.host] for item in members], members, findings)
        check_pairs(members, findings)
    _unused(hosts, groups, findings)
    _served_name_twice(groups, findings)


def _complete(name: str, members: Sequence[Instance], findings: Findings) -> None:
    missing = [role for role in ROLES if not any(item.role == role for item in members)]
    if missing:
        findings.error(
            "group-incomplete",
            [name],
            f"PD group {name} has no {' and no '.join(missing)}",
            "at least one prefill, one decode and one router",
            "add a host to the inventory group of the role, or group: " + name + " to one of its instances",
        )


def _one_definition(name: str, members: Sequence[Instance], findings: Findings) -> None:
    """Hosts may keep a model in different places; what it is called must be one thing."""
    for what, values in (
        ("served_name", {item.served_name for item in members}),
        ("model.name", {item.model["name"] for item in members if item.model}),
    ):
        if len(values) > 1:
            findings.error(
                "group-differs",
                sorted({item.host for item in members}),
                f"sglang_groups.{name}: {what} is {' on some hosts and '.join(map(shown, sorted(values)))} on others",
                "one definition of a PD group for all its hosts",
                "define sglang_groups once, in group_vars/all",
            )


def _served_name(name: str, members: Sequence[Instance], findings: Findings) -> None:
    for served in sorted({item.served_name for item in members}):
        bad = [sign for sign in (":", "/") if sign in served]
        if bad:
            findings.error(
                "served-name",
                [name],
                f"served name {served!r} holds {' and '.join(map(repr, bad))}",
                "a name without ':' (the engine refuses it) and without '/' (a path: routers and checks tell names from paths by it)",
                f"set sglang_groups.{name}.served_name, for example to {served.rsplit('/', 1)[-1].replace(':', '-')!r}",
            )


def _served_name_twice(groups: Mapping[str, Sequence[Instance]], findings: Findings) -> None:
    owners: dict[str, list[str]] = defaultdict(list)
    for name, members in sorted(groups.items()):
        for served in sorted({item.served_name for item in members}):
            owners[served].append(name)
    for served, names in sorted(owners.items()):
        if len(names) > 1:
            findings.warning(
                "served-name-shared",
                names,
                f"the PD groups {', '.join(names)} all serve {served!r}",
                "names that tell the groups apart, unless they are replicas of one service",
                "set served_name of one of them if they are not",
            )


def _reachable(members: Sequence[Instance], findings: Findings) -> None:
    """The router passes the prefill's host on to the decode as it is written: it must mean the same on every host."""
    for item in members:
        address = ip_address(item.address)
        local = item.address == "localhost" or (address is not None and (address.is_loopback or address.is_unspecified))
        remote = sorted({other.host for other in members if other.host != item.host and not (item.is_router and other.role == "router")})
        if local and remote and not item.is_router:
            findings.error(
                "address-unreachable",
                [item.where],
                f"{item.url} is the address of a {item.role} whose PD group also runs on {', '.join(remote)}",
                "an address that all hosts of the PD group reach",
                f"set sglang_address of {item.host} to its address in the network of the PD group",
            )


def _bootstrap(members: Sequence[Instance], findings: Findings) -> None:
    for item in members:
        if item.role == "prefill" and item.bootstrap_port is None:
            findings.error(
                "bootstrap-missing",
                [item.where],
                "bootstrap_port is null",
                "a bootstrap port: without it the router sends null, and no KV cache is transferred",
                "set bootstrap_port of the instance, or leave it out for 8998",
            )


def _keys(name: str, hosts: Sequence[Host], members: Sequence[Instance], findings: Findings) -> None:
    """Compares keys by digest; a finding says where they differ and never what they are."""
    where = sorted({host.name for host in hosts})
    for variable in _KEYS:
        relevant = set(where)
        if variable == "sglang_admin_api_key":
            relevant = {item.host for item in members if not item.is_router}
        digests: dict[str, list[str]] = defaultdict(list)
        for host in sorted({host.name: host for host in hosts if host.name in relevant}.values(), key=lambda host: host.name):
            value = host.variables[variable]
            digests[hashlib.sha256(value.encode()).hexdigest() if value else ""].append(host.name)
        if len(digests) > 1:
            sets = sorted(digests.values())
            unset = digests.get("", [])
            seen = f"{variable} is not set on {', '.join(unset)}" if unset else f"{variable} differs between " + " and ".join(", ".join(s) for s in sets)
            findings.error(
                "key-differs",
                where,
                seen,
                f"one key for PD group {name}: the router sends its own to the servers",
                f"set {variable} once for all hosts of the PD group",
            )
    if any(host.variables["sglang_admin_api_key"] and not host.variables["sglang_api_key"] for host in hosts):
        findings.error(
            "admin-key-alone",
            where,
            "sglang_admin_api_key is set, sglang_api_key is not",
            "both: without an API key /server_info is open to all, and it holds the admin key",
            "set sglang_api_key as well",
        )
    elif not any(host.variables["sglang_api_key"] for host in hosts):
        findings.warning(
            "no-key",
            [name],
            f"no sglang_api_key for PD group {name}",
            "a key, wherever others reach these ports",
            "set sglang_api_key (in a vault), or keep the ports behind a firewall",
        )


def _unused(hosts: Mapping[str, Host], groups: Mapping[str, Sequence[Instance]], findings: Findings) -> None:
    defined = {name for host in hosts.values() for name in host.variables["sglang_groups"]}
    for name in sorted(defined - set(groups)):
        findings.warning(
            "group-unused",
            [name],
            f"PD group {name} of sglang_groups has no instance",
            "a prefill, a decode and a router",
            f"give instances group: {name}, or remove it from sglang_groups",
        )
