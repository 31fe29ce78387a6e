# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The canary: what it sends and to whom, which growth of which counters proves a transfer, and each way in which it does not."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.host.http import REFUSED, TIMEOUT, HttpError, Response
from ansible_collections.plumbline.sglang.plugins.module_utils.readiness import canary_plan, canary_send
from ansible_collections.plumbline.sglang.plugins.module_utils.readiness.canary import send
from ansible_collections.plumbline.sglang.plugins.module_utils.readiness.canary_counters import Bound, Growth, bound_of, growth, reading_of
from ansible_collections.plumbline.sglang.plugins.module_utils.readiness.canary_judge import Evidence
from ansible_collections.plumbline.sglang.plugins.module_utils.readiness.canary_plan import (
    Group,
    Options,
    default_timeout,
    new_room,
    pairs,
    prompt_of,
    refuse,
    words_for,
)
from ansible_collections.plumbline.sglang.tests.unit.witness import Host, body, entry, exposition

MIB = 1 << 20
PER_TOKEN = 512
PROMPT_TOKENS = 20
COMPLETIONS = "/v1/completions"


def server(role: str, name: str, **changes: Any) -> dict[str, Any]:
    """A server or router on a host of its own."""
    port = entry(role)["port"]
    address = f"{role}-{name}.example"
    made = {"instance": f"{role}-g-{name}", "host": f"{role[0]}{name}", "address": address, "url": f"http://{address}:{port}"}
    return entry(role, **{**made, **changes})


class Counted:
    """What one made-up server has counted."""

    def __init__(self) -> None:
        self.moved = 1.0
        self.transfers = 2.0
        self.bootstrap_failed = 0.0
        self.transfer_failed = 4.0
        self.tokens = 10.0

    def text(self, separator: str) -> bytes:
        """As an exposition; the bytes are split over two ranks."""
        lines = [
            f"# TYPE sglang{separator}num_running_reqs gauge",
            f"sglang{separator}num_running_reqs 0.0",
            *(f'sglang{separator}kv_transfer_total_mb_sum{{tp_rank="{rank}"}} {self.moved / 2!r}' for rank in (0, 1)),
            *(f'sglang{separator}kv_transfer_latency_ms_count{{tp_rank="{rank}"}} {self.transfers!r}' for rank in (0, 1)),
            f"sglang{separator}num_bootstrap_failed_reqs_total {self.bootstrap_failed!r}",
            f"sglang{separator}num_transfer_failed_reqs_total {self.transfer_failed!r}",
            f"sglang{separator}generation_tokens_total {self.tokens!r}",
        ]
        return "\n".join(lines).encode()


