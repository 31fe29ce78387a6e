# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The load signal: the bytes of the weights came from somewhere. It explains a start, and is not needed for readiness.

A server may be ready in a fraction of the time that its storage takes, since the weights were in the page cache. That is no
error, but a claim that can be checked: the unit itself records before each start what lies in the page cache
(readiness/start_witness.py), and what it has read since is counted. A start that was observed and that nothing explains is a
finding; one that could not be observed is not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..progress import human_bytes
from ..readiness import start_witness
from ..snapshots.weights import Weights, WeightsError, flags_of
from .base import FAILED, PASSED, UNKNOWN, Context, Say, Signal, argument
from .memory import on_cpu, weights_of

NAME = "load"
PROVES = "the weights were in the page cache before this run, or were read from storage by it"

#: The share of the files that must be accounted for. What is left may be headers, padding, and layers that are not loaded.
EXPLAINED = 0.90
#: Here the page cache and the counters of this host do not show what was read.
_REMOTE = ("nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "gpfs", "beegfs", "9p", "virtiofs", "glusterfs", "afs", "wekafs", "pvfs2", "orangefs", "vastnfs")
#: Values of --load-format that pass the page cache by, or read no weights (srt/configs/load_config.py, LoadFormat).
_UNSEEN = ("dummy", "fastsafetensors", "instanttensor", "ipc_cache", "jax", "local_cached", "private", "rdma", "remote", "remote_instance", "runai_streamer")
#: Pairs of stages in the log (signals/log_patterns.py) and what lies between them.
_SPANS = (
    ("load-begin", "load-end", "weights"),
    ("load-end", "memory-pool", "KV cache"),
    ("graphs-begin", "graphs-end", "graphs"),
    ("warmup-begin", "ready", "warm-up"),
)


def observe(context: Context) -> Signal:
    """Find out where the weights came from, and whether the graphs that the plan wants were captured."""
    stages = spans(context)
    facts: dict[str, Any] = {"explained": None, "stages": stages}

    def say(state: str, observed: str, then: str = "") -> Signal:
        return context.signal(NAME, state, observed, "where the weights came from", PROVES, then, **facts)

    # A journal forgets its oldest lines first: only where it still holds the load does it hold the capture that follows.
    told = context.log.ready and any(hit.row.name == "load-end" for hit in context.log.stages)
    if wants_graphs(context.entry) and told and not _captured(context):
        return say(
            FAILED,
            "the plan wants CUDA graphs for decoding, and this run captured none: it is ready early, and slow",
            f"journalctl _SYSTEMD_INVOCATION_ID={context.invocation} | grep -i graph",
        )
    kept = (context.proof or {}).get("load") or {}
    if kept.get("explained"):
        facts.update(kept)
        return say(PASSED, f"explained when this run was proved, at {(context.proof or {})['proved_at']}")
    unseen = _unseen(context)
    if unseen:
        return say(UNKNOWN, f"not observable: {unseen}")
    witness = context.host.read_state(start_witness.path_of(context.entry, context.invocation)) or {}
    if not start_witness.valid(witness, context.entry, context.invocation):
        return say(UNKNOWN, "not observable: this start has no witness (the unit was not started from a rendered set, or it began before there was one)")
    if witness["cached_bytes"] is None:
        return say(UNKNOWN, f"not observable: {witness['problem']}")
    try:
        return _explain(context, say, facts, witness, weights_of(context))
    except (WeightsError, OSError) as error:
        return say(UNKNOWN, f"not observable: {error}")


def _explain(context: Context, say: Say, facts: dict[str, Any], witness: Mapping[str, Any], weights: Weights) -> Signal:
    whole = max(1, weights.bytes)
    cached = int(witness["cached_bytes"])
    read = context.host.bytes_read(context.unit.control_group)
    facts.update(weight_bytes=whole, cached_before_bytes=cached, read_bytes=read.bytes, read_source=read.source, file_system=witness["file_system"])
    sources = [f"{100 * cached / whole:.0f} % were in the page cache before the start"]
    known = cached + (read.bytes or 0)
    if read.bytes:
        sources.append(f"{human_bytes(read.bytes)} were read from storage by this unit")
    if known < EXPLAINED * whole:
        # Another server of this host may have read them meanwhile: two that start at once share each page.
        now = context.host.cached_bytes(weights.files)
        facts["cached_now_bytes"] = now
        if now is not None and now >= EXPLAINED * whole:
            known = now
            sources.append(f"{100 * now / whole:.0f} % are in it now, read meanwhile by another process")
    if known < EXPLAINED * whole and _remote(witness["file_system"]):
        return say(UNKNOWN, f"not observable: the weights lie on {witness['file_system']}, a network file system")
    if known < EXPLAINED * whole and read.bytes is None:
        return say(UNKNOWN, f"not observable: what this unit has read is not counted ({read.source})")
    facts["explained"] = known >= EXPLAINED * whole
    _enrich(facts["stages"], whole, sources)
    text = f"weights {human_bytes(whole)}: {', '.join(sources)}{_pace(facts['stages'], whole)}"
    if facts["explained"]:
        return say(PASSED, text)
    return say(UNKNOWN, f"{text}; {human_bytes(whole - known)} came from nowhere", "look whether the process that answers has loaded this model at all")


def spans(context: Context) -> dict[str, dict[str, Any]]:
    """For each stretch of the start that the log shows: its seconds."""
    at = {hit.row.name: hit.at for hit in context.log.stages}
    if context.log.ready:
        at["ready"] = context.log.ready.at
    # With --startup-weight-load-mode overlap the load ends after the graphs.
    return {name: {"seconds": round(at[last] - at[first], 3)} for first, last, name in _SPANS if first in at and at.get(last, -1.0) >= at[first]}


def _enrich(stages: dict[str, dict[str, Any]], size: int, sources: list[str]) -> None:
    """What the stage of the load is explained by: its bytes, its pace, and where they came from."""
    if "weights" in stages:
        seconds = max(stages["weights"]["seconds"], 0.001)
        stages["weights"].update(bytes=size, bytes_per_second=round(size / seconds), source="; ".join(sources))


def _pace(stages: Mapping[str, Mapping[str, Any]], size: int) -> str:
    seconds = stages.get("weights", {}).get("seconds")
    return "" if seconds is None else f"; loaded in {seconds:.1f} s ({human_bytes(size / max(seconds, 0.001))}/s)"


def _remote(file_system: str) -> bool:
    return file_system in _REMOTE or file_system.startswith("fuse")


def _unseen(context: Context) -> str:
    """Why no counter of this host shows this load; empty where one does."""
    mode = argument(context.entry, "--weight-cache-mode")
    if mode == "client":
        return "--weight-cache-mode client takes the weights from a daemon's GPU memory"
    load_format = argument(context.entry, "--load-format")
    return f"--load-format {load_format} passes the page cache by" if load_format in _UNSEEN else ""


def wants_graphs(entry: Mapping[str, Any]) -> bool:
    """Whether the plan's argv wants a decode on GPUs to capture CUDA graphs, as it does where nothing says otherwise.

    Precedence as in srt/arg_groups/cuda_graph_hook.py:55-112. The other settings turn them off for reasons of their own
    (attention_hook.py:124-145, 540; moe_hook.py:384; expert_pack_hook.py:197; serving_hook.py:569).
    """
    if entry["role"] != "decode" or on_cpu(entry) or not entry.get("gpus"):
        return False
    flags = flags_of(entry.get("argv") or [])
    backend = _decode_backend(flags)
    off = backend == "disabled" or (not backend and any(flag in flags for flag in ("--disable-cuda-graph", "--disable-decode-cuda-graph")))
    attention = {flags.get("--attention-backend"), flags.get("--decode-attention-backend")}
    other = attention & {"torch_native", "flex_attention"} or flags.keys() & {"--enable-mis", "--msprobe-dump-config"}
    return not off and not other and flags.get("--deepep-mode") != "normal" and flags.get("--load-format") != "expert_pack"


def _decode_backend(flags: Mapping[str, str]) -> str:
    """The backend of decode graphs that the argv names: in its JSON, else by its own flag; empty where it names none."""
    try:
        config = json.loads(flags.get("--cuda-graph-config") or "{}")
        named = str(config["decode"]["backend"])
    except (ValueError, LookupError, TypeError):
        named = ""
    return named or flags.get("--cuda-graph-backend-decode", "")


def _captured(context: Context) -> bool:
    return any(hit.row.name == "decode-graphs" for hit in context.log.stages)
