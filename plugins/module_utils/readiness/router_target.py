# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A router to look at, from a module's parameters; and what was found there, for a module's result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..host.credentials import Credential, Redactor
from ..signals.base import PASSED
from ..signals.router import Target, View
from . import router_view as view
from .addresses import bad_address, normal
from .instance_entry import problems
from .served_model import bad_name


def target_of(parameters: Mapping[str, Any]) -> tuple[Target, list[str]]:
    """What to look at, from a plan entry or from plain parameters, and what is wrong with them."""
    entry = parameters["router"]
    if entry is None:
        planned, bad = view.workers_of(parameters["prefill_workers"] or [], parameters["decode_workers"] or [])
        bad = [text for text in (bad_address("url", parameters["url"]),) if text] + bad
        if parameters["served_name"] is not None:
            bad += [text for text in (bad_name(parameters["served_name"]),) if text]
        if parameters["metrics_url"]:
            bad += [text for text in (bad_address("metrics_url", parameters["metrics_url"], path=True),) if text]
        path = parameters["credential_path"]
        key = Credential(path) if path else None
        return Target(normal(parameters["url"]), planned, parameters["served_name"] or "", parameters["metrics_url"] or "", key), bad
    bad = problems(entry)
    if not bad and entry["role"] != "router":
        bad = [f"router is {entry['instance']!r} with role {entry['role']!r}, expected a router's entry of the plan"]
    bad = bad or view.bad_peers(entry)
    if bad:
        return Target("", {}), bad
    bad = [text for text in (bad_address(f"url of {entry['instance']}", entry["url"]),) if text]
    return Target.of(entry), bad


def result_of(seen: View, redactor: Redactor) -> dict[str, Any]:
    """What was found, as plain data without secrets."""

    def clean(value: Any) -> Any:
        if isinstance(value, str):
            return redactor.text(value)
        if isinstance(value, dict):
            return {clean(name): clean(item) for name, item in value.items()}
        return [clean(item) for item in value] if isinstance(value, list) else value

    found: dict[str, Any] = clean({"readiness": seen.ready, "state": view.worst(seen.findings), **seen.as_dict()})
    return found


def text_of(who: str, found: Mapping[str, Any], steps: list[str]) -> str:
    """One line where all is as planned, else one for each finding and each step."""
    if found["state"] == PASSED:
        unjudged = "" if found["breakers"] is not None else "; the breakers were not judged: no metrics address is given"
        return f"{who}: {len(found['workers'])} workers as planned, /readiness 200{unjudged}"
    lines = [f"{who}: {item['text']}" for item in found["findings"]]
    return "\n".join(lines + [f"  next: {step}" for step in steps])