def completion(text: str = "river stone", tokens: int = 8) -> dict[str, Any]:
    return {"choices": [{"text": text}], "usage": {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": tokens}}


def stream(*events: Any, done: bool = True) -> Response:
    lines = [f"data: {json.dumps(event)}\n\n" for event in events] + (["data: [DONE]\n\n"] if done else [])
    return Response(200, "".join(lines).encode())


class Pd(Host):
    """A PD group that works: every completion moves the prompt's cache, and the decode generates."""

    def __init__(self, prefills: int = 1, decodes: int = 1, routers: int = 1, **changes: Any) -> None:
        super().__init__("router")
        self.prefills = [server("prefill", str(number), **changes) for number in range(prefills)]
        self.decodes = [server("decode", str(number), **changes) for number in range(decodes)]
        self.routers = [server("router", str(number), **changes) for number in range(routers)]
        self.counted = {item["url"]: Counted() for item in self.prefills + self.decodes}
        self.moved = PROMPT_TOKENS * PER_TOKEN
        self.tokens = 8
        self.separator = ":"
        self.delay = 0.0
        self.info: Any = {**body("prefill_endpoints.txt", "GET /server_info"), "page_size": 16}
        self.overrides: dict[str, Any] = {}
        self.posts: list[tuple[str, dict[str, Any]]] = []
        self.options: list[Mapping[str, Any]] = []
        self.lock = threading.Lock()

    @property
    def group(self) -> list[dict[str, Any]]:
        return self.prefills + self.decodes + self.routers

    def request(self, url: str, **options: Any) -> Response:
        with self.lock:
            self.asked.append(url)
            self.options.append(options)
            if options.get("payload"):
                self.posts.append((url, options["payload"]))
        override = self.overrides.get(url)
        if callable(override):
            override = override()
        if isinstance(override, Exception):
            raise override
        if isinstance(override, Response):
            return override
        base, _slash, path = url.partition("//")[2].partition("/")
        with self.lock:
            return self._answer(f"http://{base}", f"/{path}", options.get("payload") or {})

    def _answer(self, base: str, path: str, payload: Mapping[str, Any]) -> Response:
        if path == "/metrics":
            return Response(200, self.counted[base].text(self.separator))
        if path == "/v1/models":
            return Response(200, b"{}")
        if path == "/server_info":
            return Response(200, json.dumps(self.info).encode())
        assert path == COMPLETIONS
        role = next(item["role"] for item in self.group if item["url"] == base)
        if role == "decode":
            self.counted[base].tokens += self.tokens
        if role == "prefill":
            self._move(base)
        if role == "router":
            self._move(self.prefills[0]["url"])
            self.counted[self.decodes[-1]["url"]].tokens += self.tokens
            headers = {"x-smg-routed-worker-id": f"{self.decodes[-1]['url']}/"}
            if payload["stream"]:
                usage = completion(tokens=self.tokens)["usage"]
                return stream({"choices": [{"text": "river"}]}, {"choices": [{"text": " stone\u2028"}]}, {"choices": [], "usage": usage})
            return Response(200, json.dumps(completion(tokens=self.tokens)).encode(), headers)
        return Response(200, json.dumps(completion(tokens=self.tokens if role == "decode" else 1)).encode())

    def _move(self, base: str) -> None:
        def move(host: Host) -> None:
            self.counted[base].moved += self.moved / MIB
            self.counted[base].transfers += 1 if self.moved else 0

        if self.delay:
            self.at(self.now - 1000.0 + self.delay, move)
        else:
            move(self)

    def sent_to(self, role: str) -> list[dict[str, Any]]:
        urls = {item["url"] + COMPLETIONS for item in self.group if item["role"] == role}
        return [payload for url, payload in self.posts if url in urls]


def sent(host: Pd, **options: Any) -> dict[str, Any]:
    return send(host.group, Options(**{"bytes_per_token": PER_TOKEN, **options}), host).as_dict()


def says(report: Mapping[str, Any], *words: str) -> bool:
    """Whether one problem holds all of the words."""
    return any(all(word in problem for word in words) for problem in report["problems"])


@pytest.fixture(autouse=True)
def _short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canary_send, "GRACE_SECONDS", 0.05)


# --- what is sent -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("separator", [":", "_"])
def test_a_pair_and_its_router_are_proved(separator: str) -> None:
    host = Pd()
    host.separator = separator
    report = sent(host)
    assert report["problems"] == [] and report["next"] == []
    assert [(item["via"], item["stream"], item["prefill"], item["decode"]) for item in report["crossings"]] == [
        ("direct", False, "prefill-g-0@p0", "decode-g-0@d0"),
        ("router-g-0", False, "prefill-g-0@p0", "decode-g-0@d0"),
        ("router-g-0", True, "prefill-g-0@p0", "decode-g-0@d0"),
    ]
    assert {(item["bytes_moved"], item["bytes_expected"]) for item in report["crossings"]} == {(10240, 10240)}
    assert [item["reply"] for item in report["crossings"]] == ["river stone", "river stone", "river stone\u2028"]
    assert (report["group"], report["router"], report["reply"], report["bytes_expected_source"]) == (
        "g",
        "router-g-0",
        "river stone",
        "expected_bytes_per_token",
    )
    assert (report["prompt_tokens"], report["completion_tokens"], report["bytes_moved"], report["live_traffic"]) == (60, 24, 30720, False)


@pytest.mark.parametrize(("prefills", "decodes"), [(1, 1), (1, 3), (3, 1), (2, 3), (4, 2)])
def test_every_prefill_and_decode_is_crossed_in_as_few_crossings_as_that_takes(prefills: int, decodes: int) -> None:
    host = Pd(prefills, decodes, routers=0)
    report = sent(host, through_routers=False)
    assert report["problems"] == []
    assert len(report["crossings"]) == max(prefills, decodes)
    assert {item["prefill"] for item in report["crossings"]} == {f"prefill-g-{number}@p{number}" for number in range(prefills)}
    assert {item["decode"] for item in report["crossings"]} == {f"decode-g-{number}@d{number}" for number in range(decodes)}
    assert report["router"] == ""


def test_both_halves_are_the_same_request_and_meet_at_the_prefill() -> None:
    host = Pd()
    sent(host)
    [prefill], [decode] = host.sent_to("prefill"), host.sent_to("decode")
    assert prefill == decode
    assert (prefill["bootstrap_host"], prefill["bootstrap_port"]) == ("prefill-0.example", 8998)
    assert (prefill["n"], prefill["temperature"], prefill["ignore_eos"], prefill["stream"], prefill["max_tokens"]) == (1, 0, True, False, 8)
    assert prefill["model"] == "/srv/models/tiny-llama"


def test_no_room_is_used_twice_and_each_has_63_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Pd(2, 5)
    sent(host)
    rooms = [payload["bootstrap_room"] for payload in host.sent_to("decode")]
    assert len(rooms) == len(set(rooms)) == 5
    asked: list[int] = []
    monkeypatch.setattr(canary_plan.secrets, "randbits", lambda bits: asked.append(bits) or 7)
    assert new_room() == 7 and asked == [63]


def test_a_router_gets_no_room_and_its_stream_tells_usage() -> None:
    host = Pd(routers=2)
    report = sent(host)
    payloads = host.sent_to("router")
    assert [payload["stream"] for payload in payloads] == [False, True, False, True]
    assert all("bootstrap_room" not in payload for payload in payloads)
    assert payloads[1]["stream_options"] == {"include_usage": True} and "stream_options" not in payloads[0]
    assert [item["via"] for item in report["crossings"]] == ["direct", "router-g-0", "router-g-0", "router-g-1", "router-g-1"]


def test_each_prompt_begins_with_a_nonce_of_its_own_and_is_longer_than_a_page() -> None:
    host = Pd()
    sent(host, words=5)
    prompts = [payload["prompt"].split() for payload in host.sent_to("decode") + host.sent_to("router")]
    assert len({words[0] for words in prompts}) == 3
    assert {len(words) for words in prompts} == {16 + 8}
    assert (words_for(200, 64), words_for(200, 256)) == (200, 264)
    assert len(prompt_of(5, "x").split()) == 5


@pytest.mark.parametrize(("options", "roles"), [({"direct": False}, {"router"}), ({"through_routers": False}, {"prefill", "decode"})])
def test_one_of_the_two_ways_can_be_left_out(options: dict[str, Any], roles: set[str]) -> None:
    host = Pd()
    assert sent(host, **options)["problems"] == []
    assert {role for role in ("prefill", "decode", "router") if host.sent_to(role)} == roles


def test_every_request_carries_the_key_of_its_server_and_no_text_does(tmp_path: Path) -> None:
    key = tmp_path / "api-key"
    key.write_text("s3cret-of-the-group\n")
    host = Pd(credentials=[{"name": "api-key", "path": str(key)}])
    host.overrides[host.routers[0]["url"] + COMPLETIONS] = Response(500, b"s3cret-of-the-group was sent")
    report = sent(host)
    assert {options["credential"].path for options in host.options} == {str(key)}
    assert says(report, "answered 500") and "s3cret" not in json.dumps(report)


def test_a_key_that_cannot_be_read_is_named_by_its_file() -> None:
    class Unreadable(Pd):
        def request(self, url: str, **options: Any) -> Response:
            options["credential"].read()
            return super().request(url, **options)

    host = Unreadable(credentials=[{"name": "api-key", "path": "/nowhere/api-key"}])
    assert says(sent(host), "no completion was sent", "/nowhere/api-key")


def test_ranks_above_0_are_not_asked() -> None:
    host = Pd()
    follower = server("prefill", "rank1", argv=[["--node-rank", "1"]])
    report = send([*host.group, follower], Options(), host).as_dict()
    assert report["problems"] == []
    assert not any(url.startswith(follower["url"]) for url in host.asked)


# --- what proves a transfer ---------------------------------------------------------------------------------------------


def test_counters_that_come_late_are_waited_for_and_each_completion_is_sent_once() -> None:
    host = Pd()
    host.delay = 4
    report = sent(host)
    assert report["problems"] == [] and not report["live_traffic"]
    assert len(host.posts) == 4


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"moved": 0}, ["0 bytes of KV cache left prefill-g-0@p0 for 20 prompt tokens, expected at least 10240"]),
        ({"moved": 10238}, ["10238 bytes of KV cache left", "expected at least 10240"]),
        ({"tokens": 1}, ["the decode gave 1 tokens, expected 2 or more"]),
    ],
)
def test_a_reply_alone_proves_nothing_and_no_router_is_asked(changes: dict[str, Any], words: list[str]) -> None:
    host = Pd()
    vars(host).update(changes)
    report = sent(host)
    assert says(report, "prefill-g-0@p0 to decode-g-0@d0, asked directly", *words), report["problems"]
    assert report["next"] and len(report["crossings"]) == 1
    assert host.sent_to("router") == []


