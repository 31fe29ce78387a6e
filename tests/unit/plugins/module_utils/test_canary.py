# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The canary: which growth of which counters proves a transfer, and each way in which it does not."""

from __future__ import annotations

import json
from typing import Any, Callable

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.host.http import TIMEOUT, HttpError, Response
from ansible_collections.plumbline.sglang.plugins.module_utils.readiness.canary import (
    CanaryError,
    Counters,
    Options,
    counters_of,
    default_timeout,
    prompt_of,
    refuse,
    send,
)
from ansible_collections.plumbline.sglang.tests.unit.witness import ADDRESS, Host, entry, exposition

COMPLETIONS = f"http://{ADDRESS}:30001/v1/completions"
PREFILL = f"http://{ADDRESS}:30000/metrics"
DECODE = f"http://{ADDRESS}:30002/metrics"
GROUP = [entry("prefill"), entry("decode")]
MIB = 1 << 20


def metrics(separator: str = ":", **values: float) -> bytes:
    """An exposition in which each value is split over two ranks."""
    lines = [f"# TYPE sglang{separator}num_running_reqs gauge", f'sglang{separator}num_running_reqs{{tp_rank="0"}} 0.0']
    for name, value in values.items():
        lines += [f'sglang{separator}{name}{{tp_rank="{rank}"}} {value / 2!r}' for rank in (0, 1)]
    return "\n".join(lines).encode()


def group(moved: int = 9216, transfers: int = 1, failures: int = 0, tokens: int = 8, separator: str = ":", delay: float = 0.0, restarted: bool = False) -> Host:
    """A group in which one completion of 18 prompt tokens moves ``moved`` bytes, seen by the counters ``delay`` seconds later."""
    host = Host("router")
    sent: list[float] = []

    def complete(there: Host) -> Response:
        sent.append(there.now)
        body = {"choices": [{"text": "river stone"}], "usage": {"prompt_tokens": 18, "completion_tokens": tokens, "total_tokens": 18 + tokens}}
        return Response(200, json.dumps(body).encode())

    def counted(prefill: bool) -> Callable[[Host], Response]:
        def answer(there: Host) -> Response:
            over = bool(sent) and there.now >= sent[0] + delay
            if over and restarted:
                return Response(200, metrics(separator))
            values = {"num_transfer_failed_reqs_total": 4.0 + failures * over}
            if prefill:
                values.update(kv_transfer_total_mb_sum=1.0 + moved / MIB * over, kv_transfer_latency_ms_count=2.0 + transfers * over)
            else:
                values.update(generation_tokens_total=10.0 + tokens * over)
            return Response(200, metrics(separator, **values))

        return answer

    host.answers.update({COMPLETIONS: complete, PREFILL: counted(True), DECODE: counted(False)})
    return host


def sent(host: Host, **options: Any) -> Any:
    return send(entry("router"), GROUP, Options(**options), host)


@pytest.mark.parametrize("separator", [":", "_"])
def test_a_transfer_is_proved_in_bytes(separator: str) -> None:
    host = group(separator=separator)
    report = sent(host, bytes_per_token=512)
    assert report.problems == []
    assert (report.bytes_moved, report.bytes_expected, report.reply, report.completion_tokens) == (9216, 9216, "river stone", 8)
    assert (report.prefill_used, report.decode_used, report.live_traffic) == (["prefill-g-a@h1"], ["decode-g-a@h1"], False)


def test_counters_that_come_late_are_waited_for_and_the_completion_is_sent_once() -> None:
    host = group(delay=4)
    assert sent(host).problems == []
    assert host.asked.count(COMPLETIONS) == 1


@pytest.mark.parametrize(
    ("changes", "options", "says"),
    [
        ({"moved": 0, "transfers": 0}, {}, "no KV transfer was counted"),
        ({"moved": 0}, {}, "0 bytes of KV cache left prefill-g-a@h1, expected more than 0"),
        ({"moved": 9215}, {"bytes_per_token": 512}, "9215 bytes of KV cache left prefill-g-a@h1, expected at least 9216"),
        ({"failures": 1}, {}, "1 more transfer failures"),
        ({"tokens": 1}, {}, "the decode gave 1 tokens"),
        ({"restarted": True}, {}, "restarted during the canary"),
    ],
)
def test_a_reply_alone_proves_nothing(changes: dict[str, Any], options: dict[str, Any], says: str) -> None:
    report = sent(group(**changes), **options)
    assert any(says in problem for problem in report.problems), report.problems
    assert report.next


