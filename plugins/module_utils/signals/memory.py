# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The memory signal: the weights lie in the memory of this unit's own processes, on the planned GPUs, alike in each TP rank.

The lower bound follows from the headers of the weight files (snapshots/weights.py), divided by TP x PP; never from a share of
the GPU's memory. On the CPU engine it is the anonymous memory of the schedulers.

Alone it is fooled: memory is full before graphs are captured and the server is warm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..progress import human_bytes
from ..snapshots.weights import Bound, Weights, WeightsError, flags_of, kept_elsewhere, lower_bound
from .base import FAILED, PASSED, UNKNOWN, Context, Say, Signal, argument
from .process import ranks_of

if TYPE_CHECKING:
    from ..host.gpus import Gpu, GpuReport

NAME = "memory"
PROVES = "the weights lie in the memory of this unit's own processes, where the plan wants them"

#: What a server may hold less than the headers say: tensors that a model class does not use (unused heads, scales that it folds).
TOLERANCE = 0.05
#: How old the driver's answer may be.
FRESH_SECONDS = 3.0
#: How far the ranks of a TP group may be apart: rank 0 keeps some more buffers. A rank without its weights is much further off.
UNEVEN_SHARE = 0.10
UNEVEN_BYTES = 2 << 30


def observe(context: Context) -> Signal:
    """Compare what the unit's processes hold with what the weights take."""
    facts: dict[str, Any] = {}

    def say(state: str, observed: str, then: str = "") -> Signal:
        least = facts.get("lower_bound_bytes")
        expected = f"at least {human_bytes(least)} in each of {facts['ranks']} ranks" if least is not None else "the weights in the memory of this unit"
        return context.signal(NAME, state, observed, expected, PROVES, then, **facts)

    try:
        weights_of(context)
    except WeightsError as error:
        return say(UNKNOWN, f"what the weights take is not known: {error}", "give the model's directory (model_path), and run this as root")
    argv = context.entry.get("argv") or []
    if kept_elsewhere(argv) and not on_cpu(context.entry):
        return say(UNKNOWN, f"{kept_elsewhere(argv)} keeps weights elsewhere, so nothing says how much a rank holds itself", "nvidia-smi")
    bound: Bound = context.memory["weights_bound"]
    ranks = _size(context, "tp_size", "--tp-size") * _size(context, "pp_size", "--pp-size")
    offloaded = int(float(flags_of(argv).get("--cpu-offload-gb") or 0) * (1 << 30))
    share = max(1, int(bound.bytes / ranks * (1 - TOLERANCE)) - offloaded)
    facts.update(weight_bytes=bound.bytes, lower_bound_bytes=share, ranks=ranks, left_out=list(bound.left_out))
    return _on_cpu(context, say, facts, share) if on_cpu(context.entry) else _on_gpus(context, say, facts, share)


def weights_of(context: Context) -> Weights:
    """The weights of the instance's model, measured once for a run. :raises WeightsError:"""
    if "weights" not in context.memory:
        model: Mapping[str, Any] = context.entry.get("model") or {}
        told = (context.memory.get("server_info") or {}).get("model_path")
        path = model.get("path") or context.expect.get("model_path") or told
        if not path or not str(path).startswith("/"):
            raise WeightsError(f"the model is {path!r}, which is no directory of this host")
        found = context.host.weights(str(path))
        context.memory["weights_bound"] = lower_bound(found, context.entry.get("argv") or [])
        # A large model has 100,000 tensors, 25 MiB of names: what follows from them is kept, they are not.
        context.memory["weights"] = replace(found, tensors={})
    kept: Weights = context.memory["weights"]
    return kept


def on_cpu(entry: Mapping[str, Any]) -> bool:
    """Whether the engine computes on the CPU."""
    return "cpu" in (entry.get("device"), argument(entry, "--device"))


def _size(context: Context, name: str, flag: str) -> int:
    """A parallel size by the plan, else by the argv, else as the server tells it; 1 where nobody names it."""
    told = context.expect.get(name) or argument(context.entry, flag) or (context.memory.get("server_info") or {}).get(name) or 1
    return max(1, int(told))


# --- the engine on the CPU -----------------------------------------------------------------------------------------------


def _on_cpu(context: Context, say: Say, facts: dict[str, Any], share: int) -> Signal:
    tasks = context.host.tasks(context.host.cgroup_pids(context.unit.control_group))
    schedulers = ranks_of(tasks)
    held = context.host.anonymous_bytes(schedulers or [task.pid for task in tasks])
    who = "scheduler" if schedulers else "process"
    facts.update(source="RssAnon of /proc/PID/status", held_bytes={str(pid): size for pid, size in held.items()})
    if not held:
        return say(UNKNOWN, f"no {who} of {context.unit.unit} whose memory can be read", "run this as root")
    text = ", ".join(f"PID {pid} holds {human_bytes(size)}" for pid, size in sorted(held.items()))
    short = [pid for pid, size in held.items() if size < share] if schedulers else [0] if sum(held.values()) < share else []
    if short:
        return say(UNKNOWN, f"{text} of anonymous memory, less than {human_bytes(share)}: the weights are not there", _look(context))
    return say(PASSED, f"{text} of anonymous memory, at least {human_bytes(share)}")


# --- GPUs ----------------------------------------------------------------------------------------------------------------