@pytest.mark.parametrize("moved", [0, 1])
def test_without_a_known_weight_any_growth_passes_and_the_report_says_why(moved: int) -> None:
    host = Pd()
    host.moved = moved
    host.info["internal_states"][0]["memory_usage"]["token_capacity_swa"] = 4096
    report = sent(host, bytes_per_token=None)
    assert report["bytes_expected_source"] == "unknown: a hybrid KV cache (token_capacity_swa) has no one size per token"
    assert says(report, "expected more than 0") == (moved == 0)
    assert report["crossings"][0]["bytes_expected"] is None


@pytest.mark.parametrize(("moved", "passes"), [(9140, True), (9100, False)])
def test_without_the_option_the_prefill_tells_a_lower_bound(moved: int, passes: bool) -> None:
    host = Pd()
    host.moved = moved
    report = sent(host, bytes_per_token=None)
    # 0.004 GB, rounded, for 8192 tokens and a page of 16: 457 bytes or more.
    assert (report["bytes_expected_source"], report["crossings"][0]["bytes_expected"]) == ("server_info", 457 * PROMPT_TOKENS)
    assert (report["problems"] == []) == passes


def test_prefills_of_different_weight_are_told_apart() -> None:
    host = Pd(2, 1, routers=0)
    host.overrides[host.prefills[1]["url"] + "/server_info"] = Response(404)
    report = sent(host, bytes_per_token=None, through_routers=False)
    assert report["problems"] == []
    assert report["bytes_expected_source"] == "prefill-g-0@p0: server_info; prefill-g-1@p1: unknown: this release has no /server_info"
    assert [item["bytes_expected"] for item in report["crossings"]] == [457 * PROMPT_TOKENS, None]


