# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every ``sglang_*`` variable a user may set, declared once: type, default, scope, meaning.

From this come the checks (``schema_check``), the list of names that a misspelt one is compared with, and
``docs/variables.md`` (``schema_docs``). Nothing else knows a default of a user variable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

PREFIX = "sglang_"
ROLES = ("prefill", "decode", "router")
ENGINE_ROLES = ("prefill", "decode")

# Where a variable may differ from host to host.
SCOPE_ALL = "all hosts alike"
SCOPE_HOST = "per host"
SCOPE_GROUP = "alike within a PD group"


@dataclass(frozen=True)
class Option:
    """One variable, or one key inside a variable.

    ``kind`` is one of: ``string``, ``name`` (letters, digits, ``_.-``: becomes part of unit names and paths), ``version``,
    ``integer``, ``port`` (1 to 65535), ``seconds``, ``path`` (absolute, on the host), ``interpreter`` (a path or ``auto``),
    ``controller_path`` (absolute, on the controller), ``controller_file`` (relative to the inventory, the playbook or its
    ``files/``), ``integers`` (list of integers >= 0), ``numa`` (NUMA node -> GPU indices), ``args`` (engine flag -> value),
    ``env`` (name -> value), ``options`` (fixed keys), ``named`` (free names -> ``options``), ``instances`` (list of
    ``options``).
    ``default`` None means "not set"; ``default_text`` says what then happens.
    """

    name: str
    kind: str
    description: str
    default: Any = None
    default_text: str = ""
    scope: str = SCOPE_HOST
    choices: tuple[str, ...] = ()
    secret: bool = False
    nullable: bool = False
    options: tuple[Option, ...] = ()


_ARGS_TEXT = (
    "The engine's own spelling without the leading dashes. C(true) gives the bare flag, C(false) leaves it out, a list gives "
    "several values, a mapping one word of JSON, C(null) removes what an earlier layer set."
)
_ENV_TEXT = "Extra environment; C(null) removes what an earlier layer set."


def _layered(prefix: str, what: str, scope: str) -> tuple[Option, ...]:
    """The args and env options of one layer: for both engine roles, then for each role."""
    result = [Option(f"{prefix}args", "args", f"Arguments of every prefill and decode server {what}. {_ARGS_TEXT}", scope=scope)]
    for role in ROLES:
        result.append(Option(f"{prefix}{role}_args", "args", f"Arguments of every {role} {what}, after the ones above.", scope=scope))
    result.append(Option(f"{prefix}env", "env", f"Environment of every prefill and decode server {what}. {_ENV_TEXT}", scope=scope))
    for role in ROLES:
        result.append(Option(f"{prefix}{role}_env", "env", f"Environment of every {role} {what}, after the ones above.", scope=scope))
    return tuple(result)


MODEL = (
    Option(
        "name",
        "name",
        "Name of the model's directory and of the model in reports.",
        default_text="last part of C(path)",
    ),
    Option("path", "path", "Model directory on the hosts.", default_text="C(sglang_model_root)/C(name)"),
    Option(
        "copy_from",
        "controller_path",
        "Directory on the controller that the model role copies to the hosts; without it the model must be there already.",
        nullable=True,
    ),
)

GROUP = (
    Option("model", "options", "The model this PD group serves; C(name) or C(path) is required.", options=MODEL),
    Option(
        "served_name",
        "string",
        "Model name in the API. No colon (the engine refuses it: C(model:adapter) is its LoRA syntax) and no slash.",
        default_text="the model's name",
    ),
    *_layered("", "of this PD group", SCOPE_GROUP),
)

_NAME = Option("name", "name", "Name of the instance, unique on its host for its role and PD group.", default="0")
_GROUP = Option("group", "name", "PD group it belongs to, a key of C(sglang_groups).", default_text="the only PD group there is")
_NUMA = Option(
    "numa_node",
    "integer",
    "NUMA node that systemd binds CPUs and memory to. Never -1: leave it out where the node is unknown.",
    default_text="the node that holds all its GPUs, else no binding",
    nullable=True,
)
_INSTANCE_ARGS = (
    Option("args", "args", "Arguments of this instance alone, after all others."),
    Option("env", "env", "Environment of this instance alone, after all others."),
)
_GPUS = Option(
    "gpus",
    "integers",
    "GPU indices in PCI bus order, as declared in C(sglang_numa_gpus).",
    default_text="all GPUs of C(numa_node) if that is given, else all of the host; none with C(device: cpu)",
)
_DIST = Option(
    "dist_port",
    "port",
    "Port of torch.distributed inside this server (C(--nccl-port)). Fixed, so that no random choice can collide.",
    default_text="C(port) + 335",
)

