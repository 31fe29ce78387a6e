# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What may not stand in ``*_args`` and ``*_env``: what the plan decides itself, secrets, misspelt flags.

Each function returns the layer without what it refused, so that a refused value (above all a key) never reaches the plan.
Pure.
"""

from __future__ import annotations

import re
from typing import Any, Iterable, Mapping

from .findings import Findings
from .schema import ENGINE_ROLES

# Flag -> the variable that decides it.
_OWNED_BY_BOTH: Mapping[str, str] = {
    "host": "sglang_address",
    "port": "port of the instance",
    "api-key": "sglang_api_key",
}
_OWNED: Mapping[str, Mapping[str, str]] = {
    "engine": {
        **_OWNED_BY_BOTH,
        "admin-api-key": "sglang_admin_api_key",
        "base-gpu-id": "gpus of the instance",
        "disaggregation-bootstrap-port": "bootstrap_port of the instance",
        "disaggregation-mode": "the inventory group of the host (sglang_inventory_groups)",
        "gpu-id-step": "gpus of the instance",
        "model": "model.path of the PD group",
        "model-path": "model.path of the PD group",
        "nccl-port": "dist_port of the instance",
        "numa-node": "numa_node of the instance",
        "served-model-name": "served_name of the PD group",
    },
    "router": {
        **_OWNED_BY_BOTH,
        "decode": "the decode instances of the PD group",
        "pd-disaggregation": "the PD group of the instance",
        "prefill": "the prefill instances of the PD group",
        "prometheus-host": "sglang_address",
        "prometheus-port": "metrics_port of the instance",
        "worker-urls": "the prefill and decode instances of the PD group",
    },
}
# Flag -> why the plan cannot hold it.
_REFUSED: Mapping[str, Mapping[str, str]] = {
    "engine": {
        "config": "it hides arguments in another file, where no check sees them",
        "enable-http2": "readiness is asked over plain HTTP/1.1",
        "node-rank": "one server over several hosts is not planned",
        "smg-grpc-mode": "it replaces HTTP, which readiness is asked over",
        "grpc-mode": "it replaces HTTP, which readiness is asked over",
        "ssl-certfile": "peers, router and checks speak plain HTTP",
        "ssl-keyfile": "peers, router and checks speak plain HTTP",
    },
    "router": {
        "service-discovery": "the workers of a router come from the plan",
        "tls-cert-path": "the checks speak plain HTTP",
    },
}
_SECRET_FLAGS = (
    "control-plane-api-keys",
    "oracle-password",
    "postgres-db-url",
    "redis-url",
    "ssl-keyfile-password",
    "tenant-api-key",
)
# Old or short spellings that argparse completes, or refuses, depending on the release.
_SHORT: Mapping[str, str] = {
    "cuda-graph-bs": "cuda-graph-bs-decode or cuda-graph-bs-prefill",
    "cuda-graph-max-bs": "cuda-graph-max-bs-decode or cuda-graph-max-bs-prefill",
    "dp": "dp-size",
    "pp": "pp-size",
    "tp": "tp-size",
}
_OWNED_ENV: Mapping[str, str] = {
    "CUDA_DEVICE_ORDER": "gpus of the instance",
    "CUDA_VISIBLE_DEVICES": "gpus of the instance",
    "PLUMBLINE_RENDER": "the plan itself",
    "SPT_NOENV": "the plan itself",
}
_SECRET_NAME = re.compile(r"(?:API_?KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL)S?\Z")
_FLAG = re.compile(r"[a-z0-9][a-z0-9.-]*\Z")


def kind_of(role: str) -> str:
    """``engine`` or ``router``."""
    return "engine" if role in ENGINE_ROLES else "router"


def clean_args(args: Mapping[str, Any], variable: str, where: str, role: str, secrets: Iterable[str], findings: Findings) -> dict[str, Any]:
    """One layer of arguments without what it may not hold; null values stay, since they remove what is below.

    ``variable`` is the layer's name and ``where`` the host or instance it belongs to; ``secrets`` are compared, never shown.
    """
    kind, result = kind_of(role), {}
    for key, value in args.items():
        if not _spelling(key, variable, where, findings):
            continue
        if key in _OWNED[kind]:
            rule = "secret-in-args" if key.endswith("api-key") else "owned-arg"
            findings.error(
                rule,
                [where],
                f"{variable} sets {key}",
                f"{key} decided by {_OWNED[kind][key]}",
                f"remove {key} from {variable} and use {_OWNED[kind][key]}",
            )
        elif key in _SECRET_FLAGS or _holds_secret(value, secrets):
            findings.error(
                "secret-in-args",
                [where],
                f"{variable} sets {key}, which holds a secret",
                "no secret in a command line, which every user of the host can read",
                f"remove {key} from {variable}; keys belong in sglang_api_key and sglang_admin_api_key",
            )
        elif key in _REFUSED[kind] and value not in (None, False):
            findings.error("refused-arg", [where], f"{variable} sets {key}", f"no {key}: {_REFUSED[kind][key]}", f"remove {key} from {variable}")
        elif isinstance(value, str) and re.match(r"-(?!\d)", value):
            findings.error(
                "arg-value",
                [where],
                f"the value of {key} in {variable} begins with '-'",
                "a value that the engine's parser does not take for a flag",
                f"correct {key} in {variable}",
            )
        else:
            result[key] = value
    return result


def _spelling(key: str, variable: str, where: str, findings: Findings) -> bool:
    """False where the key is not in the engine's spelling; says the right one."""
    right = key.lstrip("-").replace("_", "-")
    right = _SHORT.get(right, right)
    if key == right and _FLAG.match(key):
        return True
    if not _FLAG.match(key.lstrip("-").replace("_", "-")):
        findings.error(
            "arg-spelling", [where], f"{variable} has the key {key!r}", "a flag's name without the leading dashes", f"correct {key!r} in {variable}"
        )
    else:
        findings.error("arg-spelling", [where], f"{variable} has the key {key!r}", f"the spelling {right}", f"rename {key} to {right} in {variable}")
    return False


def clean_env(env: Mapping[str, Any], variable: str, where: str, role: str, secrets: Iterable[str], findings: Findings) -> dict[str, Any]:
    """One layer of environment without what it may not hold; see ``clean_args``."""
    result = {}
    for name, value in env.items():
        if name in _OWNED_ENV and not (name.startswith("CUDA_") and value in ("", None)):
            findings.error(
                "owned-env",
                [where],
                f"{variable} sets {name}",
                f"{name} decided by {_OWNED_ENV[name]}",
                f"remove {name} from {variable} and use {_OWNED_ENV[name]}",
            )
        elif value is not None and (_SECRET_NAME.search(name.upper()) or _holds_secret(value, secrets)):
            findings.error(
                "secret-in-env",
                [where],
                f"{variable} sets {name}, which holds a secret",
                "no secret in a unit's environment, which is written to files and shown by systemctl",
                f"remove {name} from {variable}; keys belong in sglang_api_key and sglang_admin_api_key",
            )
        else:
            result[name] = value
    return result


def _holds_secret(value: Any, secrets: Iterable[str]) -> bool:
    """Whether a secret stands in the value, however deep; a very short one only as the whole value."""
    if isinstance(value, Mapping):
        return any(_holds_secret(item, secrets) for pair in value.items() for item in pair)
    if isinstance(value, (list, tuple)):
        return any(_holds_secret(item, secrets) for item in value)
    return isinstance(value, str) and any(secret == value or (len(secret) >= 8 and secret in value) for secret in secrets)
