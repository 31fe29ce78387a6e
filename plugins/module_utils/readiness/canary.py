# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The canary: every prefill and every decode of a PD group crossed directly, then completions through its routers.

Only this proves the transfer: each server's own health check uses a stand-in for its peer. What is sent is in canary_plan and
canary_send, what proves it in canary_counters and canary_judge; here is the order. Direct crossings come first, since they touch
no breaker; a router is only asked where all of them passed. Every completion is tried once.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable

from ..host.credentials import Redactor
from ..host.http import Response
from ..host.local import LocalHost
from ..signals.base import argument, key_path
from .canary_counters import Bound, Reading, growth
from .canary_judge import Crossing, Evidence, failures, judge, moved_enough
from .canary_plan import Group, Options, completion_body, default_timeout, name_of, new_room, pairs, prompt_of, rendezvous, words_for
from .canary_send import COMPLETIONS, Reply, Trouble, ask, ask_both, both_of, read_bound, read_counters, reply_of, url_of

#: How long the prefill's counters may take to show a transfer that is over, and the pause between two looks, in seconds.
SETTLE_SECONDS = 10.0
SETTLE_PAUSE = 0.5
DIRECT = "direct"
OPTION = "expected_bytes_per_token"
#: With it a decode keeps the beginning of earlier prompts, and a prefill moves only what it lacks.
DECODE_CACHE = "--disaggregation-decode-enable-radix-cache"

Entries = tuple[Mapping[str, Any], ...]


@dataclass
class Report:
    """Everything a canary found out; ``problems`` is empty where it proved every crossing."""

    group: str
    routers: list[str]
    crossings: list[Crossing] = field(default_factory=list)
    bytes_expected_source: str = ""
    problems: list[str] = field(default_factory=list)
    next: list[str] = field(default_factory=list)

    @property
    def live_traffic(self) -> bool:
        """Whether others used the group at the same time."""
        return any(crossing.live_traffic for crossing in self.crossings)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for a module's result: the crossings, and their sums for a report of two lines."""
        through = [crossing for crossing in self.crossings if crossing.via != DIRECT]
        replies = [crossing.reply for crossing in through or self.crossings]
        return {
            "group": self.group,
            "router": self.routers[0] if self.routers else "",
            "crossings": [{name: value for name, value in vars(crossing).items() if name != "live_traffic"} for crossing in self.crossings],
            "bytes_expected_source": self.bytes_expected_source,
            "live_traffic": self.live_traffic,
            "reply": replies[0] if replies else "",
            "prompt_tokens": sum(crossing.prompt_tokens for crossing in self.crossings),
            "completion_tokens": sum(crossing.completion_tokens for crossing in self.crossings),
            "bytes_moved": sum(crossing.bytes_moved for crossing in self.crossings),
            "seconds": round(sum(crossing.seconds for crossing in self.crossings), 3),
            "problems": self.problems,
            "next": list(dict.fromkeys(self.next)),
        }


def send(instances: Sequence[Mapping[str, Any]], options: Options, host: LocalHost) -> Report:
    """Cross the group of these entries, which ``refuse`` has let through. Never raises for what a server does: the report tells."""
    return Canary(Group.of(instances), options, host).run()