def _on_gpus(context: Context, say: Say, facts: dict[str, Any], share: int) -> Signal:
    report = _report(context)
    facts["source"] = report.source
    if report.problem or not report.gpus:
        return say(UNKNOWN, f"the GPUs cannot be read: {report.problem or 'the driver shows none'}", "nvidia-smi")
    pids = context.host.cgroup_pids(context.unit.control_group)
    planned = [int(index) for index in context.entry.get("gpus") or []]
    by_index = {gpu.index: gpu for gpu in report.gpus}
    absent = [index for index in planned if index not in by_index]
    if absent:
        return say(FAILED, f"the host has no GPU {', '.join(map(str, absent))}; planned: {_list(planned)}", "nvidia-smi -L, then mend gpus in the inventory")
    if any(gpu.processes is None for gpu in report.gpus if not planned or gpu.index in planned):
        return say(UNKNOWN, "the driver does not show the processes on the GPUs", "look from outside the container, as root")
    mine = {gpu.index: [item for item in gpu.processes or () if item.pid in pids] for gpu in report.gpus}
    unsized = [item.pid for items in mine.values() for item in items if item.bytes is None]
    if unsized:
        return say(UNKNOWN, f"the driver does not tell the memory of PID {_list(unsized)}", "nvidia-smi --query-compute-apps=pid,used_memory --format=csv")
    order = [*planned, *(index for index, items in mine.items() if items and index not in planned)]
    held = {index: sum(item.bytes or 0 for item in mine[index]) for index in order}
    unnamed = [gpu.index for gpu in report.gpus if (gpu.index in planned or not planned) and _unnamed(context, gpu, share)]
    if unnamed and not any(held.values()):
        text = f"memory of GPU {_list(unnamed)} is used, and the driver names no process that this host knows"
        return say(UNKNOWN, text, "look from outside the container, as root")
    foreign = [_foreigner(context, by_index[index], pids) for index in planned or held]
    facts.update(held_bytes={str(index): size for index, size in held.items()}, foreign=[text for text in foreign if text])
    return _judge(context, say, held, planned, share, [text for text in foreign if text])


def _report(context: Context) -> GpuReport:
    """What the driver says; two looks in a row share an answer, since nvidia-smi takes a second."""
    asked, report = context.memory.get("gpus", (float("-inf"), None))
    if report is None or context.host.monotonic() - asked > FRESH_SECONDS:
        report = context.host.gpus()
        context.memory["gpus"] = (context.host.monotonic(), report)
    found: GpuReport = report
    return found


def _judge(context: Context, say: Say, held: Mapping[int, int], planned: list[int], share: int, foreign: list[str]) -> Signal:
    others = f"; also there: {'; '.join(foreign)}" if foreign else ""
    stray = [index for index, size in held.items() if planned and index not in planned and size]
    if stray:
        advice = "compare CUDA_VISIBLE_DEVICES and --base-gpu-id with gpus in the inventory"
        return say(FAILED, f"{context.unit.unit} holds memory on GPU {_list(stray)}, planned: {_list(planned)}{others}", advice)
    if not any(held.values()):
        where = f"GPU {_list(planned)}" if planned else "any GPU"
        return say(FAILED, f"{context.unit.unit} holds nothing on {where}{others}", "nvidia-smi")
    text = ", ".join(f"GPU {index} {human_bytes(size)}" for index, size in sorted(held.items()))
    stages, nodes = _size(context, "pp_size", "--pp-size"), _size(context, "nnodes", "--nnodes")
    # Pipeline stages are not cut evenly: their sum is what must be there. A node that has only some of them sees no sum.
    least = share // 2 if stages > 1 else share
    short = [index for index, size in held.items() if size < least]
    if short or ((stages == 1 or nodes == 1) and sum(held.values()) < share * len(held)):
        where = f" on GPU {_list(short)}" if short else ""
        return say(UNKNOWN, f"{text}: less than the weights' {human_bytes(share)} a GPU{where}{others}", _look(context))
    width = max(1, _size(context, "tp_size", "--tp-size") // max(1, nodes // stages))
    sizes = list(held.values())
    groups = [sizes[first : first + width] for first in range(0, len(sizes), width)]
    if any(max(group) - min(group) > max(UNEVEN_SHARE * max(group), UNEVEN_BYTES) for group in groups):
        return say(UNKNOWN, f"{text}: not alike across the TP group{others}", _look(context))
    return say(PASSED, f"{text}, at least {human_bytes(share)} each{others}")


def _unnamed(context: Context, gpu: Gpu, share: int) -> bool:
    """Whether a GPU's memory is used by nobody whom this host knows: in a container, the driver names no PIDs or those of the host."""
    known = any(context.host.cgroup_of(item.pid) for item in gpu.processes or ())
    return not known and (gpu.memory_used or 0) >= share


def _foreigner(context: Context, gpu: Gpu, pids: set[int]) -> str:
    """Who else holds memory on a GPU, for people; empty where nobody does."""
    names = [
        f"PID {item.pid} ({context.host.cgroup_of(item.pid) or '?'}, {human_bytes(item.bytes) if item.bytes is not None else 'an unknown amount'})"
        for item in gpu.processes or ()
        if item.pid not in pids
    ]
    return f"GPU {gpu.index}: {', '.join(names)}" if names else ""


def _list(numbers: list[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))


def _look(context: Context) -> str:
    return f"look for the stages of the load in journalctl _SYSTEMD_INVOCATION_ID={context.invocation}, and compare the model directory with what it says"
