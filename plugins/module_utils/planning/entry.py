# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Resolved instances -> entries of the plan, each whole in itself: argv, environment, peers, expectations, paths. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from .instances import Host, Instance
from .launch import Launch, argv, environment, integer
from .ports import instance_ports

Entry = dict[str, Any]

_CREDENTIALS = (
    ("api-key", "sglang_api_key", ("prefill", "decode", "router")),
    ("admin-api-key", "sglang_admin_api_key", ("prefill", "decode")),
)


def order(instance: Instance) -> tuple[int, str, str, str]:
    """Sort key of the plan: prefills, decodes, routers; then host, group, name."""
    return (("prefill", "decode", "router").index(instance.role), instance.host, instance.group, instance.name)


def fingerprint(secret: str, salt: str) -> str:
    """12 hex digits that change with the secret, so that a new key is a new rendered set and the server that reads it restarts.

    A slow hash (scrypt, 16 MiB), salted with the file's path: what is shown gives no cheap way to try keys.
    """
    return hashlib.scrypt(secret.encode(), salt=salt.encode(), n=2**14, r=8, p=1, dklen=6).hex()


def credentials(instance: Instance, host: Host) -> list[dict[str, str]]:
    """The keys that the instance reads from files; the name of the variable and a fingerprint, never the value."""
    directory = f"{host.variables['sglang_config_dir']}/credentials/{instance.group}"
    return [
        {
            "name": name,
            "flag": f"--{name}",
            "path": f"{directory}/{name}",
            "variable": variable,
            "fingerprint": fingerprint(str(host.variables[variable]), f"{directory}/{name}"),
        }
        for name, variable, roles in _CREDENTIALS
        if instance.role in roles and host.variables[variable]
    ]


def peer(instance: Instance) -> dict[str, Any]:
    """An instance as the others of its PD group see it."""
    return {
        "host": instance.host,
        "instance": instance.instance,
        "url": instance.url,
        "address": instance.address,
        "port": instance.port,
        "bootstrap_port": instance.bootstrap_port,
    }


def peers(instance: Instance, group: Sequence[Instance]) -> dict[str, list[dict[str, Any]]]:
    """Everyone else of the PD group, by role."""
    return {role: [peer(other) for other in group if other.role == role and other is not instance] for role in ("prefill", "decode", "router")}


def expectation(instance: Instance) -> dict[str, Any]:
    """What the running server must say of itself (``/server_info``, ``/model_info``); null where it says nothing."""
    expect: dict[str, Any] = {"served_name": instance.served_name, "version": instance.version}
    if instance.is_router:
        absent = ("disaggregation_mode", "model_path", "tp_size", "pp_size", "nnodes", "transfer_backend")
        return {**expect, **dict.fromkeys(absent)}
    sizes = instance.parallel
    return {
        **expect,
        "disaggregation_mode": instance.role,
        "model_path": instance.model["path"] if instance.model else None,
        "tp_size": sizes.tp,
        "pp_size": sizes.pp,
        "nnodes": integer(instance.args.get("nnodes"), 1),
        "transfer_backend": instance.args.get("disaggregation-transfer-backend", "mooncake"),
    }


def launch_of(instance: Instance, host: Host, release: Mapping[str, Any], group: Sequence[Instance]) -> Launch:
    """The settings that argv and environment follow from."""
    return Launch(
        role=instance.role,
        package=instance.package,
        address=instance.address,
        port=instance.port,
        release_path=release["path"],
        cache_dir=host.variables["sglang_cache_dir"],
        args=instance.args,
        env=instance.env,
        model_path=instance.model["path"] if instance.model else "",
        served_name=instance.served_name,
        bootstrap_port=instance.bootstrap_port,
        dist_port=instance.dist_port,
        metrics_port=instance.metrics_port,
        gpus=instance.gpus,
        prefill_urls=[(other.url, other.bootstrap_port) for other in group if other.role == "prefill"],
        decode_urls=[other.url for other in group if other.role == "decode"],
    )


def entry(instance: Instance, host: Host, release: Mapping[str, Any], group: Sequence[Instance], launcher: str) -> Entry:
    """One instance of the plan; ``group`` holds all instances of its PD group in the order of the plan."""
    variables, name = host.variables, instance.instance
    unit = f"sglang-{name}.service"
    launch = launch_of(instance, host, release, group)
    return {
        "instance": name,
        "unit": unit,
        "role": instance.role,
        "group": instance.group,
        "name": instance.name,
        "host": instance.host,
        "address": instance.address,
        "port": instance.port,
        "url": instance.url,
        "bootstrap_port": instance.bootstrap_port,
        "ports": instance_ports(instance),
        "gpus": list(instance.gpus),
        "numa_node": None if (instance.numa_node or 0) < 0 else instance.numa_node,
        "device": instance.device,
        "model": instance.model,
        "served_name": instance.served_name,
        "release": {key: release[key] for key in ("id", "kind", "package", "version", "path", "python")},
        "launcher": launcher,
        "argv": argv(launch),
        "environment": environment(launch),
        "credentials": credentials(instance, host),
        "user": variables["sglang_user"],
        "user_group": variables["sglang_user_group"],
        "peers": peers(instance, group),
        "expect": expectation(instance),
        "start_budget_seconds": instance.start_budget_seconds,
        "stop_timeout_seconds": instance.stop_timeout_seconds,
        "paths": {
            "config": f"{variables['sglang_config_dir']}/instances/{name}.json",
            "unit": f"/etc/systemd/system/{unit}",
            "renders": f"{variables['sglang_state_dir']}/renders/{name}",
            "state": f"{variables['sglang_state_dir']}/{name}",
            "cache": variables["sglang_cache_dir"],
            # One path whatever its version: a newer collection replaces the file, and no unit changes for it.
            "program": f"{variables['sglang_root']}/tools/plumbline.pyz",
        },
    }
