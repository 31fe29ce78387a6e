# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of a plan entry that checks of a running instance need: made from plain parameters, and checked for holes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from .router_view import workers_of

ROLES = ("prefill", "decode", "regular", "router")
#: What the plan gives, by its kind: an entry that was made by hand may hold anything.
_SHAPES: tuple[tuple[str, Any, tuple[str, ...]], ...] = (
    ("a list", list, ("argv", "gpus", "ports", "credentials")),
    ("an object", Mapping, ("environment", "peers", "expect", "model", "paths", "render")),
    ("a number of seconds", (int, float), ("start_budget_seconds",)),
)
_NEEDED = ("instance", "unit", "role", "address", "port", "url")


def run_file(entry: Mapping[str, Any], kind: str, invocation: str) -> str:
    """Where something is kept of one run (``kind``: ``starts`` or ``proofs``); empty where the entry names no state directory."""
    state = (entry.get("paths") or {}).get("state")
    return f"{state}/{kind}/{invocation}.json" if state and invocation else ""


def problems(entry: Any) -> list[str]:
    """What an entry lacks, as text; empty for one that can be checked."""
    if not isinstance(entry, Mapping):
        return [f"an entry is an object of the plan, not {type(entry).__name__}"]
    name = entry.get("instance") or entry.get("unit") or "an entry"
    lines = [f"{name}: {key} is missing" for key in _NEEDED if entry.get(key) in (None, "")]
    if entry.get("role") not in (None, *ROLES):
        lines.append(f"{name}: role is {entry['role']!r}, expected one of {', '.join(ROLES)}")
    for expected, kind, keys in _SHAPES:
        wrong = [key for key in keys if entry.get(key) is not None and not isinstance(entry[key], kind)]
        lines += [f"{name}: {key} is {type(entry[key]).__name__}, expected {expected}" for key in wrong]
    lists = [("credentials", Mapping, "objects with name and path"), ("argv", list, "lists of words")]
    for key, item, expected in lists:
        if isinstance(entry.get(key), list) and not all(isinstance(part, item) for part in entry[key]):
            lines.append(f"{name}: {key} holds something else than {expected}")
    port = entry.get("port")
    if port not in (None, "") and not _is_port(port):
        lines.append(f"{name}: port is {port!r}, expected a number from 1 to 65535")
    if entry.get("role") == "prefill" and not _is_port(entry.get("bootstrap_port")):
        lines.append(f"{name}: a prefill needs its bootstrap_port, not {entry.get('bootstrap_port')!r}")
    return lines


def _is_port(value: Any) -> bool:
    return str(value).isdigit() and 0 < int(value) < 65536


def parameter_problems(parameters: Mapping[str, Any]) -> list[str]:
    """What is wrong with the plain parameters, as text, before an entry is made from them."""
    prefills, decodes = parameters.get("prefill_workers") or [], parameters.get("decode_workers") or []
    return workers_of(prefills, decodes)[1] if prefills or decodes else []


def from_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """An entry from the plain parameters of a module. What is not given is not expected, and so not compared."""
    role = parameters["role"]
    host = str(parameters["address"])
    address = f"[{host}]" if ":" in host else host
    unit = str(parameters["unit"])
    unit = unit if unit.endswith(".service") else f"{unit}.service"
    expect = {
        "disaggregation_mode": {"router": None, "regular": "null"}.get(role, role),
        **{key: parameters.get(key) for key in ("served_name", "model_path", "version", "tp_size")},
    }
    credential = parameters.get("credential_path")
    return {
        "instance": parameters.get("instance") or unit[: -len(".service")],
        "unit": unit,
        "role": role,
        "address": host,
        "port": parameters["port"],
        "url": f"http://{address}:{parameters['port']}",
        "bootstrap_port": parameters.get("bootstrap_port"),
        "served_name": parameters.get("served_name"),
        "device": parameters.get("device"),
        "gpus": list(parameters.get("gpus") or []),
        "argv": [],
        "environment": {},
        "credentials": [{"name": "api-key", "path": credential}] if credential else [],
        "peers": {kind: [_peer(url) for url in parameters.get(f"{kind}_workers") or []] for kind in ("prefill", "decode")},
        "expect": {key: value for key, value in expect.items() if value is not None},
        "paths": {"state": parameters["state_dir"]} if parameters.get("state_dir") else {},
        "start_budget_seconds": parameters.get("timeout") or 1800,
        "render": {"digest": parameters.get("render_digest")},
    }


def _peer(text: str) -> dict[str, Any]:
    """``http://address:port`` or, for a prefill, ``http://address:port bootstrap-port``, as on a router's command line."""
    url, _blank, bootstrap = text.partition(" ")
    parts = urlsplit(url)
    return {
        "host": parts.hostname,
        "instance": url,
        "url": url,
        "address": parts.hostname,
        "port": parts.port,
        "bootstrap_port": int(bootstrap) if bootstrap.strip().isdigit() else None,
    }