def test_a_decode_that_keeps_prefixes_may_lack_less() -> None:
    host = Pd()
    host.decodes[0]["argv"] = [["--disaggregation-decode-enable-radix-cache"]]
    assert sent(host)["crossings"][0]["bytes_expected"] == (PROMPT_TOKENS - 8) * PER_TOKEN


@pytest.mark.parametrize("side", ["prefills", "decodes"])
@pytest.mark.parametrize(("counter", "what"), [("bootstrap_failed", "bootstrap"), ("transfer_failed", "transfer")])
def test_failures_on_either_side_are_found(side: str, counter: str, what: str) -> None:
    host = Pd()
    url = getattr(host, side)[0]["url"]

    def fail() -> None:
        vars(host.counted[url])[counter] += 1

    host.overrides[host.decodes[0]["url"] + COMPLETIONS] = fail
    assert says(sent(host), f"1 more {what} failures, expected none", getattr(host, side)[0]["instance"])


@pytest.mark.parametrize("others", ["tokens", "transfers"])
def test_a_failure_under_live_traffic_is_inconclusive_and_blames_nobody(others: str) -> None:
    host = Pd()

    def busy() -> None:
        host.counted[host.decodes[0]["url"]].tokens += 500 if others == "tokens" else 0
        host.counted[host.prefills[0]["url"]].transfers += 3 if others == "transfers" else 0
        host.counted[host.prefills[0]["url"]].transfer_failed += 1

    host.overrides[host.decodes[0]["url"] + COMPLETIONS] = busy
    report = sent(host)
    assert report["live_traffic"]
    assert says(report, "inconclusive: prefill-g-0@p0 counted 1 more transfer failures while others used the group too")
    assert not says(report, "expected none")


