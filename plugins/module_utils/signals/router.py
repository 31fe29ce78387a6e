# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The router signal: its workers are the plan's, each in its own role, with its bootstrap port and model, all healthy.

What it asks is judged in readiness/router_view.py. Each planned worker is asked at its own ``/ready`` too: what the router
says of its health can be a minute old. ``/ready`` is a flag (srt/entrypoints/http_server.py:714), needs no key and generates nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from ..host.credentials import Credential, CredentialError
from ..host.http import REFUSED, HttpError, Response
from ..host.local import LocalHost
from ..readiness import router_view as view
from ..readiness.addresses import normal
from ..readiness.router_view import Finding, OwnWord
from .base import FAILED, PASSED, PENDING, UNKNOWN, Context, Signal, key_path
from .ownership import FOREIGN, NOBODY, OWN, owner

NAME = "router"
PROVES = "the router has exactly the planned workers, each in its own role and healthy, and takes requests; and each of them answers"

#: Seconds for one question. All workers are asked at once, up to this many, so that dead ones cost one time-out together.
ASK_SECONDS = 5.0
ASK_AT_ONCE = 32


@dataclass(frozen=True)
class Target:
    """A router to look at. ``planned``: URL → role and bootstrap port; ``served_name`` is not compared where it is empty;
    ``metrics_url`` shows its breakers, which are not judged where it is empty; ``given_up`` are its log lines that say that it has
    given a worker up."""

    url: str
    planned: Mapping[str, Mapping[str, Any]]
    served_name: str = ""
    metrics_url: str = ""
    credential: Credential | None = None
    given_up: Sequence[str] = ()

    @classmethod
    def of(cls, entry: Mapping[str, Any], given_up: Sequence[str] = ()) -> Target:
        """The router of a plan entry."""
        path = key_path(entry)
        name = str(entry.get("served_name") or "")
        return cls(normal(entry["url"]), view.planned_workers(entry), name, view.metrics_url(entry), Credential(path) if path else None, given_up)


