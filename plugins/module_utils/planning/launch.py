# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Instance settings -> argv and environment of an engine or a router.

Flags are those of SGLang 0.5.23 (sglang/srt/arg_groups/fields) and of smg 1.13.0 and sglang-router 0.3.2 (router_args.py).
Pure: the result follows from the settings alone. argv is a list of ``[flag, values...]``, one flag per item.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Argv = list[list[str]]

# Spellings that the engine takes for the same flag (aliases in arg_groups/fields/{model,parallel,device}.py).
ALIASES: Mapping[str, str] = {
    "attention-context-parallel-size": "attn-cp-size",
    "attention-data-parallel-size": "attn-dp-size",
    "data-parallel-size": "dp-size",
    "ep": "ep-size",
    "expert-parallel-size": "ep-size",
    "model": "model-path",
    "nccl-init-addr": "dist-init-addr",
    "pipeline-parallel-size": "pp-size",
    "tensor-parallel-size": "tp-size",
}

# Deterministic default of torch.distributed's port: beside the HTTP port, outside of the block that DP attention derives
# from it (+13 and +233 to +239, server_args.py PortArgs.init_new).
DIST_PORT_DELTA = 335

_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_CUDA_HOME = "/usr/local/cuda"

# Both engine roles. The access log leaves out what is asked every few seconds; the transfer backend is always explicit,
# since the two sides of a pair must agree (the engine's own default, mooncake, needs RDMA).
_ENGINE_ARGS: Mapping[str, Any] = {
    "disaggregation-transfer-backend": "nixl",
    "enable-metrics": True,
    "uvicorn-access-log-exclude-prefixes": ["/metrics", "/health", "/ready"],
}

# A worker that is not up within the router's start-up time-out is dropped for good (default 1800 s): a day. The health
# check asks a server whose own answer may take 20 s. Retries send one request twice through a pair that is not idempotent
# (default 5), and an open breaker refuses every request: closed again before clients give up (default 60 s).
_ROUTER_ARGS: Mapping[str, Any] = {
    "cb-timeout-duration-secs": 15,
    "health-check-interval-secs": 10,
    "health-check-timeout-secs": 25,
    "retry-max-retries": 3,
    "worker-startup-check-interval": 5,
    "worker-startup-timeout-secs": 86400,
}
# Without it smg loads the tokenizer of the worker's model path, which the router's host need not have.
_SMG_ARGS: Mapping[str, Any] = {"disable-tokenizer-autoload": True}


@dataclass(frozen=True)
class Launch:
    """All that argv and environment of one instance follow from."""

    role: str
    package: str
    address: str
    port: int
    release_path: str
    cache_dir: str
    args: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, Any] = field(default_factory=dict)
    model_path: str = ""
    served_name: str = ""
    bootstrap_port: int | None = None
    dist_port: int | None = None
    metrics_port: int | None = None
    gpus: Sequence[int] = ()
    prefill_urls: Sequence[tuple[str, int | None]] = ()
    decode_urls: Sequence[str] = ()

    @property
    def is_router(self) -> bool:
        return self.role == "router"


@dataclass(frozen=True)
class Parallel:
    """How an engine's arguments spread it over GPUs (server_args.py: world size = tp * pp, and dp replicas of it)."""

    tp: int
    pp: int
    dp: int
    attn_dp: int
    nnodes: int

    @property
    def gpus(self) -> int:
        """GPUs that the server uses over all its nodes."""
        return self.tp * self.pp * self.dp


def integer(value: Any, default: int) -> int:
    """An integer argument as the engine's argparse would read it; ``default`` where it is absent or no integer."""
    try:
        return default if value is None or isinstance(value, bool) else int(value)
    except (TypeError, ValueError):
        return default