class Canary:
    """One run over one PD group."""

    def __init__(self, group: Group, options: Options, host: LocalHost) -> None:
        self._group, self._options, self._host = group, options, host
        self._timeout = options.timeout or default_timeout(group.routers if options.through_routers else ())
        self._redactor = Redactor.of({key_path(entry) for entry in (*group.servers, *group.routers)} - {""})
        self._report = Report(group.name, [str(router["instance"]) for router in group.routers])
        self._bounds: dict[str, Bound] = {}
        self._late: set[str] = set()

    def run(self) -> Report:
        """Look, cross, send through the routers; each only where the one before it passed."""
        if self._ready():
            if self._options.direct:
                for prefill, decode in pairs(self._group):
                    self._cross(prefill, decode)
            if self._options.through_routers and not self._report.problems:
                for router in self._group.routers:
                    # The second completion only where the first one passed: a failing one counts against the breakers.
                    if self._through(router, stream=False):
                        self._through(router, stream=True)
        return self._report

    # --- before anything is sent --------------------------------------------------------------------------------------

    def _ready(self) -> bool:
        """Whether every server answers, takes the key and counts: else a completion would leave half a request behind."""
        for entry in self._group.servers:
            try:
                read_counters(self._host, entry)
                ask(self._host, entry, "/v1/models")
                if entry["role"] == "prefill":
                    self._bounds[name_of(entry)] = self._bound(read_bound(self._host, entry))
            except Trouble as trouble:
                self._tell("no completion was sent", trouble)
        self._report.bytes_expected_source = self._source()
        return not self._report.problems

    def _bound(self, told: Bound) -> Bound:
        given = self._options.bytes_per_token
        return told if given is None else Bound(given, OPTION, told.page_size)

    def _source(self) -> str:
        sources = list(dict.fromkeys(bound.source for bound in self._bounds.values()))
        if len(sources) < 2:
            return "".join(sources)
        return "; ".join(f"{name}: {bound.source}" for name, bound in self._bounds.items())

    # --- one completion -----------------------------------------------------------------------------------------------

    def _cross(self, prefill: Mapping[str, Any], decode: Mapping[str, Any]) -> None:
        """Ask both servers of a pair at the same time, as a router would."""
        prompt, request_id = self._prompt()
        crossing = Crossing(DIRECT, False, name_of(prefill), name_of(decode), request_id)
        stuck = sorted(self._late & {crossing.prefill, crossing.decode})
        if stuck:
            # One more request would wait there too.
            crossing.problems.append(f"not asked: {', '.join(stuck)} did not answer an earlier completion in time")
            self._conclude(crossing)
            return
        meeting = rendezvous(prefill, new_room())
        halves = [(entry, {**completion_body(entry, prompt, self._options), **meeting}) for entry in (prefill, decode)]

        def request() -> Reply:
            answers = ask_both(self._host, halves, request_id, self._timeout)
            troubles = [answer for answer in answers if isinstance(answer, Trouble)]
            self._late |= {name_of(entry) for (entry, _body), answer in zip(halves, answers) if isinstance(answer, Trouble) and answer.late}
            if troubles:
                raise both_of(troubles)
            answered = [answer for answer in answers if isinstance(answer, Response)]
            return reply_of(answered[-1], crossing.decode, stream=False)

        self._measure(crossing, (prefill,), (decode,), request)

    def _through(self, router: Mapping[str, Any], stream: bool) -> bool:
        """One completion through a router, which chooses the pair; whether it passed."""
        prompt, request_id = self._prompt()
        crossing = Crossing(str(router["instance"]), stream, "", "", request_id)
        body = completion_body(router, prompt, self._options, stream=stream)

        def request() -> Reply:
            answer = ask(self._host, router, COMPLETIONS, self._timeout, method="POST", payload=body, headers={"X-Request-Id": request_id})
            return reply_of(answer, name_of(router), stream)

        return self._measure(crossing, self._group.prefills, self._group.decodes, request)

    def _prompt(self) -> tuple[str, str]:
        nonce = secrets.token_hex(8)
        page_size = max((bound.page_size for bound in self._bounds.values()), default=1)
        return prompt_of(words_for(self._options.words, page_size), nonce), f"plumbline-canary-{nonce}"

    def _measure(self, crossing: Crossing, prefills: Entries, decodes: Entries, request: Callable[[], Reply]) -> bool:
        """Read the counters, send, read the counters again, judge; whether the crossing passed."""
        reply = None
        try:
            before = self._readings((*prefills, *decodes))
            begun = self._host.monotonic()
            try:
                reply = request()
            except Trouble as trouble:
                self._trouble(crossing, trouble)
            crossing.seconds = round(self._host.monotonic() - begun, 3)
            if reply:
                crossing.reply, crossing.prompt_tokens, crossing.completion_tokens = reply.text, reply.prompt_tokens, reply.completion_tokens
            evidence = self._settle(crossing, before, prefills, decodes, wait=reply is not None)
        except Trouble as trouble:
            self._trouble(crossing, trouble)
            self._conclude(crossing)
            return False
        crossing.live_traffic = evidence.live
        if reply:
            crossing.decode = crossing.decode or next((name_of(entry) for entry in decodes if url_of(entry, "") == reply.decode), evidence.sink())
            contradictions = judge(crossing, evidence)
        else:
            contradictions = failures(evidence)
        if contradictions:
            crossing.problems += contradictions
            self._report.next += [f"curl -m 5 {url_of(entry, '/metrics')} | grep kv_transfer" for entry in prefills]
            self._report.next.append(f"look for 'transfer failed' and for {crossing.request_id} in the logs of the prefill and the decode")
        self._conclude(crossing)
        return not crossing.problems

    def _settle(self, crossing: Crossing, before: Mapping[str, Reading], prefills: Entries, decodes: Entries, wait: bool) -> Evidence:
        """The growth of the counters, once they show the transfer or have had their time; fills in what moved. :raises Trouble:"""
        deadline = self._host.monotonic() + SETTLE_SECONDS
        while True:
            after = self._readings((*prefills, *decodes))
            grown = {name: growth(before[name], after[name]) for name in before}
            evidence = Evidence(
                {name_of(entry): grown[name_of(entry)] for entry in prefills},
                {name_of(entry): grown[name_of(entry)] for entry in decodes},
                crossing.completion_tokens or self._options.max_tokens,
            )
            source = evidence.source() or name_of(prefills[0])
            crossing.bytes_moved = round(evidence.prefills[source].kv_bytes)
            crossing.bytes_expected = self._expected(source, crossing.prompt_tokens) if wait else None
            if not wait or moved_enough(crossing.bytes_moved, crossing.bytes_expected) or self._host.monotonic() >= deadline:
                crossing.prefill = crossing.prefill or evidence.source()
                return evidence
            self._host.wait([], SETTLE_PAUSE)

    def _expected(self, prefill: str, prompt_tokens: int) -> int | None:
        shared = any(argument(entry, DECODE_CACHE, "absent") != "absent" for entry in self._group.decodes)
        return self._bounds[prefill].bytes_of(prompt_tokens, shared)

    def _readings(self, entries: Iterable[Mapping[str, Any]]) -> dict[str, Reading]:
        return {name_of(entry): read_counters(self._host, entry) for entry in entries}

    # --- what is told -------------------------------------------------------------------------------------------------

    def _tell(self, about: str, trouble: Trouble) -> None:
        self._report.problems.append(self._redactor.text(f"{about}: {trouble}"))
        self._report.next.append(self._redactor.text(trouble.next))

    def _trouble(self, crossing: Crossing, trouble: Trouble) -> None:
        crossing.problems.append(str(trouble))
        self._report.next.append(self._redactor.text(trouble.next))

    def _conclude(self, crossing: Crossing) -> None:
        """Take a crossing over into the report, without secrets."""
        self._report.crossings.append(crossing)
        crossing.reply = self._redactor.text(crossing.reply)
        crossing.problems = [self._redactor.text(problem) for problem in crossing.problems]
        self._report.problems += [f"{crossing.label}: {problem}" for problem in crossing.problems]
