# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The numbers that prove a transfer: what a server has counted, and what a prompt's KV cache must weigh at least. Pure.

A prefill's ``kv_transfer_total_mb`` (a histogram in MiB, srt/observability/req_time_stats.py:981) grows by the prompt's cache for
every real transfer and for no health probe (srt/disaggregation/prefill.py leaves the stand-in out). A decode's ``kv_transfer_*``
counts move with every health probe and prove nothing, so they are not read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MIB = 1 << 20
#: The unit of ``memory_usage.kvcache`` (srt/mem_cache/memory_pool.py: GB = 1024 * 1024 * 1024), and half of its last decimal
#: (srt/managers/scheduler_components/memory_usage.py rounds to three).
ENGINE_GB = 1 << 30
ROUNDING_GB = 0.0005
#: Layouts in which a token is not one row of what one rank allocated and moves (srt/mem_cache/kv_cache_configurator.py): its size says nothing then.
LAYOUTS = (
    "enable_unified_memory",
    "enable_hisparse",
    "enable_page_major_kv_layout",
    "enable_kv_cache_sharding",
    "enable_dsa_cache_layer_split",
    "uses_mamba_radix_cache",
)
#: Attention over every earlier token (srt/arg_groups/choices.py:69). The others keep an index, a compressed cache or a state beside it.
FULL_ATTENTION = ("triton", "torch_native", "flex_attention", "fa3", "fa4", "flashinfer", "flashmla", "cutlass_mla", "trtllm_mla", "trtllm_mha", "cutedsl_mla")
#: Tokens that a prompt may share with an earlier one at its very beginning: a start token and a few characters of the nonce.
SHARED_TOKENS = 8
#: KV cache types whose pool holds keys and values and nothing else; the others count scales or work space that may not travel.
PLAIN_DTYPES = ("auto", "bfloat16", "bf16", "float16", "fp8_e4m3", "fp8_e5m2")

#: ``sglang:name`` or ``sglang_name`` (the prefix has changed between releases), its labels, its value.
_SAMPLE = re.compile(r"^sglang[:_]([a-z_]+)(\{[^}]*\})? ([0-9.eE+-]+)(?: \d+)?$", re.M)
_KV = "kv_transfer_total_mb_sum"
_TRANSFERS = "kv_transfer_latency_ms_count"
_BOOTSTRAP_FAILED = "num_bootstrap_failed_reqs_total"
_TRANSFER_FAILED = "num_transfer_failed_reqs_total"
_TOKENS = "generation_tokens_total"
_NAMES = (_KV, _TRANSFERS, _BOOTSTRAP_FAILED, _TRANSFER_FAILED, _TOKENS)


@dataclass(frozen=True)
class Reading:
    """What one server has counted since it started, per series (name and labels). A counter not printed yet is 0."""

    series: Mapping[tuple[str, str], float] = field(default_factory=dict)


@dataclass(frozen=True)
class Growth:
    """What one server counted between two readings.

    ``kv_bytes`` is summed over the ranks that report; ``transfers`` is that of the busiest rank, since every rank reports the same
    request; ``restarted`` where a counter went back.
    """

    kv_bytes: float = 0.0
    transfers: float = 0.0
    bootstrap_failures: float = 0.0
    transfer_failures: float = 0.0
    generated_tokens: float = 0.0
    restarted: bool = False


@dataclass(frozen=True)
class Bound:
    """The least that one prompt token weighs in a prefill's KV cache. ``per_token`` in bytes, None where it is not known; ``source``
    says where it comes from or why there is none; ``page_size`` in tokens."""

    per_token: float | None
    source: str
    page_size: int = 1

    def bytes_of(self, prompt_tokens: int, shared: bool = False) -> int | None:
        """Bytes that a prompt must move at least; ``shared`` where the decode may keep the beginning of earlier prompts."""
        if self.per_token is None:
            return None
        return int(self.per_token * max(1, prompt_tokens - (SHARED_TOKENS if shared else 0)))