def parallel(args: Mapping[str, Any], gpus: Sequence[int] = ()) -> Parallel:
    """The parallel sizes of merged arguments; without ``tp-size`` the GPUs are used for tensor parallelism."""
    dp, pp = integer(args.get("dp-size"), 1), integer(args.get("pp-size"), 1)
    attn_dp = integer(args.get("attn-dp-size"), 1)
    if args.get("enable-dp-attention") and attn_dp == 1:
        dp, attn_dp = 1, dp  # deprecated spelling, arg_groups/parallel_hook.py
    nnodes = integer(args.get("nnodes"), 1)
    tp = integer(args.get("tp-size"), max(1, len(gpus) * nnodes // max(1, pp * dp)))
    return Parallel(tp=tp, pp=pp, dp=dp, attn_dp=attn_dp, nnodes=nnodes)


def device(args: Mapping[str, Any]) -> str:
    """``cpu`` or ``cuda``."""
    return "cpu" if args.get("device") == "cpu" else "cuda"


def default_args(role: str, package: str) -> dict[str, Any]:
    """The lowest layer of arguments: what every instance of the role gets unless the inventory says otherwise."""
    if role != "router":
        return dict(_ENGINE_ARGS)
    return {**_ROUTER_ARGS, **(_SMG_ARGS if package == "smg" else {})}


def merge_args(layers: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Layers of arguments, the last one wins whatever spelling it uses; null removes."""
    return _merge({ALIASES.get(key, key): value for key, value in layer.items()} for layer in layers)


def merge_env(layers: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Layers of environment, the last one wins; null removes."""
    return _merge(layers)


def _merge(layers: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for layer in layers:
        result.update(layer)
    return {key: value for key, value in result.items() if value is not None}


def argv(launch: Launch) -> Argv:
    """The arguments of the program: what the plan decides first, then the operator's in alphabetical order."""
    own = _router_argv(launch) if launch.is_router else _engine_argv(launch)
    set_here = {item[0] for item in own}
    return own + [item for item in to_argv(launch.args) if item[0] not in set_here]


def to_argv(args: Mapping[str, Any]) -> Argv:
    """Arguments as flags with values, sorted by flag.

    true -> the flag alone; false and null -> nothing; a list -> several values (an empty one -> nothing), a list of lists ->
    the flag several times; a mapping -> one word of JSON; everything else -> its text.
    """
    result: Argv = []
    for key in sorted(args):
        value, flag = args[key], f"--{key}"
        if value is None or value is False or value == []:
            continue
        if value is True:
            result.append([flag])
        elif isinstance(value, (list, tuple)) and all(isinstance(item, (list, tuple)) for item in value):
            result.extend([flag, *map(_word, item)] for item in value)
        elif isinstance(value, (list, tuple)):
            result.append([flag, *map(_word, value)])
        else:
            result.append([flag, _word(value)])
    return result


def _word(value: Any) -> str:
    if isinstance(value, (Mapping, list, tuple)):
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _engine_argv(launch: Launch) -> Argv:
    sizes = parallel(launch.args, launch.gpus)
    result = [
        ["--model-path", launch.model_path],
        ["--served-model-name", launch.served_name],
        ["--host", launch.address],
        ["--port", str(launch.port)],
        ["--disaggregation-mode", launch.role],
    ]
    if launch.bootstrap_port is not None:
        result.append(["--disaggregation-bootstrap-port", str(launch.bootstrap_port)])
    result.append(["--tp-size", str(sizes.tp)])
    if launch.dist_port is not None:
        # The only rendezvous port of one node: tcp://<--host>:<--nccl-port> (srt/distributed/bootstrap.py).
        result.append(["--nccl-port", str(launch.dist_port)])
    return result


def _router_argv(launch: Launch) -> Argv:
    result = [["--host", launch.address], ["--port", str(launch.port)], ["--pd-disaggregation"]]
    for url, bootstrap_port in launch.prefill_urls:
        # Without the number the router sends "bootstrap_port": null, and each side falls back on its own flag.
        result.append(["--prefill", url] + ([] if bootstrap_port is None else [str(bootstrap_port)]))
    result += [["--decode", url] for url in launch.decode_urls]
    result += [["--prometheus-host", launch.address], ["--prometheus-port", str(launch.metrics_port)]]
    return result


def environment(launch: Launch) -> dict[str, str]:
    """The unit's environment: built-in values under the operator's, then what the plan decides."""
    merged = merge_env([_base_environment(launch), launch.env])
    if not launch.is_router and launch.gpus:
        # PCI order, as in the inventory; CUDA's own default is fastest first. Never together with --base-gpu-id.
        merged["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        merged["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, launch.gpus))
    return {name: _word(merged[name]) for name in sorted(merged)}


def _base_environment(launch: Launch) -> dict[str, str]:
    cuda = not launch.is_router and device(launch.args) == "cuda"
    directories = [f"{launch.release_path}/bin"] + ([f"{_CUDA_HOME}/bin"] if cuda else [])
    result = {
        "PATH": ":".join([*directories, _SYSTEM_PATH]),
        "HOME": launch.cache_dir,
        # Models lie on local disks: nothing is looked up on a hub. Routers load tokenizers, too.
        "HF_HUB_OFFLINE": "1",
        "PYTHONUNBUFFERED": "1",
        # Process titles overwrite /proc/PID/environ, which the checks read PLUMBLINE_RENDER from.
        "SPT_NOENV": "1",
    }
    if launch.is_router:
        return result
    result.update(
        {
            # Announced to the peers; guessed from the route to 8.8.8.8 otherwise (srt/utils/network.py).
            "SGLANG_HOST_IP": launch.address,
            "SGLANG_CACHE_DIR": launch.cache_dir,
            # systemd binds; the engine's own binding writes a script to /tmp and needs numactl.
            "SGLANG_AUTO_NUMA_BIND": "0",
            # Each keeps a crashed server hanging for a minute before systemd can restart it.
            "SGLANG_PYSPY_DUMP_BEFORE_CRASH": "0",
            "SGLANG_CUDA_COREDUMP_BEFORE_CRASH": "0",
        }
    )
    if cuda:
        result["CUDA_HOME"] = _CUDA_HOME  # kernels are compiled at the first start; a service has no shell profile
    return result