PREFILL_INSTANCE = (
    _NAME,
    _GROUP,
    _GPUS,
    _NUMA,
    Option("port", "port", "HTTP port.", default=30000),
    Option("bootstrap_port", "port", "Port of the bootstrap server, which every decode host and the router reach.", default=8998, nullable=True),
    _DIST,
    *_INSTANCE_ARGS,
)
DECODE_INSTANCE = (
    _NAME,
    _GROUP,
    _GPUS,
    _NUMA,
    Option("port", "port", "HTTP port.", default=30002),
    Option(
        "bootstrap_port",
        "port",
        "Passed on where it is set. A decode server opens it only with C(enable-pd-role-switch); the router always names the prefill's.",
        nullable=True,
    ),
    _DIST,
    *_INSTANCE_ARGS,
)
ROUTER_INSTANCE = (
    _NAME,
    _GROUP,
    replace(_NUMA, default_text="no binding"),
    Option("port", "port", "HTTP port that clients use.", default=30001),
    Option("metrics_port", "port", "Port of the router's own metrics (C(--prometheus-port)).", default=29000),
    *_INSTANCE_ARGS,
)
INSTANCE_OPTIONS: Mapping[str, tuple[Option, ...]] = {
    "prefill": PREFILL_INSTANCE,
    "decode": DECODE_INSTANCE,
    "router": ROUTER_INSTANCE,
}

VARIABLES: tuple[Option, ...] = (
    Option(
        "sglang_inventory_groups",
        "options",
        "Inventory groups that hold the hosts of each role.",
        scope=SCOPE_ALL,
        options=tuple(Option(role, "string", f"Inventory group of the {role} hosts.", default=f"sglang_{role}") for role in ROLES),
    ),
    Option(
        "sglang_address",
        "string",
        "IP address of the host that all its peers reach: servers listen on it, announce it and are found by it.",
        default_text="C(ansible_host), else the inventory name",
    ),
    Option("sglang_numa_gpus", "numa", "GPU indices (PCI bus order) on each NUMA node; preflight compares it with the hardware."),
    Option("sglang_groups", "named", "The PD groups: what each serves and how.", scope=SCOPE_GROUP, options=GROUP),
    *(
        Option(
            f"sglang_{role}_instances",
            "instances",
            f"The {role} instances of the host.",
            default_text=f"one instance with the defaults below, on every host of the inventory group of the {role} hosts",
            options=INSTANCE_OPTIONS[role],
        )
        for role in ROLES
    ),
    *_layered("sglang_", "of the host", SCOPE_HOST),
    Option("sglang_engine_version", "version", "SGLang version; the lock must pin exactly this one.", default="0.5.23"),
    Option(
        "sglang_engine_requirements",
        "controller_file",
        "Lock file of the engine's release: one exact pin C(name==version) or wheel per line.",
        default_text="required on engine hosts",
    ),
    Option(
        "sglang_tools",
        "boolean",
        "Install NVML's Python module for the collection's own modules on hosts with GPUs, from a pin that comes with the collection. "
        "A wheelhouse then has to hold it. Without it, nvidia-smi is asked.",
        default=True,
    ),
    Option("sglang_router_package", "string", "Which router to install.", default="smg", choices=("smg", "sglang-router")),
    Option("sglang_router_version", "version", "Version of the router; the lock must pin exactly this one.", default="1.13.0"),
    Option(
        "sglang_router_requirements",
        "controller_file",
        "Lock file of the router's release: one exact pin C(name==version) or wheel per line.",
        default_text="required on router hosts",
    ),
    Option(
        "sglang_python",
        "interpreter",
        "Interpreter that releases are built with: C(auto) for the newest that fits, or an absolute path.",
        default="auto",
    ),
    Option("sglang_wheelhouse", "path", "Directory on the host with wheels to install from instead of a package index.", nullable=True),
    Option("sglang_model_root", "path", "Directory on the host that holds the models.", default="/srv/models"),
    Option("sglang_config_dir", "path", "Configuration and credentials.", default="/etc/sglang", scope=SCOPE_ALL),
    Option("sglang_root", "path", "Releases, launchers and tools.", default="/opt/sglang", scope=SCOPE_ALL),
    Option("sglang_state_dir", "path", "State: renders, proofs, baselines.", default="/var/lib/sglang", scope=SCOPE_ALL),
    Option("sglang_cache_dir", "path", "Compile caches and home directory of the service user.", default="/var/cache/sglang", scope=SCOPE_ALL),
    Option("sglang_user", "name", "Service user.", default="sglang", scope=SCOPE_ALL),
    Option("sglang_user_group", "name", "Group of the service user.", default="sglang", scope=SCOPE_ALL),
    Option(
        "sglang_api_key",
        "string",
        "Key that clients send. Servers and routers of a PD group share it; the router sends it to the servers.",
        scope=SCOPE_GROUP,
        secret=True,
        nullable=True,
    ),
    Option(
        "sglang_admin_api_key",
        "string",
        "Key for the servers' administrative endpoints. Needs C(sglang_api_key) as well, or C(/server_info) gives it to anyone.",
        scope=SCOPE_GROUP,
        secret=True,
        nullable=True,
    ),
    Option("sglang_start_budget_seconds", "seconds", "How long a start may take until it is proved ready.", default=1800),
    Option(
        "sglang_stop_timeout_seconds",
        "seconds",
        "How long a stop may drain before systemd kills. A router gets at least its own grace period and 20 seconds more.",
        default=180,
    ),
)

BY_NAME: Mapping[str, Option] = {option.name: option for option in VARIABLES}
SECRETS: tuple[str, ...] = tuple(option.name for option in VARIABLES if option.secret)
# Lock files, read on the controller: variable -> kind of release.
LOCK_VARIABLES: Mapping[str, str] = {"sglang_engine_requirements": "engine", "sglang_router_requirements": "router"}
