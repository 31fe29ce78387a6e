# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A router's workers against the planned ones: every difference, named. Pure.

``/health`` of a router says that it runs; ``/readiness`` counts only what has registered, and takes a prefill that is
really a decode. So ``/workers`` is compared with the plan, one worker at a time. smg keeps what a worker says of itself
under ``labels``, sglang-router 0.3.2 under ``metadata``. A worker is read once, when it registers.

What a router says of a worker's health can be a minute old (``--health-check-interval-secs``, 60). So what each planned worker
says of itself at this moment is compared with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..signals.base import FAILED, PASSED, PENDING, UNKNOWN
from .addresses import bad_address, normal

#: What a finding is about, as one word each.
MISSING = "missing"
GIVEN_UP = "given_up"
ROLE = "role"
MODE = "mode"
SWAPPED = "roles_swapped"
BOOTSTRAP_PORT = "bootstrap_port"
MODEL = "model"
UNHEALTHY = "unhealthy"
BREAKER = "breaker"
SURPLUS = "surplus"
SILENT = "silent"
NOT_READY = "not_ready"
NOT_TOLD = "not_told"
READINESS = "readiness"
NOTHING_THERE = "nothing_there"
NO_ANSWER = "no_answer"
WRONG_KEY = "wrong_key"
KEY_UNREADABLE = "key_unreadable"
NOTHING_PLANNED = "nothing_planned"

#: Worst first.
_ORDER = (FAILED, UNKNOWN, PENDING)
#: ``smg_worker_cb_state``, in both routers: 0 closed, 1 open, 2 half open.
_BREAKER = re.compile(r'^smg_worker_cb_state\{[^}]*worker="([^"]+)"[^}]*\} ([0-9.]+)', re.M)
_BREAKER_STATES = {0: "closed", 1: "open", 2: "half open"}
#: sglang-router and smg may register each data-parallel rank of a server as ``URL@rank`` (``--dp-aware``).
_RANK = re.compile(r"@\d+$")
#: What sglang-router registers where it could not read the worker's name, for example for lack of its key.
UNREAD_MODEL = "unknown"


@dataclass(frozen=True)
class Finding:
    """One thing that is not as planned. ``kind`` is one of the words above, ``state`` a signal's (pending: waiting may help);
    ``worker`` and ``role`` are those of the planned worker, and empty where it is the router itself. ``text`` is for people."""

    kind: str
    state: str
    text: str
    worker: str = ""
    role: str = ""
    observed: Any = None
    expected: Any = None

    def as_dict(self) -> dict[str, Any]:
        """Plain data for a module's result."""
        return asdict(self)


@dataclass(frozen=True)
class OwnWord:
    """What a worker said at its own ``/ready``: its status, 0 where no answer came; then ``problem`` says why."""

    status: int
    problem: str = ""

    @property
    def text(self) -> str:
        """For a result."""
        return f"/ready {self.status}" if self.status else self.problem


def worst(findings: Sequence[Finding]) -> str:
    """The state of the worst finding; passed where there is none."""
    return next((state for state in _ORDER if any(finding.state == state for finding in findings)), PASSED)


def bad_peers(entry: Mapping[str, Any]) -> list[str]:
    """What keeps a router's plan entry from naming its workers; empty where nothing does."""
    name, peers = entry.get("instance"), entry.get("peers") or {}
    bad = []
    for role in ("prefill", "decode"):
        listed = peers.get(role) or []
        if not isinstance(listed, Sequence) or isinstance(listed, str):
            return [f"{name}: peers.{role} is {type(listed).__name__}, expected a list"]
        for peer in listed:
            url = peer.get("url") if isinstance(peer, Mapping) else None
            bad.append(bad_address(f"{name}: url of a {role} in peers", url))
    if not any(peers.get(role) for role in ("prefill", "decode")):
        bad.append(f"{name}: peers names no prefill and no decode, so there is nothing to compare with")
    return [text for text in bad if text]


