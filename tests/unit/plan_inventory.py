# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small faultless cluster for the plan's tests: a prefill, a decode and a router host, and how to spoil it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.plumbline.sglang.plugins.module_utils.planning.instances import HostInput
from ansible_collections.plumbline.sglang.plugins.module_utils.planning.plan import build_plan

KEY = "k3y-that-no-plan-may-hold"
LOCKS = {
    "engine.txt": "sglang==0.5.23\nnixl==1.5.1\n",
    "router.txt": "smg==1.13.0\n",
}
COMMON: Mapping[str, Any] = {
    "sglang_groups": {"chat": {"model": {"path": "/srv/models/tiny"}}},
    "sglang_engine_requirements": "engine.txt",
    "sglang_router_requirements": "router.txt",
    "sglang_api_key": KEY,
}
GPUS = {"sglang_numa_gpus": {0: [0, 1, 2, 3], 1: [4, 5, 6, 7]}}
# Host -> (inventory groups, address, its own variables).
HOSTS: Mapping[str, tuple[tuple[str, ...], str, Mapping[str, Any]]] = {
    "d1": (("sglang_decode",), "10.0.0.2", GPUS),
    "p1": (("sglang_prefill",), "10.0.0.1", GPUS),
    "r1": (("sglang_router",), "10.0.0.3", {}),
}
REMOVED = object()


def inventory(changes: Mapping[str, Mapping[str, Any]] | None = None, groups: Mapping[str, tuple[str, ...]] | None = None) -> dict[str, HostInput]:
    """The cluster with changed variables. ``changes`` maps a host, or ``all``, to variables; REMOVED takes one away."""
    changes, groups = changes or {}, groups or {}
    hosts = {}
    for name, (default_groups, address, own) in {**HOSTS, **{extra: ((), "10.0.0.9", {}) for extra in groups if extra not in HOSTS}}.items():
        variables = {**COMMON, **own, **changes.get("all", {}), **changes.get(name, {})}
        variables = {key: value for key, value in variables.items() if value is not REMOVED}
        hosts[name] = HostInput(name=name, groups=groups.get(name, default_groups), variables=variables, ansible_host=address)
    return hosts


def plan(
    changes: Mapping[str, Mapping[str, Any]] | None = None,
    groups: Mapping[str, tuple[str, ...]] | None = None,
    locks: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The plan of the changed cluster."""
    return build_plan(inventory(changes, groups), LOCKS if locks is None else {**LOCKS, **locks})


def entry(result: Mapping[str, Any], host: str, instance: str | None = None) -> dict[str, Any]:
    """The one entry of a host, or the named one."""
    (found,) = [item for item in result["instances"] if item["host"] == host and instance in (None, item["instance"])]
    return found


def found(result: Mapping[str, Any], rule: str) -> list[dict[str, Any]]:
    """The findings of one rule."""
    return [item for item in result["findings"] if item["rule"] == rule]


def flags(argv: list[list[str]]) -> dict[str, list[str]]:
    """argv as flag -> values."""
    return {item[0]: item[1:] for item in argv}