def test_failures_of_the_decode_count_too() -> None:
    host = group()
    failing = iter([0, 1, 1, 1])
    host.answers[DECODE] = lambda _host: Response(200, metrics(num_bootstrap_failed_reqs_total=next(failing), generation_tokens_total=0))
    assert any("decode-g-a@h1: 1 more bootstrap failures" in problem for problem in sent(host).problems)


def test_others_on_the_group_are_told() -> None:
    host = group()
    counts = iter([0.0, 500.0])
    host.answers[DECODE] = lambda _host: Response(200, metrics(generation_tokens_total=next(counts)))
    assert sent(host).live_traffic


def test_the_request_harms_nobody() -> None:
    host = group()
    sent(host)
    options = host.sent[host.asked.index(COMPLETIONS)]
    payload = options["payload"]
    assert (payload["n"], payload["stream"], payload["max_tokens"] >= 2, payload["model"]) == (1, False, True, "/srv/models/tiny-llama")
    assert options["total"] < 60
    assert len(payload["prompt"].split()) == 200
    assert "bootstrap_room" not in payload


def test_a_prompt_shares_no_beginning_with_the_last_one() -> None:
    hosts = [group(), group()]
    first, second = (sent(host).prompt.split()[0] for host in hosts)
    assert first != second
    assert len(prompt_of(5, "x").split()) == 5


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Response(503, b'{"error":{"message":"No prefill workers available"}}'), "503"),
        (Response(200, b"OK"), "no completion"),
        (HttpError(TIMEOUT, "no answer within 45 s"), "no answer within 45 s"),
    ],
)
def test_a_completion_that_does_not_come_says_what_was_seen_and_what_to_do(answer: Any, says: str) -> None:
    host = group()
    host.answers[COMPLETIONS] = answer
    with pytest.raises(CanaryError) as caught:
        sent(host)
    text = str(caught.value)
    assert says in text and "expected: " in text and "next: " in text
    assert host.asked.count(COMPLETIONS) == 1


@pytest.mark.parametrize("answer", [Response(404, b"Not Found"), Response(200, b"# HELP smg_worker_health x"), HttpError(TIMEOUT, "no answer")])
def test_nothing_is_sent_where_the_counters_cannot_be_read(answer: Any) -> None:
    host = group()
    host.answers[DECODE] = answer
    with pytest.raises(CanaryError, match="decode-g-a@h1"):
        sent(host)
    assert COMPLETIONS not in host.asked


@pytest.mark.parametrize(
    ("router", "instances", "options", "says"),
    [
        (entry("router"), GROUP[:1], Options(), "no decode"),
        (entry("router", group="h"), GROUP, Options(), "no prefill"),
        (entry("prefill"), GROUP, Options(), "expected a router"),
        (entry("router"), GROUP, Options(timeout=60), "breaker window of 60 s"),
        (entry("router", argv=[["--cb-timeout-duration-secs", "15"]]), GROUP, Options(timeout=15), "breaker window of 15 s"),
        (entry("router"), GROUP, Options(max_tokens=1), "max_tokens is 1"),
    ],
)
def test_a_canary_that_would_harm_or_prove_nothing_is_refused(router: Any, instances: Any, options: Options, says: str) -> None:
    assert any(says in line for line in refuse(router, instances, options))


def test_the_default_timeout_lies_within_the_breaker_window() -> None:
    assert refuse(entry("router"), GROUP, Options()) == []
    assert default_timeout(entry("router")) == 45
    assert default_timeout(entry("router", argv=[["--cb-timeout-duration-secs", "15"]])) == 12


def test_the_counters_of_a_real_exposition() -> None:
    found = counters_of(exposition("prefill_endpoints.txt"))
    assert found is not None and (found.kv_bytes, found.transfers) == (0, 0)
    assert counters_of("smg_worker_health 1\n") is None
    assert counters_of('sglang:kv_transfer_total_mb_sum{a="b"} 1.5e-3\n') == Counters(kv_bytes=1.5e-3 * MIB)