def test_live_traffic_without_failures_passes_and_is_told() -> None:
    host = Pd()
    host.overrides[host.routers[0]["url"] + COMPLETIONS] = lambda: vars(host.counted[host.decodes[0]["url"]]).update(tokens=5000.0)
    report = sent(host)
    assert report["problems"] == [] and report["live_traffic"]


def test_a_server_that_was_restarted_meanwhile_is_named() -> None:
    host = Pd()
    host.overrides[host.decodes[0]["url"] + COMPLETIONS] = lambda: host.counted.update({host.decodes[0]["url"]: Zero()})
    assert says(sent(host), "decode-g-0@d0: its counters went back, so it was restarted during the canary")


class Zero(Counted):
    """A server that has just started."""

    def __init__(self) -> None:
        super().__init__()
        self.moved = self.transfers = self.transfer_failed = self.tokens = 0.0


def test_a_server_that_dies_meanwhile_is_named() -> None:
    host = Pd()

    def die() -> None:
        host.overrides[host.decodes[0]["url"] + "/metrics"] = HttpError(REFUSED, "connection refused")

    host.overrides[host.decodes[0]["url"] + COMPLETIONS] = die
    assert says(sent(host), "asked directly", "decode-g-0@d0", "/metrics: connection refused")


# --- what does not come back --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "words", "then"),
    [
        (Response(401, b"Unauthorized"), ["answered 401", "it wants a key and the plan names none", "the key is wrong"], "deploy"),
        (Response(403, b"no"), ["answered 403", "the key is wrong"], "deploy"),
        (Response(503, b"not ready"), ["answered 503: not ready"], "journalctl -u sglang-decode-g-a.service"),
        (Response(500, b"KVTransferError"), ["answered 500: KVTransferError"], "journalctl"),
        (Response(404, b"Not Found"), ["answered 404"], "see what listens there"),
        (Response(200, b"OK"), ["200, but no completion: OK"], "look at the log of decode-g-0@d0"),
        (Response(200, b'{"error": {"message": "aborted"}}'), ["200, but an error", "aborted"], "look at the log"),
        (Response(200, b"[]"), ["200, but no completion"], "look at the log"),
        (HttpError(REFUSED, "connection refused"), ["connection refused", "a server that listens there"], "systemctl status sglang-decode-g-a.service"),
        (HttpError(TIMEOUT, "no answer within 45 s"), ["no answer within 45 s", "expected: an answer within 45 s"], "journalctl"),
    ],
)
def test_a_half_that_fails_says_which_pair_what_was_seen_and_what_to_do(answer: Any, words: list[str], then: str) -> None:
    host = Pd()
    host.overrides[host.decodes[0]["url"] + COMPLETIONS] = answer
    report = sent(host)
    assert says(report, "prefill-g-0@p0 to decode-g-0@d0, asked directly: ", "seen: ", "expected: ", *words), report["problems"]
    assert any(then in step for step in report["next"]), report["next"]
    assert len(host.posts) == 2 and host.sent_to("router") == []


