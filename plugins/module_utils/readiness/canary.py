# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The canary: one completion through a router, and what it moved from a prefill to a decode.

Only this proves the transfer: each server's own health check uses a stand-in for its peer. The evidence is in the counters of
the prefills: ``kv_transfer_total_mb`` (a histogram in MiB, srt/observability/req_time_stats.py:981) grows by the prompt's
cache for every real transfer and for no health probe (srt/disaggregation/prefill.py leaves the stand-in out). A decode's
``kv_transfer_bootstrap_ms`` and ``kv_transfer_alloc_ms`` move with every health probe and prove nothing.

One try: a request that fails counts against the breakers of both workers, which then stay open for a minute.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ..host.credentials import Credential, CredentialError, Redactor
from ..host.http import HttpError, Response
from ..host.local import LocalHost
from ..signals.base import argument

MIB = 1 << 20
#: The router's own default (--cb-timeout-duration-secs).
BREAKER_SECONDS = 60.0
#: How long the prefill's counters may take to show a transfer that is over, and the pause between two looks.
SETTLE_SECONDS = 10.0
SETTLE_PAUSE = 0.5

_WORDS = ["plumb", "line", "river", "stone", "copper", "window", "morning", "ladder", "harvest", "signal", "copper", "valley", "engine", "meadow", "lantern"]
#: ``sglang:name`` or ``sglang_name`` (the prefix has changed between releases), its labels, its value.
_SAMPLE = re.compile(r"^sglang[:_]([a-z_]+)(?:\{[^}]*\})? ([0-9.eE+-]+)$", re.M)


class CanaryError(Exception):
    """The canary cannot be sent, or a counter cannot be read: what was seen, what was expected, what to do next."""

    def __init__(self, seen: str, expected: str, then: str) -> None:
        super().__init__(f"seen: {seen}; expected: {expected}; next: {then}")
        self.next = then


@dataclass(frozen=True)
class Counters:
    """What one server has counted since it started. A counter that it has not printed yet is 0."""

    kv_bytes: float = 0.0
    transfers: float = 0.0
    bootstrap_failures: float = 0.0
    transfer_failures: float = 0.0
    generated_tokens: float = 0.0

    def __sub__(self, other: Counters) -> Counters:
        mine, theirs = asdict(self), asdict(other)
        return Counters(**{name: mine[name] - theirs[name] for name in mine})


