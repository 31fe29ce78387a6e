# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checked variables of the hosts -> resolved instances: every default applied, every layer merged.

Pure. What cannot be resolved is reported and left out, so that the rest is still checked.
"""

from __future__ import annotations

import ipaddress
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import launch
from .args import LayerCheck
from .findings import Findings
from .locks import Lock
from .schema import ENGINE_ROLES, INSTANCE_OPTIONS, ROLES, SECRETS
from .schema_check import nearest

# Seconds between a router's own grace period and systemd's kill (--shutdown-grace-period-secs, default 180).
_ROUTER_GRACE = 180
_ROUTER_MARGIN = 20


@dataclass(frozen=True)
class HostInput:
    """What the inventory says of one host: its groups, its ``sglang_*`` variables as templated on it.

    ``errors`` are the variables whose template failed, with the reason. ``ansible_host`` is None where it is not set.
    ``files`` maps a lock variable to the key of its text in ``locks`` where that is not the variable's own value.
    """

    name: str
    groups: tuple[str, ...] = ()
    variables: Mapping[str, Any] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    ansible_host: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Host:
    """One host with checked variables and its locks by kind (engine, router)."""

    name: str
    groups: tuple[str, ...]
    variables: dict[str, Any]
    given: frozenset[str]
    address: str
    locks: dict[str, Lock | None] = field(default_factory=dict)

    def has_role(self, role: str) -> bool:
        """Whether the host is in the inventory group of the role."""
        return self.variables["sglang_inventory_groups"][role] in self.groups

    @property
    def numa(self) -> dict[str, list[int]]:
        """NUMA node -> GPU indices, as declared."""
        return self.variables["sglang_numa_gpus"]

    @property
    def declared_gpus(self) -> list[int]:
        """Every GPU the inventory declares on this host."""
        return sorted(gpu for gpus in self.numa.values() for gpu in gpus)

    def node_of(self, gpu: int) -> int | None:
        """The NUMA node a GPU is declared on, None where it is declared nowhere."""
        return next((int(node) for node, gpus in sorted(self.numa.items()) if gpu in gpus), None)


@dataclass(frozen=True)
class Instance:
    """One server or router with everything that follows from the inventory; addresses and ports are final."""

    host: str
    role: str
    group: str
    name: str
    address: str
    port: int
    bootstrap_port: int | None
    dist_port: int | None
    metrics_port: int | None
    gpus: tuple[int, ...]
    numa_node: int | None
    device: str
    model: dict[str, Any] | None
    served_name: str
    package: str
    version: str
    args: Mapping[str, Any]
    env: Mapping[str, Any]
    start_budget_seconds: int
    stop_timeout_seconds: int
    has_key: bool = False

    @property
    def instance(self) -> str:
        """Name of the instance on its host and of its files."""
        return f"{self.role}-{self.group}-{self.name}"

    @property
    def where(self) -> str:
        """How findings name it."""
        return f"{self.host}/{self.instance}"

    @property
    def url(self) -> str:
        """Where peers and clients reach it."""
        return f"http://{bracketed(self.address)}:{self.port}"

    @property
    def is_router(self) -> bool:
        return self.role == "router"

    @property
    def parallel(self) -> launch.Parallel:
        """Its parallel sizes; all ones for a router."""
        return launch.parallel(self.args, self.gpus)


def ip_address(text: str) -> Any:
    """The parsed address, or None where ``text`` is a name."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def bracketed(address: str) -> str:
    """An address as it stands in a URL."""
    return f"[{address}]" if ":" in address else address