def reading_of(text: str) -> Reading | None:
    """The counters in an exposition of ``/metrics``; None where it is no exposition of SGLang."""
    series: dict[tuple[str, str], float] = {}
    found = False
    for name, labels, value in _SAMPLE.findall(text):
        found = True
        if name in _NAMES:
            series[(name, labels)] = series.get((name, labels), 0.0) + float(value)
    return Reading(series) if found else None


def growth(before: Reading, after: Reading) -> Growth:
    """What was counted between two readings of one server."""
    grown: dict[str, list[float]] = {name: [] for name in _NAMES}
    for key in {*before.series, *after.series}:
        grown[key[0]].append(after.series.get(key, 0.0) - before.series.get(key, 0.0))
    return Growth(
        kv_bytes=sum(grown[_KV]) * MIB,
        transfers=max(grown[_TRANSFERS], default=0.0),
        bootstrap_failures=max(grown[_BOOTSTRAP_FAILED], default=0.0),
        transfer_failures=max(grown[_TRANSFER_FAILED], default=0.0),
        generated_tokens=sum(grown[_TOKENS]),
        restarted=any(value < 0 for values in grown.values() for value in values),
    )


def bound_of(info: Any) -> Bound:
    """A lower bound for bytes per token from a prefill's ``/server_info``. Nothing else of it is kept: it holds keys.

    Each rank tells its own memory and reports its own transfers, so nothing is divided by the tensor-parallel size. The pool has
    one page more than its capacity (srt/mem_cache/memory_pool.py: size + page_size).
    """
    if not isinstance(info, Mapping):
        return Bound(None, "unknown: /server_info is no object")
    page = _number(info.get("page_size"))
    page_size = max(1, int(page)) if page else 1
    why = _not_comparable(info)
    states = info.get("internal_states")
    usages = [state.get("memory_usage") for state in states if isinstance(state, Mapping)] if isinstance(states, list) else []
    if not why and not usages:
        why = "/server_info tells no memory_usage"
    bounds = []
    for usage in usages if not why else []:
        told, why = _per_token(usage, page_size)
        if why:
            break
        bounds.append(told)
    if why:
        return Bound(None, f"unknown: {why}", page_size)
    return Bound(min(bounds), "server_info", page_size)


def _not_comparable(info: Mapping[str, Any]) -> str:
    for name in ("attn_cp_size", "dcp_size"):
        size = _number(info.get(name))
        if size and size > 1:
            return f"{name} is {size:g}, so each rank moves a part of its cache"
    for name in LAYOUTS:
        if info.get(name):
            return f"{name} is set, so the cache is not one row per token"
    if info.get("max_mamba_cache_size") is not None:
        return "a Mamba state is part of what moves"
    if info.get("device") not in (None, "cuda", "cpu"):
        return f"the device is {info.get('device')!r}"
    for backend in (info.get("attention_backend"), info.get("prefill_attention_backend")):
        if backend not in (None, *FULL_ATTENTION):
            return f"the attention backend is {backend!r}"
    dtype = info.get("kv_cache_dtype")
    return "" if dtype in (None, *PLAIN_DTYPES) else f"the pool of kv_cache_dtype {dtype} holds more than what moves"


def _per_token(usage: Any, page_size: int) -> tuple[float, str]:
    """Whole bytes per token of one rank, and why there is no such number."""
    if not isinstance(usage, Mapping):
        return 0.0, "/server_info tells no memory_usage"
    size, capacity = _number(usage.get("kvcache")), _number(usage.get("token_capacity"))
    if "kvcache" in usage and "token_capacity_swa" not in usage:
        # Those before 0.5.23's memory_usage.py sum up both pools, and round to two decimals.
        return 0.0, "this release does not tell whether the KV cache is a hybrid one"
    if usage.get("token_capacity_swa") is not None:
        return 0.0, "a hybrid KV cache (token_capacity_swa) has no one size per token"
    if not size or not capacity or capacity < 1:
        return 0.0, "/server_info tells no kvcache and token_capacity"
    told = (size - ROUNDING_GB) * ENGINE_GB // (capacity + page_size)
    return (told, "") if told >= 1 else (0.0, f"kvcache of {size:g} GB is too coarse for {capacity:g} tokens")


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