@dataclass
class Report:
    """Everything a canary found out; ``problems`` is empty where it proved the way through. Bytes and seconds throughout."""

    group: str
    router: str
    request_id: str
    prompt: str
    reply: str = ""
    usage: dict[str, Any] = field(default_factory=dict)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    bytes_moved: int = 0
    bytes_expected: int | None = None
    seconds: float = 0.0
    prefill_used: list[str] = field(default_factory=list)
    decode_used: list[str] = field(default_factory=list)
    live_traffic: bool = False
    before: dict[str, dict[str, float]] = field(default_factory=dict)
    after: dict[str, dict[str, float]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    next: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Options:
    """How to ask. ``words`` makes a prompt of at least as many tokens; ``timeout`` is in seconds, None for what ``default_timeout``
    says; ``bytes_per_token`` is the KV cache that the reporting ranks of a prefill move for one prompt token, where it is known."""

    words: int = 200
    max_tokens: int = 8
    timeout: float | None = None
    bytes_per_token: float | None = None


def prompt_of(words: int, nonce: str) -> str:
    """A prompt that begins with a nonce, so that no prefix of it is in any cache."""
    return " ".join([nonce, *(_WORDS[number % len(_WORDS)] for number in range(max(1, words) - 1))])


def counters_of(text: str) -> Counters | None:
    """The counters in an exposition of ``/metrics``, summed over ranks; None where it is no exposition of SGLang."""
    sums: dict[str, float] = {}
    for name, value in _SAMPLE.findall(text):
        sums[name] = sums.get(name, 0.0) + float(value)
    if not sums:
        return None
    return Counters(
        kv_bytes=sums.get("kv_transfer_total_mb_sum", 0.0) * MIB,
        transfers=sums.get("kv_transfer_latency_ms_count", 0.0),
        bootstrap_failures=sums.get("num_bootstrap_failed_reqs_total", 0.0),
        transfer_failures=sums.get("num_transfer_failed_reqs_total", 0.0),
        generated_tokens=sums.get("generation_tokens_total", 0.0),
    )


def bodies_of(instances: Sequence[Mapping[str, Any]], group: str, role: str) -> list[Mapping[str, Any]]:
    """The group's instances of one role."""
    return [entry for entry in instances if entry["group"] == group and entry["role"] == role]


def breaker_window(router: Mapping[str, Any]) -> float:
    """Seconds for which the router's breaker stays open after a worker failed too often."""
    return float(argument(router, "--cb-timeout-duration-secs") or BREAKER_SECONDS)


def default_timeout(router: Mapping[str, Any]) -> float:
    """Seconds for the completion: well below the breaker window, so that a retry of the router's own is not still running when
    the breaker closes again, and never more than 45."""
    return min(45.0, 0.8 * breaker_window(router))


def refuse(router: Mapping[str, Any], instances: Sequence[Mapping[str, Any]], options: Options) -> list[str]:
    """Why this canary must not be sent, before anything is asked; empty where it may be."""
    lines = []
    if router.get("role") != "router":
        lines.append(f"router is {router.get('instance')!r} with role {router.get('role')!r}, expected a router's entry of the plan")
        return lines
    for role in ("prefill", "decode"):
        if not bodies_of(instances, router["group"], role):
            lines.append(f"instances hold no {role} of PD group {router['group']!r}: give all entries of the group")
    window = breaker_window(router)
    if options.timeout is not None and options.timeout >= window:
        lines.append(f"timeout is {options.timeout:g} s, expected less than the router's breaker window of {window:g} s")
    if options.max_tokens < 2:
        lines.append(f"max_tokens is {options.max_tokens}, expected 2 or more: the first token comes from the prefill")
    return lines


def growth(before: Mapping[str, Counters], after: Mapping[str, Counters]) -> dict[str, Counters]:
    """Server → what it counted between the two readings. A server that was restarted in between shows negative numbers."""
    return {name: after[name] - before[name] for name in before}


def judge(report: Report, prefills: Mapping[str, Counters], decodes: Mapping[str, Counters]) -> list[str]:
    """What contradicts a transfer, from the growth of each server's counters; empty where it is proved."""
    problems = []
    servers = {**prefills, **decodes}
    for name, grown in servers.items():
        if min(asdict(grown).values()) < 0:
            problems.append(f"{name}: its counters went back, so it was restarted during the canary")
        for what, count in (("bootstrap", grown.bootstrap_failures), ("transfer", grown.transfer_failures)):
            if count > 0:
                problems.append(f"{name}: {count:.0f} more {what} failures, expected none")
    if sum(grown.transfers for grown in prefills.values()) < 1:
        problems.append(f"no KV transfer was counted by {', '.join(prefills)}, expected one")
    expected = report.bytes_expected
    if report.bytes_moved <= 0 or (expected is not None and report.bytes_moved < expected):
        wanted = f"at least {expected}" if expected is not None else "more than 0"
        problems.append(f"{report.bytes_moved} bytes of KV cache left {', '.join(prefills)}, expected {wanted}")
    if report.completion_tokens < 2:
        problems.append(f"the decode gave {report.completion_tokens} tokens, expected 2 or more: it never ran a step of its own")
    return problems


def send(router: Mapping[str, Any], instances: Sequence[Mapping[str, Any]], options: Options, host: LocalHost) -> Report:
    """Read the counters, send one completion, read the counters again, judge.

    :raises CanaryError: where the canary could not be sent or its counters not be read.
    """
    nonce = secrets.token_hex(8)
    redactor = Redactor.of(item["path"] for item in router.get("credentials") or [])
    report = Report(str(router["group"]), str(router["instance"]), f"plumbline-canary-{nonce}", prompt_of(options.words, nonce))
    prefills = {_name(entry): entry for entry in bodies_of(instances, report.group, "prefill")}
    decodes = {_name(entry): entry for entry in bodies_of(instances, report.group, "decode")}
    servers = {**prefills, **decodes}
    before = {name: _read(entry, host) for name, entry in servers.items()}

    begun = host.monotonic()
    answer = _ask(router, report, options, host)
    report.seconds = round(host.monotonic() - begun, 3)
    if answer.status != 200:
        seen = redactor.text(f"the router answered {answer.status}: {answer.text(300)}")
        raise CanaryError(
            seen,
            "200 with a completion",
            f"curl -m 5 {router['url']}/workers; then the logs of the group's workers. The router names the prefill also where the "
            "decode is at fault. Wait for its breakers (about a minute) before the next try",
        )
    _take(report, answer)
    if options.bytes_per_token is not None:
        report.bytes_expected = round(options.bytes_per_token * report.prompt_tokens)

    deadline = host.monotonic() + SETTLE_SECONDS
    while True:
        after = {name: _read(entry, host) for name, entry in servers.items()}
        grown = growth(before, after)
        moved = sum(grown[name].kv_bytes for name in prefills)
        report.bytes_moved = round(moved)
        if (moved > 0 and report.bytes_moved >= (report.bytes_expected or 1)) or host.monotonic() >= deadline:
            break
        host.wait([], SETTLE_PAUSE)

    report.before = {name: asdict(value) for name, value in before.items()}
    report.after = {name: asdict(value) for name, value in after.items()}
    report.prefill_used = [name for name in prefills if grown[name].kv_bytes > 0]
    routed = answer.headers.get("x-smg-routed-worker-id", "").rstrip("/")
    by_url = [name for name, entry in decodes.items() if str(entry["url"]).rstrip("/") == routed]
    report.decode_used = by_url or [name for name in decodes if grown[name].generated_tokens > 0]
    # One request makes one transfer per reporting rank of one prefill; more servers or more tokens are somebody else's.
    report.live_traffic = len(report.prefill_used) > 1 or sum(grown[name].generated_tokens for name in decodes) > report.completion_tokens
    report.problems = judge(report, {name: grown[name] for name in prefills}, {name: grown[name] for name in decodes})
    report.reply = redactor.text(report.reply)
    if report.problems:
        report.next = [f"curl -m 5 {entry['url']}/metrics | grep kv_transfer" for entry in prefills.values()]
        report.next.append("look for 'transfer failed' or 'handshake failed' in the logs of the prefill and the decode")
    return report


def _name(entry: Mapping[str, Any]) -> str:
    return f"{entry['instance']}@{entry['host']}"


def _read(entry: Mapping[str, Any], host: LocalHost) -> Counters:
    url = f"{str(entry['url']).rstrip('/')}/metrics"
    try:
        answer = host.request(url, total=10.0)
    except HttpError as error:
        raise CanaryError(f"{_name(entry)}: {url}: {error}", "its counters", f"curl -m 10 {url}") from None
    found = counters_of(answer.body.decode("utf-8", "replace")) if answer.status == 200 else None
    if found is None:
        raise CanaryError(
            f"{_name(entry)}: {url} answered {answer.status} without SGLang's counters",
            "the counters that show a transfer",
            "start prefills and decodes with enable-metrics: true (the collection's default)",
        )
    return found


def _ask(router: Mapping[str, Any], report: Report, options: Options, host: LocalHost) -> Response:
    url = f"{str(router['url']).rstrip('/')}/v1/completions"
    timeout = options.timeout or default_timeout(router)
    keys = [item["path"] for item in router.get("credentials") or [] if item["name"] == "api-key"]
    try:
        return host.request(
            url,
            method="POST",
            payload={
                "model": router["served_name"],
                "prompt": report.prompt,
                "max_tokens": options.max_tokens,
                "temperature": 0,
                "n": 1,
                "stream": False,
                "ignore_eos": True,
            },
            headers={"X-Request-Id": report.request_id},
            credential=Credential(keys[0]) if keys else None,
            total=timeout,
        )
    except HttpError as error:
        raise CanaryError(
            f"{url}: {error}",
            f"a completion within {timeout:g} s",
            f"curl -m 5 {router['url']}/workers; then the logs of the group's workers for request {report.request_id}",
        ) from None
    except CredentialError as error:
        raise CanaryError(str(error), "the router's key", "the router's role writes it; run this as root") from None


def _take(report: Report, answer: Response) -> None:
    try:
        body = answer.json()
        usage = body["usage"]
        report.reply = str(body["choices"][0]["text"])
        report.prompt_tokens = int(usage["prompt_tokens"])
        report.completion_tokens = int(usage["completion_tokens"])
        report.usage = {name: value for name, value in usage.items() if isinstance(value, (int, float))}
    except (HttpError, LookupError, TypeError, ValueError):
        raise CanaryError(
            f"the router answered 200, but no completion: {answer.text(200)}", "choices and usage", "look at the router's log"
        ) from None
