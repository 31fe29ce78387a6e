# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The router signal: its workers are the plan's, each in its own role, with its bootstrap port and model, all healthy.

``/health`` of a router says that it runs; ``/readiness`` counts only what has registered, and takes a prefill that is
really a decode. So ``/workers`` is compared with the plan, one worker at a time. smg keeps what a worker says of itself
under ``labels``, sglang-router 0.3.2 under ``metadata``. A worker is read once, when it registers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..host.credentials import CredentialError
from ..host.http import HttpError
from .base import FAILED, PASSED, PENDING, UNKNOWN, Context, Signal
from .ownership import FOREIGN, NOBODY, OWN, owner

NAME = "router"
PROVES = "the router has exactly the planned workers, each in its own role and healthy, and takes requests"

_BREAKER = re.compile(r'^smg_worker_cb_state\{[^}]*worker="([^"]+)"[^}]*\} ([0-9.]+)', re.M)
_ORDER = (FAILED, UNKNOWN, PENDING)


def observe(context: Context) -> Signal:
    """Ask ``/readiness`` and ``/workers``, and the breakers where the plan has a metrics port."""
    planned = planned_workers(context.entry)
    facts: dict[str, Any] = {}

    def say(state: str, observed: str, then: str = "") -> Signal:
        expected = f"/readiness 200, {len(planned)} planned workers healthy: {', '.join(sorted(planned))}"
        return context.signal(NAME, state, observed, expected, PROVES, then, **facts)

    port = int(context.entry["port"])
    for moment in ("before", "after"):
        holder = owner(context, port, str(context.entry["address"]))
        if holder.state == NOBODY:
            return say(PENDING, "connection refused")
        if holder.state != OWN:
            return say(FAILED if holder.state == FOREIGN else UNKNOWN, f"not asked: {holder.text}", f"ss -ltnp 'sport = :{port}'")
        if moment == "before":
            outcome = _ask(context, planned, facts)
    return say(*outcome)


def _ask(context: Context, planned: Mapping[str, Mapping[str, Any]], facts: dict[str, Any]) -> tuple[str, str, str]:
    look = f"curl -m 5 {context.url}/workers"
    try:
        readiness = context.host.request(f"{context.url}/readiness")
        workers = context.host.request(f"{context.url}/workers", credential=context.credential)
        if workers.refused_key:
            return UNKNOWN, f"/workers answered {workers.status}: alive, but the key is wrong or missing", look
        if workers.status != 200:
            return PENDING if workers.status >= 500 else UNKNOWN, f"/workers answered {workers.status}: {workers.text(80)}", look
        have = worker_facts(workers.json())
    except HttpError as error:
        return PENDING, str(error), look
    except CredentialError as error:
        return UNKNOWN, str(error), "the credentials of the group are written by the router's role"
    facts["workers"] = have
    given_up = [hit.line for hit in context.log.notes if hit.row.name == "worker-given-up"]
    findings = compare(planned, have, str(context.entry.get("served_name") or ""), given_up)
    breakers = _breakers(context, facts)
    if breakers:
        findings.append(breakers)
    if readiness.status != 200:
        findings.append((PENDING, f"/readiness answered {readiness.status}: {readiness.text(80)}"))
    if not findings:
        return PASSED, f"/readiness 200, {len(have)} workers as planned", ""
    worst = next(state for state in _ORDER if any(finding[0] == state for finding in findings))
    text = "; ".join(finding[1] for finding in findings)
    restart = f"{look}; a router reads a worker once: systemctl restart {context.unit.unit}"
    return worst, text, restart if worst == FAILED else look


def planned_workers(entry: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The workers the router must have: URL → role and bootstrap port."""
    peers = entry.get("peers") or {}
    return {
        normal(peer["url"]): {"role": role, "bootstrap_port": peer.get("bootstrap_port") if role == "prefill" else None}
        for role in ("prefill", "decode")
        for peer in peers.get(role) or []
    }


def normal(url: str) -> str:
    """A worker's URL without the slash that some releases append."""
    return str(url).rstrip("/")


def worker_facts(body: Any) -> list[dict[str, Any]]:
    """What ``/workers`` says of each worker, from either router, in one shape.

    ``mode`` is the worker's own disaggregation mode, None where the router does not tell it.
    """
    workers = body.get("workers") if isinstance(body, dict) else None
    facts = []
    for worker in workers if isinstance(workers, list) else []:
        told = worker.get("labels") or worker.get("metadata") or {}
        facts.append(
            {
                "url": normal(worker.get("url", "")),
                "role": worker.get("worker_type"),
                "mode": told.get("disaggregation_mode"),
                "model": worker.get("model_id") or told.get("served_model_name"),
                "bootstrap_port": worker.get("bootstrap_port"),
                "healthy": worker.get("is_healthy"),
            }
        )
    return facts


def compare(
    planned: Mapping[str, Mapping[str, Any]], have: Sequence[Mapping[str, Any]], served_name: str, given_up: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """Every way in which the router's workers are not the plan's: (state, text) each.

    A worker that has not come yet may come; one that the router has given up (``given_up``: its log lines that say so)
    never will. What a router once read of a worker stays, so a wrong role, mode, port or model is a failure.
    """
    findings: list[tuple[str, str]] = []
    by_url = {worker["url"]: worker for worker in have}
    for url, plan in planned.items():
        worker = by_url.get(url)
        if worker is None:
            lost = any(re.search(re.escape(url) + r"(?!\d)", line) for line in given_up)
            text = f"the {plan['role']} {url} is missing"
            findings.append((FAILED, f"{text}: the router has given it up for good") if lost else (PENDING, f"{text} so far"))
            continue
        for name, wanted in (("role", plan["role"]), ("mode", plan["role"]), ("bootstrap_port", plan["bootstrap_port"]), ("model", served_name or None)):
            seen = worker[name]
            if wanted is None or seen == wanted:
                continue
            if name == "mode" and seen is None:
                findings.append((UNKNOWN, f"{url}: the router does not tell its own mode"))
            else:
                findings.append((FAILED, f"{url}: {name} is {seen!r}, planned {wanted!r}"))
        if worker["healthy"] is not True:
            findings.append((PENDING, f"{url} is not healthy"))
    findings += [(FAILED, f"{worker['url']} ({worker['role']}) is not in the plan") for worker in have if worker["url"] not in planned]
    return findings


def _breakers(context: Context, facts: dict[str, Any]) -> tuple[str, str] | None:
    """Circuit breakers that are not closed (``smg_worker_cb_state``: 0 closed, 1 open, 2 half open)."""
    ports = [item for item in context.entry.get("ports") or [] if item.get("purpose") == "metrics"]
    if not ports:
        return None
    address = ports[0].get("address") or context.entry["address"]
    try:
        ipv6 = ":" in address
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(address, f"[{address}]" if ipv6 else address)
        answer = context.host.request(f"http://{host}:{ports[0]['port']}/metrics")
    except HttpError as error:
        return UNKNOWN, f"the breakers could not be read from the metrics port {ports[0]['port']}: {error}"
    if answer.status != 200:
        return UNKNOWN, f"the metrics port {ports[0]['port']} answered {answer.status}"
    states = {url: int(float(value)) for url, value in _BREAKER.findall(answer.body.decode("utf-8", "replace"))}
    facts["breakers"] = states
    opened = [url for url, value in states.items() if value]
    return (PENDING, f"the circuit breaker is not closed for {', '.join(opened)} (it closes after about a minute)") if opened else None
