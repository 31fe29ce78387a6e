# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What may not stand in ``*_args`` and ``*_env``: what the plan decides itself, secrets, misspelt flags.

What is refused is left out as well, so that a refused value (above all a key) never reaches the plan. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from .findings import Findings
from .flag_catalogue import CATALOGUE
from .schema import ENGINE_ROLES
from .schema_check import nearest

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
        "dist-init-addr": "it is for one server over several hosts, which is not planned; on one host dist_port serves",
        "nccl-init-addr": "it is for one server over several hosts, which is not planned; on one host dist_port serves",
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


class LayerCheck:
    """Checks layers of arguments and environment for instances of one role and program.

    Each method returns the layer without what it may not hold; null values stay, since they remove what is below.
    ``variable`` is the layer's name, ``where`` the host or instance it belongs to. ``secrets`` are compared, never shown.
    """

    def __init__(self, role: str, package: str, version: str, secrets: Iterable[str], findings: Findings) -> None:
        self._kind = kind_of(role)
        self._program = f"{package} {version}"
        # None for a release that the catalogue does not hold: its flags are checked on the host only.
        self._flags = CATALOGUE.get((package, version))
        self._secrets = list(secrets)
        self._findings = findings

    def args(self, layer: Mapping[str, Any], variable: str, where: str) -> dict[str, Any]:
        """One layer of arguments."""
        return {key: value for key, value in layer.items() if self._spelling(key, variable, where) and self._argument(key, value, variable, where)}

    def _argument(self, key: str, value: Any, variable: str, where: str) -> bool:
        owner = _OWNED[self._kind].get(key)
        reason = _REFUSED[self._kind].get(key)
        seen = f"{variable} sets {key}"
        if owner:
            rule = "secret-in-args" if key.endswith("api-key") else "owned-arg"
            return self._refuse(rule, where, seen, f"{key} decided by {owner}", f"remove {key} from {variable} and use {owner}")
        if key in _SECRET_FLAGS or self._holds_secret(value):
            return self._refuse(
                "secret-in-args",
                where,
                f"{seen}, which holds a secret",
                "no secret in a command line, which every user of the host can read",
                f"remove {key} from {variable}; keys belong in sglang_api_key and sglang_admin_api_key",
            )
        if reason and value not in (None, False):
            return self._refuse("refused-arg", where, seen, f"no {key}: {reason}", f"remove {key} from {variable}")
        return value is None or (self._known(key, variable, where) and self._value(key, value, variable, where))

    def _known(self, key: str, variable: str, where: str) -> bool:
        if self._flags is None or key in self._flags[0] or key in self._flags[1]:
            return True
        hint = nearest(key, sorted(self._flags[0] | self._flags[1]))
        return self._refuse(
            "arg-unknown",
            where,
            f"{variable} sets {key}, and {self._program} has no flag --{key}",
            f"{hint}, the nearest flag it has" if hint else "a flag that it has",
            f"correct {key} in {variable}; a build of your own with other flags needs a version of its own, such as 0.5.23+mine",
        )

    def _value(self, key: str, value: Any, variable: str, where: str) -> bool:
        if isinstance(value, str) and re.match(r"-(?!\d)", value):
            return self._refuse(
                "arg-value",
                where,
                f"the value of {key} in {variable} begins with '-'",
                "a value that the program's parser does not take for a flag",
                f"correct {key} in {variable}",
            )
        if self._flags is None or value is False:
            return True
        if key in self._flags[0] and value is not True:
            return self._refuse("arg-value", where, f"{key} in {variable} has a value", "true or false: the flag stands alone", f"set {key} to true")
        if key in self._flags[1] and value is True:
            return self._refuse(
                "arg-value", where, f"{key} in {variable} is true", "a value: the flag does not stand alone", f"give {key} its value in {variable}"
            )
        return True

    def _spelling(self, key: str, variable: str, where: str) -> bool:
        """False where the key is not in the program's spelling; says the right one."""
        right = key.lstrip("-").replace("_", "-")
        is_name = bool(_FLAG.match(right))
        right = _SHORT.get(right, right)
        if key == right and is_name:
            return True
        # A key with blanks may be a whole command line, with a secret in it.
        first, _blank, rest = key.strip().partition(" ")
        more = " with more words behind it" if rest else ""
        expected = f"the spelling {right}" if is_name else "a flag's name without the leading dashes"
        step = f"rename {key} to {right} in {variable}" if is_name else f"correct {first!r} in {variable}"
        return self._refuse("arg-spelling", where, f"{variable} has the key {first!r}{more}", expected, step)

    def env(self, layer: Mapping[str, Any], variable: str, where: str) -> dict[str, Any]:
        """One layer of environment."""
        return {name: value for name, value in layer.items() if self._variable(name, value, variable, where)}

    def _variable(self, name: str, value: Any, variable: str, where: str) -> bool:
        owner = _OWNED_ENV.get(name)
        # An empty list of devices is how a CPU engine is kept off the GPUs.
        if owner and not (name.startswith("CUDA_") and value in ("", None)):
            return self._refuse("owned-env", where, f"{variable} sets {name}", f"{name} decided by {owner}", f"remove {name} from {variable} and use {owner}")
        if value is not None and (_SECRET_NAME.search(name.upper()) or self._holds_secret(value)):
            return self._refuse(
                "secret-in-env",
                where,
                f"{variable} sets {name}, which holds a secret",
                "no secret in a unit's environment, which is written to files and shown by systemctl",
                f"remove {name} from {variable}; keys belong in sglang_api_key and sglang_admin_api_key",
            )
        return True

    def _holds_secret(self, value: Any) -> bool:
        """Whether a secret stands in the value, however deep; a very short one only as the whole value."""
        if isinstance(value, Mapping):
            return any(self._holds_secret(item) for pair in value.items() for item in pair)
        if isinstance(value, (list, tuple)):
            return any(self._holds_secret(item) for item in value)
        return isinstance(value, str) and any(secret == value or (len(secret) >= 8 and secret in value) for secret in self._secrets)

    def _refuse(self, rule: str, where: str, seen: str, expected: str, step: str) -> bool:
        self._findings.error(rule, [where], seen, expected, step)
        return False