@pytest.mark.parametrize("failing", ["prefills", "decodes"])
def test_where_one_half_fails_the_other_is_not_waited_for(failing: str) -> None:
    host = Pd()
    hanging = "decodes" if failing == "prefills" else "prefills"
    never = threading.Event()
    host.overrides[getattr(host, failing)[0]["url"] + COMPLETIONS] = Response(500, b"handshake failed")
    host.overrides[getattr(host, hanging)[0]["url"] + COMPLETIONS] = lambda: never.wait(60) and None
    report = sent(host)
    never.set()
    assert says(report, "answered 500: handshake failed; expected: 200; and seen: " + getattr(host, hanging)[0]["instance"], "not waited for any longer")


def test_a_server_that_did_not_answer_in_time_is_not_asked_again() -> None:
    host = Pd(1, 3)
    host.overrides[host.decodes[0]["url"] + COMPLETIONS] = HttpError(TIMEOUT, "no answer within 45 s")
    host.overrides[host.prefills[0]["url"] + COMPLETIONS] = HttpError(TIMEOUT, "no answer within 45 s")
    report = sent(host)
    assert len(host.posts) == 2 and len(report["crossings"]) == 3
    assert says(report, "to decode-g-2@d2", "not asked: prefill-g-0@p0 did not answer an earlier completion in time")


def test_one_bad_decode_does_not_hide_the_good_ones() -> None:
    host = Pd(1, 3)
    host.overrides[host.decodes[1]["url"] + COMPLETIONS] = Response(500, b"broken")
    report = sent(host)
    assert [bool(item["problems"]) for item in report["crossings"]] == [False, True, False]


@pytest.mark.parametrize("path", ["/metrics", "/v1/models"])
@pytest.mark.parametrize("role", ["prefills", "decodes"])
@pytest.mark.parametrize("answer", [Response(401, b"no"), HttpError(TIMEOUT, "no answer within 10 s"), HttpError(REFUSED, "connection refused")])
def test_nothing_is_sent_where_a_server_does_not_answer(path: str, role: str, answer: Any) -> None:
    host = Pd()
    host.overrides[getattr(host, role)[0]["url"] + path] = answer
    report = sent(host)
    assert says(report, "no completion was sent", getattr(host, role)[0]["instance"])
    assert host.posts == [] and report["crossings"] == [] and report["next"]


def test_nothing_is_sent_where_a_prefill_does_not_tell_its_state() -> None:
    host = Pd()
    host.overrides[host.prefills[0]["url"] + "/server_info"] = HttpError(TIMEOUT, "no answer within 10 s")
    assert says(sent(host), "no completion was sent", "/server_info") and host.posts == []


def test_nothing_is_sent_without_the_counters_that_show_a_transfer() -> None:
    host = Pd()
    host.overrides[host.decodes[0]["url"] + "/metrics"] = Response(200, b"smg_worker_health 1")
    report = sent(host)
    assert says(report, "without SGLang's counters") and "enable-metrics" in report["next"][0]
    assert host.posts == []


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Response(503, b"No prefill workers available"), ["answered 503: No prefill workers available"]),
        (Response(401, b"no"), ["the key is wrong"]),
        (HttpError(REFUSED, "connection refused"), ["connection refused"]),
        (HttpError(TIMEOUT, "no answer within 45 s"), ["expected: an answer within 45 s"]),
    ],
)
def test_a_router_that_fails_is_asked_once_and_named(answer: Any, words: list[str]) -> None:
    host = Pd(routers=2)
    host.overrides[host.routers[0]["url"] + COMPLETIONS] = answer
    report = sent(host)
    assert says(report, "through router-g-0: ", *words), report["problems"]
    assert [(item["via"], item["stream"]) for item in report["crossings"]][1:] == [("router-g-0", False), ("router-g-1", False), ("router-g-1", True)]


