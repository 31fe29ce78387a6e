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

from collections.abc import Mapping
from typing import Any

from ..progress import human_bytes
from ..readiness import start_witness
from ..snapshots.weights import Weights, WeightsError
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

    if wants_graphs(context.entry) and context.log.ready and not _captured(context):
        return say(
            FAILED,
            "the plan wants CUDA graphs for decoding, and this run captured none: it is ready early, and slow",
            f"journalctl _SYSTEMD_INVOCATION_ID={context.invocation} | grep -i graph",
        )
    unseen = _unseen(context)
    if unseen:
        return say(UNKNOWN, f"not observable: {unseen}")
    witness = context.host.read_state(start_witness.path_of(context.entry, context.invocation)) or {}
    if not start_witness.valid(witness, context.entry, context.invocation):
        return say(UNKNOWN, "not observable: this start has no witness (the unit was not started from a rendered set, or it began before there was one)")
    if witness["cached_bytes"] is None:
        return say(UNKNOWN, f"not observable: {witness['problem']}")
    if _remote(witness["file_system"]):
        return say(UNKNOWN, f"not observable: the weights lie on {witness['file_system']}, a network file system")
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
    facts["explained"] = known >= EXPLAINED * whole
    text = f"weights {human_bytes(whole)}: {', '.join(sources)}{_pace(facts['stages'], whole)}"
    if facts["explained"]:
        return say(PASSED, text)
    return say(UNKNOWN, f"{text}; {human_bytes(whole - known)} came from nowhere", "look whether the process that answers has loaded this model at all")


def spans(context: Context) -> dict[str, dict[str, Any]]:
    """For each stretch of the start that the log shows: its seconds."""
    at = {hit.row.name: hit.at for hit in context.log.stages}
    if context.log.ready:
        at["ready"] = context.log.ready.at
    return {name: {"seconds": round(at[last] - at[first], 3)} for first, last, name in _SPANS if first in at and last in at}


def _pace(stages: Mapping[str, Mapping[str, Any]], size: int) -> str:
    seconds = stages.get("weights", {}).get("seconds")
    return "" if seconds is None else f"; loaded in {seconds:.1f} s ({human_bytes(size / max(seconds, 0.001))}/s)"


def _remote(file_system: str) -> bool:
    return file_system in _REMOTE or file_system.startswith("fuse")


def _unseen(context: Context) -> str:
    """Why no counter of this host shows this load; empty where one does."""
    load_format = argument(context.entry, "--load-format")
    return f"--load-format {load_format} passes the page cache by" if load_format in _UNSEEN else ""


def wants_graphs(entry: Mapping[str, Any]) -> bool:
    """Whether the plan's argv wants a decode on GPUs to capture CUDA graphs, as it does where nothing says otherwise
    (srt/arg_groups/cuda_graph_hook.py:557-576)."""
    if entry["role"] != "decode" or on_cpu(entry) or not entry.get("gpus"):
        return False
    flags = {str(words[0]): str(words[1]) if len(words) > 1 else "" for words in entry.get("argv") or [] if words}
    off = ("--disable-cuda-graph", "--disable-decode-cuda-graph")
    if any(flag in flags for flag in off) or flags.get("--cuda-graph-backend-decode") == "disabled":
        return False
    # A configuration of its own may turn them off in ways that only the engine knows.
    return "--cuda-graph-config" not in flags


def _captured(context: Context) -> bool:
    return any(hit.row.name == "graphs-end" for hit in context.log.stages)