@dataclass
class View:
    """What was found. ``ready`` is the status of ``/readiness`` (0: no answer); ``workers``, ``breakers`` and ``words`` (what each planned
    worker said of itself) are None where they were not asked for or not told."""

    ready: int = 0
    workers: list[dict[str, Any]] | None = None
    breakers: dict[str, int] | None = None
    words: dict[str, OwnWord] | None = None
    findings: list[Finding] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for a signal's details and a module's result."""
        return {
            "workers": self.workers,
            "breakers": self.breakers,
            "own_words": None if self.words is None else {url: word.text for url, word in self.words.items()},
            "findings": [finding.as_dict() for finding in self.findings],
        }


def observe(context: Context) -> Signal:
    """Ask ``/readiness`` and ``/workers``, the breakers where the plan has a metrics port, and each planned worker."""
    given_up = [hit.line for hit in context.log.notes if hit.row.name == "worker-given-up"]
    target = Target.of(context.entry, given_up)
    expected = f"/readiness 200, {len(target.planned)} planned workers healthy: {', '.join(sorted(target.planned))}"
    seen = View()

    def say(state: str, observed: str, then: str = "") -> Signal:
        return context.signal(NAME, state, observed, expected, PROVES, then, **seen.as_dict())

    port = int(context.entry["port"])
    for moment in ("before", "after"):
        holder = owner(context, port, str(context.entry["address"]))
        if holder.state == NOBODY:
            return say(PENDING, "connection refused")
        if holder.state != OWN:
            return say(FAILED if holder.state == FOREIGN else UNKNOWN, f"not asked: {holder.text}", f"ss -ltnp 'sport = :{port}'")
        if moment == "before":
            seen = look(context.host, target)
    state = view.worst(seen.findings)
    if state == PASSED:
        return say(PASSED, f"/readiness 200, {len(seen.workers or [])} workers as planned")
    return say(state, "; ".join(finding.text for finding in seen.findings), "; ".join(advice(context.url, seen.findings, context.unit.unit)))


def look(host: LocalHost, target: Target) -> View:
    """Ask a router, its metrics and its planned workers once, and compare. Never raises for what they answer."""
    seen = View()
    if not target.planned:
        seen.findings.append(Finding(view.NOTHING_PLANNED, UNKNOWN, "the plan names no worker of this router, so there is nothing to compare with"))
        return seen
    readiness = _ask_router(host, target, seen)
    if readiness is None or seen.workers is None:
        return seen
    seen.findings += view.compare(target.planned, seen.workers, target.served_name, target.given_up)
    if target.metrics_url:
        _ask_breakers(host, target, seen)
    seen.words = own_words(host, list(target.planned))
    seen.findings += view.contradictions(target.planned, seen.workers, seen.words)
    if readiness.status != 200:
        text = f"/readiness answered {readiness.status}: {readiness.text(80)}"
        seen.findings.append(Finding(view.READINESS, PENDING, text, observed=readiness.status, expected=200))
    return seen


def _ask_router(host: LocalHost, target: Target, seen: View) -> Response | None:
    """The answer to ``/readiness``; what ``/workers`` says goes into ``seen``, or why it says nothing."""

    def no(kind: str, state: str, text: str, observed: Any = None) -> None:
        seen.findings.append(Finding(kind, state, text, observed=observed))

    try:
        readiness = host.request(f"{target.url}/readiness", total=ASK_SECONDS)
        seen.ready = readiness.status
        workers = host.request(f"{target.url}/workers", credential=target.credential, total=ASK_SECONDS)
        if workers.refused_key:
            no(view.WRONG_KEY, UNKNOWN, f"/workers answered {workers.status}: alive, but the key is wrong or missing", workers.status)
            return readiness
        if workers.status != 200:
            state = PENDING if workers.status >= 500 else UNKNOWN
            no(view.NO_ANSWER, state, f"/workers answered {workers.status}: {workers.text(80)}", workers.status)
            return readiness
        body = workers.json()
        if not isinstance(body, dict) or not isinstance(body.get("workers"), list):
            no(view.NO_ANSWER, UNKNOWN, f"/workers answered no list of workers: {workers.text(80)}")
            return readiness
        seen.workers = view.worker_facts(body)
        return readiness
    except HttpError as error:
        no(view.NOTHING_THERE if error.kind == REFUSED else view.NO_ANSWER, PENDING, f"{target.url}: {error}", error.kind)
    except CredentialError as error:
        no(view.KEY_UNREADABLE, UNKNOWN, str(error))
    return None


def _ask_breakers(host: LocalHost, target: Target, seen: View) -> None:
    """The breakers, or a finding that says that they could not be read."""
    try:
        answer = host.request(target.metrics_url, total=ASK_SECONDS)
    except HttpError as error:
        text = f"the breakers could not be read from {target.metrics_url}: {error}"
        seen.findings.append(Finding(view.BREAKER, UNKNOWN, text, expected="closed"))
        return
    if answer.status != 200:
        text = f"the breakers could not be read: {target.metrics_url} answered {answer.status}"
        seen.findings.append(Finding(view.BREAKER, UNKNOWN, text, observed=answer.status, expected="closed"))
        return
    seen.breakers = view.breaker_states(answer.body.decode("utf-8", "replace"))
    seen.findings += view.breakers(seen.breakers, target.planned)


def own_words(host: LocalHost, urls: Sequence[str]) -> dict[str, OwnWord]:
    """What each worker says at its own ``/ready``, all asked at once."""

    def ask(url: str) -> OwnWord:
        try:
            return OwnWord(host.request(f"{url}/ready", total=ASK_SECONDS).status)
        except HttpError as error:
            return OwnWord(0, str(error))

    if not urls:
        return {}
    with ThreadPoolExecutor(max_workers=min(ASK_AT_ONCE, len(urls))) as pool:
        return dict(zip(urls, pool.map(ask, urls)))


def advice(url: str, findings: Sequence[Finding], unit: str = "", credential_path: str = "") -> list[str]:
    """What to do about findings, the most useful first. ``unit`` is the router's, where it is known."""
    kinds = {finding.kind for finding in findings}
    steps: list[str] = []
    if kinds & {view.WRONG_KEY}:
        where = f"the key in {credential_path}" if credential_path else "the key"
        steps.append(f"compare {where} with the one the router was started with")
    if kinds & {view.KEY_UNREADABLE}:
        steps.append("run this as root, or as a member of the service group; the router's role writes the file")
    if kinds & {view.NOTHING_THERE}:
        steps.append(f"systemctl status {unit}" if unit else "see whether the router runs")
    steps += [f"look at the {item.role}: curl -m 5 {item.worker}/ready" for item in findings if item.kind in (view.SILENT, view.NOT_READY)]
    if kinds - {view.NOTHING_THERE, view.KEY_UNREADABLE, view.SILENT, view.NOT_READY}:
        steps.append(f"curl -m 5 {url}/workers")
    if any(finding.state == FAILED for finding in findings):
        steps.append(f"a router reads a worker once: {'systemctl restart ' + unit if unit else 'restart it with the planned workers'}")
    return steps