def planned_workers(entry: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The workers the router must have: URL → role and bootstrap port."""
    peers = entry.get("peers") or {}
    return {
        normal(peer["url"]): {"role": role, "bootstrap_port": peer.get("bootstrap_port") if role == "prefill" else None}
        for role in ("prefill", "decode")
        for peer in peers.get(role) or []
    }


def workers_of(prefills: Sequence[str], decodes: Sequence[str]) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Planned workers from text, ``http://address:port bootstrap-port`` for a prefill and ``http://address:port`` for a decode.

    :returns: URL → role and bootstrap port, and what is wrong with the text.
    """
    planned: dict[str, dict[str, Any]] = {}
    bad: list[str] = []
    for role, texts in (("prefill", prefills), ("decode", decodes)):
        for text in texts:
            url, _blank, rest = str(text).strip().partition(" ")
            rest = rest.strip()
            port = int(rest) if rest.isdigit() and 0 < int(rest) < 65536 else None
            problem = bad_address(f"an element of {role}_workers", url)
            if not problem and role == "prefill" and port is None:
                problem = f"prefill_workers holds {text!r}, expected a bootstrap port behind the address: 'http://address:port 8998'"
            if not problem and role == "decode" and rest:
                problem = f"decode_workers holds {text!r}, expected http://address:port alone: a decode has no bootstrap port"
            if not problem and normal(url) in planned:
                problem = f"{normal(url)} is given twice"
            if problem:
                bad.append(problem)
            else:
                planned[normal(url)] = {"role": role, "bootstrap_port": port}
    if not planned and not bad:
        bad.append("no worker is given: prefill_workers and decode_workers say what the router must have")
    return planned, bad


def metrics_url(entry: Mapping[str, Any]) -> str:
    """Where the router of a plan entry shows its breakers; empty where the plan has no metrics port."""
    ports = [item for item in entry.get("ports") or [] if item.get("purpose") == "metrics"]
    if not ports:
        return ""
    address = str(ports[0].get("address") or entry["address"])
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(address, f"[{address}]" if ":" in address else address)
    return f"http://{host}:{ports[0]['port']}/metrics"


def worker_facts(body: Any) -> list[dict[str, Any]]:
    """What ``/workers`` says of each worker, from either router, in one shape.

    ``mode`` is the worker's own disaggregation mode, None where the router does not tell it.
    """
    workers = body.get("workers") if isinstance(body, Mapping) else None
    facts = []
    for worker in workers if isinstance(workers, list) else []:
        if not isinstance(worker, Mapping):
            continue
        told: Mapping[str, Any] = next((worker[name] for name in ("labels", "metadata") if isinstance(worker.get(name), Mapping)), {})
        facts.append(
            {
                "url": _RANK.sub("", normal(worker.get("url", ""))),
                "role": worker.get("worker_type"),
                "mode": told.get("disaggregation_mode"),
                "model": worker.get("model_id") or told.get("served_model_name"),
                "bootstrap_port": worker.get("bootstrap_port"),
                "healthy": worker.get("is_healthy"),
            }
        )
    return facts


def breaker_states(exposition: str) -> dict[str, int]:
    """Worker's URL → state of its circuit breaker, from the text of the router's metrics. A router that has had no failure may name none."""
    return {_RANK.sub("", normal(url)): int(float(value)) for url, value in _BREAKER.findall(exposition)}


def compare(
    planned: Mapping[str, Mapping[str, Any]], have: Sequence[Mapping[str, Any]], served_name: str, given_up: Sequence[str] = ()
) -> list[Finding]:
    """Every way in which the router's workers are not the plan's.

    A worker that has not come yet may come; one that the router has given up (``given_up``: its log lines that say so)
    never will. What a router once read of a worker stays, so a wrong role, mode, port or model is a failure.
    """
    findings: list[Finding] = []
    for url, plan in planned.items():
        role = plan["role"]
        records = [worker for worker in have if worker["url"] == url]
        for worker in records:
            findings += _differences(url, plan, worker, served_name)
        if records:
            continue
        text = f"the {role} {url} is missing"
        if any(re.search(re.escape(url) + r"(?!\d)", line) for line in given_up):
            findings.append(Finding(GIVEN_UP, FAILED, f"{text}: the router has given it up for good", url, role))
        else:
            findings.append(Finding(MISSING, PENDING, f"{text} so far", url, role))
    for url in dict.fromkeys(worker["url"] for worker in have if worker["url"] not in planned):
        roles = "/".join(dict.fromkeys(str(worker["role"]) for worker in have if worker["url"] == url))
        findings.append(Finding(SURPLUS, FAILED, f"{url} ({roles}) is not in the plan", url, roles))
    # Each rank of a data-parallel server says the same.
    return _swapped([item for number, item in enumerate(findings) if item not in findings[:number]])


def _differences(url: str, plan: Mapping[str, Any], worker: Mapping[str, Any], served_name: str) -> list[Finding]:
    role = plan["role"]
    who = f"the {role} {url}"
    findings = []
    if worker["role"] != role:
        findings.append(Finding(ROLE, FAILED, f"{who} is registered as {worker['role']}", url, role, worker["role"], role))
    elif role == "prefill" and worker["bootstrap_port"] is None:
        # Without one, each request reaches the prefill with `bootstrap_port: null`; /readiness is 200 all the same.
        wanted = f", planned {plan['bootstrap_port']}" if plan["bootstrap_port"] else ""
        findings.append(Finding(BOOTSTRAP_PORT, FAILED, f"{who} has no bootstrap port{wanted}", url, role, None, plan["bootstrap_port"]))
    elif plan["bootstrap_port"] not in (None, worker["bootstrap_port"]):
        text = f"{who} has bootstrap port {worker['bootstrap_port']}, planned {plan['bootstrap_port']}"
        findings.append(Finding(BOOTSTRAP_PORT, FAILED, text, url, role, worker["bootstrap_port"], plan["bootstrap_port"]))
    if worker["mode"] is None:
        findings.append(Finding(NOT_TOLD, UNKNOWN, f"{who}: the router does not tell its own mode", url, role, None, role))
    elif worker["mode"] != role:
        text = f"{who} runs as {worker['mode']} (its own disaggregation mode)"
        findings.append(Finding(MODE, FAILED, text, url, role, worker["mode"], role))
    if served_name and worker["model"] != served_name:
        why = ": the router could not read its name, has it the workers' key?" if worker["model"] == UNREAD_MODEL else ""
        text = f"{who} has model {worker['model']!r} in the router, planned {served_name!r}{why}"
        findings.append(Finding(MODEL, FAILED, text, url, role, worker["model"], served_name))
    if worker["healthy"] is not True:
        findings.append(Finding(UNHEALTHY, PENDING, f"{who} is not healthy in the router", url, role, worker["healthy"], True))
    return findings


def _swapped(findings: list[Finding]) -> list[Finding]:
    """A prefill taken for a decode and a decode taken for a prefill are one mistake, and get its name."""
    for kind in (ROLE, MODE):
        pairs = [(item.expected, item.observed) for item in findings if item.kind == kind]
        if ("prefill", "decode") in pairs and ("decode", "prefill") in pairs:
            findings = [replace(item, kind=SWAPPED, text=f"roles swapped: {item.text}") if item.kind == kind else item for item in findings]
    return findings


def breakers(states: Mapping[str, int], planned: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    """Circuit breakers that are not closed."""
    findings = []
    for url, value in states.items():
        if not value:
            continue
        role = str(planned.get(url, {}).get("role", ""))
        word = _BREAKER_STATES.get(value, str(value))
        who = f"the {role} {url}" if role else url
        text = f"the circuit breaker of {who} is {word} (it closes after about a minute)"
        findings.append(Finding(BREAKER, PENDING, text, url, role, word, "closed"))
    return findings


def contradictions(planned: Mapping[str, Mapping[str, Any]], have: Sequence[Mapping[str, Any]], words: Mapping[str, OwnWord]) -> list[Finding]:
    """Workers that do not answer, or that say of themselves that they are not ready, whatever the router counts.

    404 is a release without ``/ready``, 401 and 403 a server that wants a key for it: alive, and not judged.
    """
    healthy = {worker["url"] for worker in have if worker["healthy"] is True}
    findings = []
    for url, word in words.items():
        role = str(planned[url]["role"])
        though = ", though the router counts it as healthy" if url in healthy else ""
        if not word.status:
            text = f"the {role} {url} does not answer{though} ({word.problem})"
            findings.append(Finding(SILENT, PENDING, text, url, role, word.problem, "/ready 200"))
        elif word.status not in (200, 401, 403, 404):
            text = f"the {role} {url} says that it is not ready{though} ({word.text})"
            findings.append(Finding(NOT_READY, PENDING, text, url, role, word.text, "/ready 200"))
    return findings
