# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Inventory -> plan: everything that a deployment does, checks and expects, derived before any host is touched.

``build_plan`` is pure: the same variables and the same lock files give the same plan, whatever ``--limit`` or facts say.
The form of the plan is documented in the RETURN block of the module ``plan``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from . import locks as lock_files
from . import rules_group as plan_rules_group
from . import rules_host as plan_rules_host
from . import rules_release as plan_rules_release
from . import tools
from .entry import credentials, entry, order
from .findings import Findings
from .instances import Host, HostInput, Instance, Resolver
from .schema import BY_NAME, LOCK_VARIABLES, ROLES, SCOPE_ALL
from .schema_check import Checker

SCHEMA = 1
Plan = dict[str, Any]


def build_plan(hosts: Mapping[str, HostInput], locks: Mapping[str, str], launcher_source: str = "") -> Plan:
    """The whole plan with every finding, errors included: whoever asked decides what an error means.

    ``locks`` maps each lock variable's value (or ``HostInput.files``) to the text of the file; ``launcher_source`` is the
    text of the launcher, whose digest is part of its path on the hosts.
    """
    findings = Findings()
    checked = {name: _checked(hosts[name], locks, findings) for name in sorted(hosts)}
    planned = {name: host for name, host in checked.items() if any(map(host.has_role, ROLES))}
    shared = _shared(planned, findings)
    instances = [item for host in planned.values() for item in Resolver(host, findings).instances()]
    instances.sort(key=order)

    releases: dict[str, dict[str, dict[str, Any]]] = {}
    for name, host in planned.items():
        kinds = sorted({_kind(item) for item in instances if item.host == name})
        releases[name] = {kind: _release(host, kind, [item for item in instances if item.host == name], findings) for kind in kinds}
        if tools.wanted(host, instances):
            releases[name][tools.KIND] = tools.release(host)

    plan_rules_host.check(planned, instances, findings)
    plan_rules_host.check_unused(checked, findings)
    plan_rules_group.check(planned, instances, findings)

    launcher = f"{shared['sglang_root']}/launchers/{hashlib.sha256(launcher_source.encode()).hexdigest()[:12]}/launch.py"
    entries = []
    for item in instances:
        group = [other for other in instances if other.group == item.group]
        entries.append(entry(item, planned[item.host], releases[item.host][_kind(item)], group, launcher))

    plan = {
        "schema": SCHEMA,
        "digest": "",
        "findings": findings.sorted(),
        "service": {"user": shared["sglang_user"], "group": shared["sglang_user_group"]},
        "paths": {
            "config": shared["sglang_config_dir"],
            "root": shared["sglang_root"],
            "state": shared["sglang_state_dir"],
            "cache": shared["sglang_cache_dir"],
        },
        "hosts": {name: _host_entry(host, instances, releases[name]) for name, host in planned.items() if releases[name]},
        "instances": entries,
    }
    return seal(plan)


def seal(plan: Plan) -> Plan:
    """The plan with the digest over everything in it but the findings; call it again after adding to the plan."""
    content = {key: value for key, value in plan.items() if key not in ("digest", "findings")}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return {**plan, "digest": hashlib.sha256(text.encode()).hexdigest()}


def _kind(instance: Instance) -> str:
    return "router" if instance.is_router else "engine"


def _checked(source: HostInput, locks: Mapping[str, str], findings: Findings) -> Host:
    variables = Checker(findings, source.name).variables(source.variables, source.errors)
    variables = {**variables, "sglang_numa_gpus": dict(sorted(variables["sglang_numa_gpus"].items(), key=lambda item: int(item[0])))}
    host = Host(
        name=source.name,
        groups=tuple(source.groups),
        variables=variables,
        given=frozenset(source.variables),
        address=variables["sglang_address"] or source.ansible_host or source.name,
    )
    for variable, kind in LOCK_VARIABLES.items():
        text: str | None = locks.get(source.files.get(variable, variables[variable] or ""))
        host.locks[kind] = None if text is None else lock_files.parse(text)
    return host


def _shared(planned: Mapping[str, Host], findings: Findings) -> dict[str, Any]:
    """The values of the variables that are alike on all hosts; that of the first host where they are not."""
    names = [option.name for option in BY_NAME.values() if option.scope == SCOPE_ALL]
    if not planned:
        findings.error(
            "no-hosts",
            ["inventory"],
            "no host of the inventory is in an inventory group of sglang_inventory_groups",
            "hosts in the inventory groups sglang_prefill, sglang_decode and sglang_router",
            "put hosts into these groups, or name your own in sglang_inventory_groups",
        )
        return Checker(Findings(), "").variables({}, {})
    shared = {}
    for name in names:
        values: dict[str, list[str]] = {}
        for host in planned.values():
            values.setdefault(json.dumps(host.variables[name], sort_keys=True), []).append(host.name)
        shared[name] = next(iter(planned.values())).variables[name]
        if len(values) > 1:
            seen = "; ".join(f"{value} on {', '.join(hosts)}" for value, hosts in sorted(values.items()))
            findings.error("not-alike", planned, f"{name}: {seen}", "one value on all hosts", f"set {name} once, in group_vars/all")
    return shared


def _release(host: Host, kind: str, instances: list[Instance], findings: Findings) -> dict[str, Any]:
    variables = host.variables
    mine = [item for item in instances if _kind(item) == kind]
    lock = plan_rules_release.check(host, kind, mine, findings)
    return lock_files.release(
        kind=kind,
        package=mine[0].package,
        version=mine[0].version,
        lock=lock,
        interpreter=variables["sglang_python"],
        root=variables["sglang_root"],
        wheelhouse=variables["sglang_wheelhouse"],
    )


def _host_entry(host: Host, instances: list[Instance], releases: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    mine = [item for item in instances if item.host == host.name]
    return {
        "address": host.address,
        "instances": [item.instance for item in mine],
        "releases": [releases[kind] for kind in sorted(releases)],
        "models": _unique(item.model for item in mine if item.model),
        "numa": host.numa,
        "credentials": _unique(credential for item in mine for credential in credentials(item, host)),
    }


def _unique(items: Any) -> list[Any]:
    result: list[Any] = []
    for item in items:
        if item not in result:
            result.append(item)
    return result
