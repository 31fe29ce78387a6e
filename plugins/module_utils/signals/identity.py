# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The identity signal: the server is the one that was planned, by name, model, mode, version, sizes and launch command.

What it resolved for itself (context length, KV tokens, mode, transfer backend) is compared with its log and with the plan.

``/server_info`` shows every setting, the API keys among them, and the launch command holds them once more: of both, only
what is listed here is kept. ``/server_info`` asks every scheduler and has no time-out of its own.

Alone it is fooled: the answers are static and come early, also from a server whose schedulers hang.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..host.credentials import CredentialError, without_secret_flags
from ..host.http import HttpError
from . import resolved
from .base import FAILED, PASSED, PENDING, UNKNOWN, Context, Signal, argument

NAME = "identity"
PROVES = "the server is the planned one: served name, model, mode, version, sizes, launch command"
SERVER_INFO_SECONDS = 10.0

#: What is kept of /server_info, and nothing else.
KEPT = (
    "version",
    "tp_size",
    "pp_size",
    "dp_size",
    "attn_dp_size",
    "nnodes",
    "page_size",
    "kv_cache_dtype",
    "disaggregation_mode",
    "disaggregation_transfer_backend",
    "disaggregation_bootstrap_port",
    "max_total_num_tokens",
)


class Unasked(Exception):
    """An endpoint gave no usable answer: (state, observed)."""


def observe(context: Context) -> Signal:
    """Ask ``/model_info``, ``/v1/models`` and ``/server_info`` and compare each fact with the plan."""
    found: dict[str, Any] = {}
    expect = context.expect

    def say(state: str, observed: str, then: str = "", **details: Any) -> Signal:
        planned = ", ".join(f"{name} {expect[name]}" for name in ("served_name", "disaggregation_mode", "version") if expect.get(name))
        facts = resolved.resolve(context.log.resolved, found)
        return context.signal(NAME, state, observed, planned or "what the plan says", PROVES, then, found=found, resolved=facts, **details)

    try:
        found.update(model_facts(_get(context, "/model_info")))
        models = _get(context, "/v1/models")
        found.update(models=model_ids(models), max_model_len=context_length(models, found["served_name"]))
        info = _get(context, "/server_info", SERVER_INFO_SECONDS)
        found.update({name: info[name] for name in KEPT if name in info})
        launch = info.get("launch_command")
    except Unasked as error:
        return say(*error.args)
    sizes = {"context_length": argument(context.entry, "--context-length"), "max_total_tokens": argument(context.entry, "--max-total-tokens")}
    differences = compare(found, expect) + resolved.differences(context.log.resolved, found, sizes)
    argv = context.entry.get("argv")
    comparable = bool(argv) and isinstance(launch, str)
    command = command_differences(argv or [], str(launch)) if comparable else []
    context.memory["server_info"] = found
    if differences or command:
        shown = differences + [context.redactor.text(line) for line in command]
        return say(
            FAILED,
            "; ".join(shown[:6]) + (f"; and {len(shown) - 6} more" if len(shown) > 6 else ""),
            f"systemctl restart {context.unit.unit}, or deploy again: what runs is not what the plan says",
            differences=shown,
        )
    how = "as rendered" if comparable else "not compared: this release does not report it" if argv else "not compared: no argv is planned"
    identity = ", ".join(str(found.get(name)) for name in ("served_name", "disaggregation_mode", "version"))
    return say(PASSED, f"{identity}, launch command {how}")


def _get(context: Context, path: str, total: float = 5.0) -> dict[str, Any]:
    try:
        answer = context.host.request(context.url + path, credential=context.credential, total=total)
        if answer.refused_key:
            where = context.credential.path if context.credential else "(the plan has none)"
            raise Unasked(
                UNKNOWN,
                f"{path} answered {answer.status}: alive, but the key is wrong or missing",
                f"compare the key in {where} with the one the server was started with",
            )
        if answer.status != 200:
            raise Unasked(PENDING if answer.status >= 500 else UNKNOWN, f"{path} answered {answer.status}: {answer.text(80)}")
        body = answer.json()
    except HttpError as error:
        raise Unasked(UNKNOWN, f"{path}: {error}", f"curl -m {total:g} {context.url}{path}") from None
    except CredentialError as error:
        raise Unasked(UNKNOWN, str(error), "the credentials of the group are written by the instance's role") from None
    if not isinstance(body, dict):
        raise Unasked(UNKNOWN, f"{path} answered something that is no object: {answer.text(80)}")
    return body


def model_facts(body: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of ``/model_info`` that identify a server."""
    return {
        "served_name": body.get("served_model_name"),
        "model_path": body.get("model_path"),
        "disaggregation_mode": body.get("disaggregation_mode"),
    }


def model_ids(body: Mapping[str, Any]) -> list[str]:
    """The ids of ``/v1/models``: the served name and the names of LoRA adapters."""
    cards = body.get("data")
    return [str(card.get("id")) for card in cards if isinstance(card, dict)] if isinstance(cards, list) else []


def context_length(body: Mapping[str, Any], served_name: Any) -> Any:
    """The context length in tokens that ``/v1/models`` gives for the served model; None where it gives none."""
    cards = body.get("data")
    mine = [card for card in cards if isinstance(card, dict) and card.get("id") == served_name] if isinstance(cards, list) else []
    return mine[0].get("max_model_len") if mine else None


def compare(found: Mapping[str, Any], expect: Mapping[str, Any]) -> list[str]:
    """Each fact that is not as planned, as text. What the plan does not expect is not compared.

    A planned fact that the server did not tell is a difference too. The engine reports the backend ``mooncake_tcp`` as
    ``mooncake`` (srt/arg_groups/pd_disaggregation_hook.py:27).
    """
    lines = []
    names = {"transfer_backend": "disaggregation_transfer_backend"}
    for name in ("served_name", "model_path", "disaggregation_mode", "version", "tp_size", "pp_size", "nnodes", "transfer_backend"):
        wanted = expect.get(name)
        if wanted is None:
            continue
        have = found.get(names.get(name, name))
        same = have == wanted or (name == "transfer_backend" and wanted == "mooncake_tcp" and have == "mooncake")
        if not same:
            lines.append(f"{name} is {have!r}, planned {wanted!r}")
    served = expect.get("served_name")
    if served is not None and served not in found.get("models", []):
        lines.append(f"/v1/models lists {found.get('models')}, planned {served!r}")
    return lines


def command_differences(argv: Sequence[Sequence[Any]], launch_command: str) -> list[str]:
    """How the launch command differs from the planned argv, one flag per line (``+`` runs, ``-`` planned); secrets left out.

    The engine joins its arguments with single blanks (srt/server_args.py:717), so both sides are compared as words.
    """
    planned = _flags(without_secret_flags(" ".join(str(word) for words in argv for word in words).split()))
    running = _flags(without_secret_flags(launch_command.split()))
    if planned == running:
        return []
    lines = [f"- {flag}" for flag in planned if flag not in running] + [f"+ {flag}" for flag in running if flag not in planned]
    return lines or ["the launch command has the planned flags in another order or number"]


def _flags(words: Sequence[str]) -> list[str]:
    flags: list[str] = []
    for word in words:
        if word.startswith("--") or not flags:
            flags.append(word)
        else:
            flags[-1] += f" {word}"
    return flags