class Resolver:
    """Resolves the instances of one host; ``groups`` is the host's own view of ``sglang_groups``."""

    def __init__(self, host: Host, findings: Findings) -> None:
        self._host = host
        self._findings = findings
        self._groups: Mapping[str, Any] = host.variables["sglang_groups"]

    def instances(self) -> list[Instance]:
        """The host's instances, in the order of roles and of the inventory."""
        result = []
        for role in ROLES:
            variable = f"sglang_{role}_instances"
            if not self._host.has_role(role):
                continue
            items = self._host.variables[variable]
            if items is None:
                items = [{**{option.name: option.default for option in INSTANCE_OPTIONS[role]}, "args": {}, "env": {}}]
            for item in items:
                resolved = self._resolve(role, item, variable)
                if resolved is not None:
                    result.append(resolved)
        return result

    def _resolve(self, role: str, item: Mapping[str, Any], variable: str) -> Instance | None:
        group = self._group(item, variable)
        if group is None:
            return None
        where = f"{self._host.name}/{role}-{group}-{item['name']}"
        settings = self._groups[group]
        args, env = self._layers(role, item, group, where)
        device = launch.device(args) if role in ENGINE_ROLES else "cpu"
        gpus = self._gpus(role, item, device)
        model = self._model(group, settings["model"], where)
        served_name = settings["served_name"] or (model["name"] if model else group)
        if model:
            model["served_name"] = served_name
        package, version = self._package(role)
        stop = self._host.variables["sglang_stop_timeout_seconds"]
        if role == "router":
            stop = max(stop, launch.integer(args.get("shutdown-grace-period-secs"), _ROUTER_GRACE) + _ROUTER_MARGIN)
        return Instance(
            host=self._host.name,
            role=role,
            group=group,
            name=item["name"],
            address=self._host.address,
            port=item["port"],
            bootstrap_port=item.get("bootstrap_port"),
            dist_port=self._dist_port(role, item, args, gpus),
            metrics_port=item.get("metrics_port"),
            gpus=tuple(gpus),
            numa_node=self._numa_node(item, gpus),
            device=device,
            model=model if role in ENGINE_ROLES else None,
            served_name=served_name,
            package=package,
            version=version,
            args=args,
            env=env,
            start_budget_seconds=self._host.variables["sglang_start_budget_seconds"],
            stop_timeout_seconds=stop,
            has_key=bool(self._host.variables["sglang_api_key"]),
        )

    def _group(self, item: Mapping[str, Any], variable: str) -> str | None:
        name, known = item["group"], sorted(self._groups)
        if name is None and len(known) == 1:
            return known[0]
        if name in self._groups:
            return name
        place = f"{variable} item {item['name']!r}"
        if not known:
            self._findings.error(
                "group-unknown",
                [self._host.name],
                f"{place} needs a PD group, and sglang_groups is empty",
                "sglang_groups: {name: {model: {path: /srv/models/...}}}",
                "define the PD group in group_vars/all",
            )
        elif name is None:
            self._findings.error(
                "group-unknown",
                [self._host.name],
                f"{place} names no PD group, and there are several: {', '.join(known)}",
                "group: one of them",
                f"set group in {place}",
            )
        else:
            hint = nearest(name, known) or known[0]
            self._findings.error(
                "group-unknown",
                [self._host.name],
                f"{place} is of the PD group {name!r}, which sglang_groups does not hold",
                "one of " + ", ".join(known),
                f"set group to {hint}, or define {name} in sglang_groups",
            )
        return None

    def _layers(self, role: str, item: Mapping[str, Any], group: str, where: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Merged arguments and environment; what the plan decides itself is reported and left out."""
        variables, package, version = self._host.variables, *self._package(role)
        secrets = [variables[name] for name in SECRETS if variables[name]]
        check = LayerCheck(role, package, version, secrets, self._findings)
        scopes = ("", f"{role}_") if role in ENGINE_ROLES else (f"{role}_",)
        layers: list[tuple[Mapping[str, Any], str, str, str]]
        layers = [(variables, f"sglang_{scope}", f"sglang_{scope}", self._host.name) for scope in scopes]
        layers += [(self._groups[group], scope, f"sglang_groups.{group}.{scope}", where) for scope in scopes]
        layers.append((item, "", f"sglang_{role}_instances item {item['name']!r} ", where))
        args = [check.args(source[f"{key}args"], f"{name}args", place) for source, key, name, place in layers]
        env = [check.env(source[f"{key}env"], f"{name}env", place) for source, key, name, place in layers]
        return launch.merge_args([launch.default_args(role, package), *args]), launch.merge_env(env)

    def _gpus(self, role: str, item: Mapping[str, Any], device: str) -> list[int]:
        if role not in ENGINE_ROLES:
            return []
        if item["gpus"] is not None:
            return list(item["gpus"])
        if device == "cpu":
            return []
        if item["numa_node"] is not None and item["numa_node"] >= 0:
            return list(self._host.numa.get(str(item["numa_node"]), []))
        return self._host.declared_gpus

    def _numa_node(self, item: Mapping[str, Any], gpus: list[int]) -> int | None:
        if item["numa_node"] is not None:
            return item["numa_node"]
        nodes = {self._host.node_of(gpu) for gpu in gpus}
        return nodes.pop() if len(nodes) == 1 else None

    def _dist_port(self, role: str, item: Mapping[str, Any], args: Mapping[str, Any], gpus: list[int]) -> int | None:
        """None where the engine must choose itself: replicas (``dp-size``) would all bind the one port they are given."""
        sizes = launch.parallel(args, gpus)
        if role not in ENGINE_ROLES or (sizes.dp > 1 and item["dist_port"] is None):
            return None
        port = item["port"] + launch.DIST_PORT_DELTA
        return item["dist_port"] or (port if port <= 65535 else item["port"] - launch.DIST_PORT_DELTA)

    def _model(self, group: str, model: Mapping[str, Any], where: str) -> dict[str, Any] | None:
        name, path = model["name"], model["path"]
        if not name and not path:
            self._findings.error(
                "model-missing",
                [group],
                f"sglang_groups.{group}.model has neither path nor name",
                "the directory of the model on the hosts",
                f"set sglang_groups.{group}.model.path",
            )
            return None
        path = path or f"{self._host.variables['sglang_model_root']}/{name}"
        return {"name": name or posixpath.basename(path), "path": path, "copy_from": model["copy_from"], "served_name": ""}

    def _package(self, role: str) -> tuple[str, str]:
        variables = self._host.variables
        if role in ENGINE_ROLES:
            return "sglang", variables["sglang_engine_version"]
        return variables["sglang_router_package"], variables["sglang_router_version"]
