# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the engine resolved for itself, told by its log and by its HTTP server, and held against the plan. Pure.

The two speak of the same run, so where they differ the answers came from another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Name here -> name in the log (signals/log_patterns.py), name in what identity keeps of the server's answers, for people.
FACTS = {
    "context_length": ("context_len", "max_model_len", "the context length in tokens"),
    "kv_tokens": ("max_total_num_tokens", "max_total_num_tokens", "the KV cache in tokens"),
    "disaggregation_mode": ("disaggregation_mode", "disaggregation_mode", "the disaggregation mode"),
    "transfer_backend": ("disaggregation_transfer_backend", "disaggregation_transfer_backend", "the transfer backend"),
}
#: Replicas (DP ranks) have caches of slightly different size, and each logs its own.
_PER_REPLICA = ("kv_tokens",)


def resolve(log: Mapping[str, str], server: Mapping[str, Any]) -> dict[str, Any]:
    """Each fact as the server tells it, else as the log does; null where neither does.

    Numbers are integers. ``log`` is empty where the start-up lines have left the journal.
    """
    return {name: _value(server.get(told)) if server.get(told) is not None else _value(log.get(logged)) for name, (logged, told, _text) in FACTS.items()}


def differences(log: Mapping[str, str], server: Mapping[str, Any], planned: Mapping[str, Any]) -> list[str]:
    """Where log and server contradict each other, or the plan; ``planned`` holds ``context_length`` and ``max_total_tokens`` where they were set."""
    lines = []
    replicas = int(server.get("dp_size") or 1) > 1
    for name, (logged, told, text) in FACTS.items():
        if name in _PER_REPLICA and replicas:
            continue
        said, answered = _value(log.get(logged)), _value(server.get(told))
        if said is not None and answered is not None and said != answered:
            lines.append(f"{text} is {said} in the log of this run and {answered} in the server's answer")
    found = resolve(log, server)
    wanted, limit = _value(planned.get("context_length")), _value(planned.get("max_total_tokens"))
    if wanted is not None and found["context_length"] not in (None, wanted):
        lines.append(f"{FACTS['context_length'][2]} is {found['context_length']}, planned {wanted}")
    if limit is not None and found["kv_tokens"] is not None and found["kv_tokens"] > limit:
        lines.append(f"{FACTS['kv_tokens'][2]} is {found['kv_tokens']}, planned at most {limit}")
    return lines


def _value(told: Any) -> Any:
    """Digits as a number; nothing for an empty word."""
    if isinstance(told, str):
        return int(told) if told.isdigit() else told or None
    return told
