# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of the plan about which prefills and decodes can work together.

The engine compares these fields only at the first request, and a mismatch kills the decode's scheduler
(srt/disaggregation/common/conn.py): here they are compared before anything starts. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from .findings import Findings
from .instances import Instance
from .launch import integer

# Argument -> the engine's default; prefills and decodes of a PD group must agree on it.
_EQUAL: tuple[tuple[str, Any], ...] = (
    ("disaggregation-decode-allocation-policy", "early"),
    ("disaggregation-enable-kv-checksum", False),
    ("disaggregation-transfer-backend", "mooncake"),
    ("kv-cache-dtype", "auto"),
    ("page-size", None),
)
# What leaves the checks blind: the proof of readiness rests on the warm-up and on a generating health check.
_PASSIVE_ENV = {"SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION": ("false", "0", "no", "n"), "SGLANG_DIAG_BYPASS_HEALTH_GENERATE": ("true", "1", "yes", "y")}


def check(members: Sequence[Instance], findings: Findings) -> None:
    """Report what keeps the engines of one PD group from working together, or from being checked."""
    engines = [item for item in members if not item.is_router]
    prefills = [item for item in engines if item.role == "prefill"]
    decodes = [item for item in engines if item.role == "decode"]
    if prefills and decodes:
        _equal(engines, findings)
        _versions(engines, findings)
        _parallel(prefills, decodes, findings)
    for item in engines:
        _engine(item, findings)
        _observable(item, findings)


def _text(value: Any) -> str:
    return "not set" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _by_value(engines: Sequence[Instance], values: Sequence[str]) -> str:
    names = defaultdict(list)
    for item, value in zip(engines, values):
        names[value].append(item.where)
    return "; ".join(f"{value} on {', '.join(places)}" for value, places in sorted(names.items()))


def _equal(engines: Sequence[Instance], findings: Findings) -> None:
    for flag, default in _EQUAL:
        values = [_text(item.args.get(flag, default)) for item in engines]
        if len(set(values)) > 1:
            findings.error(
                "pair-differs",
                [item.where for item in engines],
                f"{flag}: {_by_value(engines, values)}",
                "one value for all prefills and decodes of a PD group; the engine finds out at the first request only",
                f"set {flag} once, in args of the PD group",
            )


def _versions(engines: Sequence[Instance], findings: Findings) -> None:
    values = [item.version for item in engines]
    if len(set(values)) > 1:
        findings.error(
            "pair-version",
            [item.where for item in engines],
            f"sglang_engine_version: {_by_value(engines, values)}",
            "one engine version in a PD group: the transfer protocol is not stable between versions",
            "set sglang_engine_version once for all hosts of the PD group",
        )


def _parallel(prefills: Sequence[Instance], decodes: Sequence[Instance], findings: Findings) -> None:
    for decode in decodes:
        cp = integer(decode.args.get("attn-cp-size"), 1)
        if cp != 1:
            findings.error(
                "pair-cp",
                [decode.where],
                f"attn-cp-size is {cp} on a decode",
                "attn-cp-size 1 on every decode",
                "remove attn-cp-size from the decode's arguments",
            )
        wrong = sorted({item.parallel.pp for item in prefills} - {decode.parallel.pp})
        if wrong and decode.parallel.pp != 1:
            findings.error(
                "pair-pp",
                [decode.where],
                f"pp-size is {decode.parallel.pp} on the decode and {', '.join(map(str, wrong))} on a prefill",
                "on a decode the pp-size of its prefills, or 1",
                "remove pp-size from the decode's arguments, or make it equal",
            )
    tp = {(prefill.parallel.tp, decode.parallel.tp) for prefill in prefills for decode in decodes}
    unequal = sorted(pair for pair in tp if pair[0] != pair[1])
    if unequal:
        findings.warning(
            "pair-tp",
            [item.where for item in (*prefills, *decodes)],
            "tp-size of prefill and decode: " + ", ".join(f"{left} and {right}" for left, right in unequal),
            "equal sizes, unless the model uses MLA; with other models a prefill of 1 and a decode of 4 was reported to hang",
            "make tp-size equal, or set SGLANG_DISAGG_STAGING_BUFFER=1 on both and watch the canary",
        )


def _engine(item: Instance, findings: Findings) -> None:
    if item.parallel.nnodes > 1:
        findings.error(
            "multi-node",
            [item.where],
            f"nnodes is {item.parallel.nnodes}",
            "each server on one host: followers answer 200 to every health check, and the plan has no place for them yet",
            "remove nnodes, and add prefill or decode instances instead",
        )
    if integer(item.args.get("tokenizer-worker-num"), 1) > 1 and item.has_key:
        findings.error(
            "key-tokenizers",
            [item.where],
            "tokenizer-worker-num is above 1, and sglang_api_key is set",
            "one tokenizer worker: the engine refuses keys with several",
            "remove tokenizer-worker-num",
        )
    if item.dist_port is not None and item.parallel.dp > 1:
        findings.error(
            "dist-port-replicas",
            [item.where],
            f"dist_port is {item.dist_port} with dp-size {item.parallel.dp}",
            "no fixed port: every replica would bind the same one",
            "remove dist_port from the instance",
        )
    if item.role == "prefill" and item.args.get("disaggregation-transfer-backend") == "fake":
        findings.error(
            "pair-fake",
            [item.where],
            "disaggregation-transfer-backend is fake on a prefill",
            "a real transfer backend: the engine refuses this one on a prefill",
            "use nixl, mooncake or mooncake_tcp",
        )
    if str(item.env.get("SGLANG_RUST_SERVER", "0")).lower() in ("1", "true", "yes", "y"):
        findings.error(
            "rust-server",
            [item.where],
            "SGLANG_RUST_SERVER is on",
            "the Python server: the other one moves the bootstrap registry to the API port and answers differently",
            "remove SGLANG_RUST_SERVER",
        )


def _observable(item: Instance, findings: Findings) -> None:
    blind = [name for name, values in _PASSIVE_ENV.items() if str(item.env.get(name, "")).lower() in values]
    blind += ["skip-server-warmup"] if item.args.get("skip-server-warmup") else []
    blind += [] if item.args.get("enable-metrics") else ["enable-metrics: false"]
    if blind:
        findings.warning(
            "not-observable",
            [item.where],
            f"{', '.join(blind)}",
            "the warm-up, the generating health check and the metrics, which a proof of readiness rests on",
            "remove it; otherwise expect INCONCLUSIVE",
        )