USAGE = {"choices": [], "usage": {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": 8}}


@pytest.mark.parametrize(
    ("answer", "says_so"),
    [
        (stream({"choices": [{"text": "a"}]}, USAGE, done=False), "the stream broke off after 2 events, without data: [DONE]"),
        (stream({"choices": [{"text": "a"}]}), "a stream of 1 events without usage"),
        (stream({"choices": [{"text": "a"}]}, {"error": {"message": "decode died"}}), "an error in event 2 of the stream"),
        (Response(200, json.dumps(completion()).encode()), "no stream: "),
        (Response(200, b"data: {broken\n\ndata: [DONE]\n\n"), "no completion"),
    ],
)
def test_a_stream_that_is_not_whole_is_told(answer: Response, says_so: str) -> None:
    host = Pd()
    whole: list[Response | None] = [None, answer]
    host.overrides[host.routers[0]["url"] + COMPLETIONS] = lambda: whole.pop(0)
    report = sent(host)
    assert says(report, "through router-g-0, streaming: ", says_so), report["problems"]


# --- what is refused ----------------------------------------------------------------------------------------------------

PREFILL, DECODE, ROUTER = server("prefill", "0"), server("decode", "0"), server("router", "0")


@pytest.mark.parametrize(
    ("instances", "options", "says_so"),
    [
        ([PREFILL, ROUTER], Options(), "no decode of PD group 'g'"),
        ([DECODE, ROUTER], Options(), "no prefill of PD group 'g'"),
        ([PREFILL, DECODE], Options(), "no router of PD group 'g'"),
        ([], Options(), "no prefill"),
        ([PREFILL, DECODE, ROUTER, server("decode", "1", group="h")], Options(), "of 2 PD groups ('g', 'h')"),
        ([PREFILL, DECODE, ROUTER], Options(timeout=60), "breaker window of router-g-0@r0, 60 s"),
        ([PREFILL, DECODE, {**ROUTER, "argv": [["--cb-timeout-duration-secs", "15"]]}], Options(timeout=15), "15 s"),
        ([PREFILL, DECODE, ROUTER], Options(timeout=0), "timeout is 0"),
        ([PREFILL, DECODE, ROUTER], Options(max_tokens=1), "max_tokens is 1"),
        ([PREFILL, DECODE, ROUTER], Options(words=0), "words is 0"),
        ([PREFILL, DECODE, ROUTER], Options(bytes_per_token=0), "expected_bytes_per_token is 0"),
        ([PREFILL, DECODE, ROUTER], Options(direct=False, through_routers=False), "both false"),
        ([{**PREFILL, "bootstrap_port": None}, DECODE, ROUTER], Options(), "needs its bootstrap_port"),
        ([PREFILL, {**DECODE, "url": ""}, ROUTER], Options(), "url is missing"),
        ([PREFILL, {**DECODE, "served_name": None}, ROUTER], Options(), "decode-g-0@d0: served_name is missing"),
    ],
)
def test_a_canary_that_would_harm_or_prove_nothing_is_refused(instances: Any, options: Options, says_so: str) -> None:
    assert any(says_so in line for line in refuse(instances, options)), refuse(instances, options)


def test_a_whole_group_is_not_refused_and_without_routers_no_window_counts() -> None:
    assert refuse([PREFILL, DECODE, ROUTER], Options(timeout=59)) == []
    assert refuse([PREFILL, DECODE], Options(through_routers=False, timeout=100)) == []


def test_the_default_timeout_lies_within_the_shortest_breaker_window() -> None:
    assert default_timeout([ROUTER]) == 45
    assert default_timeout([]) == 45
    assert default_timeout([ROUTER, {**ROUTER, "argv": [["--cb-timeout-duration-secs", "15"]]}]) == 12
    host = Pd()
    host.routers[0]["argv"] = [["--cb-timeout-duration-secs", "15"]]
    sent(host)
    assert {options["total"] for options in host.options if options.get("payload")} == {12}


def test_pairs_of_a_group_without_one_side_are_none() -> None:
    assert list(pairs(Group("g"))) == []


# --- the counters and the bound -----------------------------------------------------------------------------------------


def test_the_counters_of_a_real_exposition() -> None:
    found = reading_of(exposition("prefill_endpoints.txt"))
    assert found is not None and growth(found, found) == Growth()
    assert reading_of("smg_worker_health 1\n") is None


def test_growth_is_per_series_and_starts_at_0() -> None:
    before = reading_of('sglang:kv_transfer_latency_ms_count{r="0"} 4\n')
    after = reading_of('sglang:kv_transfer_latency_ms_count{r="0"} 5\nsglang:kv_transfer_latency_ms_count{r="1"} 1\nsglang:kv_transfer_total_mb_sum 1.5e-3\n')
    assert before and after
    assert growth(before, after) == Growth(kv_bytes=1.5e-3 * MIB, transfers=1)
    # A server that was restarted counts from 0 again.
    high, low = after, before
    assert growth(high, low).restarted


def test_evidence_names_whoever_grew_most() -> None:
    evidence = Evidence({"p0": Growth(kv_bytes=1), "p1": Growth(kv_bytes=2)}, {"d0": Growth(), "d1": Growth(generated_tokens=3)}, 8)
    assert (evidence.source(), evidence.sink(), evidence.live) == ("p1", "d1", False)
    nobody = Evidence({"p0": Growth()}, {"d0": Growth()}, 8)
    assert (nobody.source(), nobody.sink()) == ("", "")


def test_the_bound_of_a_real_server_is_below_what_a_token_really_weighs() -> None:
    bound = bound_of(body("prefill_endpoints.txt", "GET /server_info"))
    assert bound == Bound(458.0, "server_info", 1)
    assert (bound.bytes_of(20), bound.bytes_of(20, shared=True), Bound(None, "x").bytes_of(20)) == (9160, 12 * 458, None)


def usage(**changes: Any) -> dict[str, Any]:
    return {"page_size": 1, "internal_states": [{"memory_usage": {"kvcache": 0.004, "token_capacity": 8192, "token_capacity_swa": None, **changes}}]}


@pytest.mark.parametrize(
    ("info", "why"),
    [
        ([], "no object"),
        ({}, "tells no memory_usage"),
        ({**usage(), "enable_kv_cache_sharding": True}, "not one row per token"),
        ({**usage(), "max_mamba_cache_size": 64}, "Mamba"),
        ({**usage(), "device": "npu"}, "npu"),
        ({**usage(), "attention_backend": "dsa"}, "attention backend"),
        ({"internal_states": [{"memory_usage": {"kvcache": 30.12, "token_capacity": 300000}}]}, "hybrid"),
        ({"internal_states": [{}]}, "tells no memory_usage"),
        ({"internal_states": "x"}, "tells no memory_usage"),
        (usage(token_capacity_swa=10), "hybrid"),
        (usage(kvcache=None), "tells no kvcache"),
        (usage(token_capacity=0), "tells no kvcache and token_capacity"),
        (usage(kvcache=0.0005), "too coarse"),
        ({**usage(), "attn_cp_size": 2}, "attn_cp_size is 2"),
        ({**usage(), "dcp_size": 4}, "dcp_size is 4"),
        ({**usage(), "kv_cache_dtype": "fp4_e2m1"}, "kv_cache_dtype fp4_e2m1"),
    ],
)
def test_a_bound_that_would_not_be_honest_is_unknown(info: Any, why: str) -> None:
    bound = bound_of(info)
    assert bound.per_token is None and bound.source.startswith("unknown: ") and why in bound.source


def test_of_several_ranks_the_least_counts() -> None:
    two = usage()
    two["internal_states"] += usage(kvcache=0.008)["internal_states"]
    assert bound_of(two).per_token == 458
