# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The requests of a canary, and what their answers say: a completion, a stream, or why there is none.

Every request is sent once. What is asked before anything is sent (counters, names, ``/server_info``) changes nothing.
"""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..host.credentials import Credential, CredentialError
from ..host.http import REFUSED, TIMEOUT, HttpError, Response
from ..host.local import LocalHost
from ..signals.base import key_path
from .addresses import normal
from .canary_counters import Bound, Reading, bound_of, reading_of
from .canary_plan import name_of

COMPLETIONS = "/v1/completions"
#: Seconds for what is asked before and after a completion.
ASK_SECONDS = 10.0
#: Once one half of a crossing has failed, the other one mostly never answers: so many seconds more are enough to hear why.
GRACE_SECONDS = 3.0
#: The header in which a router names the decode that it chose.
ROUTED = "x-smg-routed-worker-id"


class Trouble(Exception):
    """A request that got no usable answer: what was seen, what was expected, what to do next.

    ``late`` where the server took the request and did not answer in time, so that it may still hold it.
    """

    def __init__(self, seen: str, expected: str, then: str, late: bool = False) -> None:
        super().__init__(f"seen: {seen}; expected: {expected}")
        self.next = then
        self.late = late


def both_of(troubles: Sequence[Trouble]) -> Trouble:
    """Two troubles as one: what the one that answered said comes first, since the other one mostly only waited for it."""
    ordered = sorted(troubles, key=lambda trouble: trouble.late)
    first = Trouble("", "", ordered[0].next, any(trouble.late for trouble in troubles))
    first.args = ("; and ".join(map(str, ordered)),)
    return first


@dataclass(frozen=True)
class Reply:
    """A whole completion. ``decode`` is the address of the decode that a router says it chose."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    decode: str = ""


def url_of(entry: Mapping[str, Any], path: str) -> str:
    """An address of a server."""
    return normal(entry["url"]) + path


def ask(host: LocalHost, entry: Mapping[str, Any], path: str, total: float = ASK_SECONDS, **options: Any) -> Response:
    """One request with the server's key; its answer is 200.

    :raises Trouble: for anything else.
    """
    name, url, path_of_key = name_of(entry), url_of(entry, path), key_path(entry)
    try:
        answer = host.request(url, total=total, credential=Credential(path_of_key) if path_of_key else None, **options)
    except CredentialError as error:
        raise Trouble(f"{name}: {error}", "its key", "run this as root on a host that has the key, for example the router's") from None
    except HttpError as error:
        raise _no_answer(entry, url, error, total) from None
    if answer.status != 200:
        raise _refused(entry, url, answer, path_of_key)
    return answer


def _log_of(entry: Mapping[str, Any]) -> str:
    return f"on {entry.get('host') or entry['address']}: journalctl -u {entry['unit']} -n 50"


def _no_answer(entry: Mapping[str, Any], url: str, error: HttpError, total: float) -> Trouble:
    seen = f"{name_of(entry)}: {url}: {error}"
    if error.kind == REFUSED:
        return Trouble(seen, "a server that listens there", f"on {entry.get('host') or entry['address']}: systemctl status {entry['unit']}")
    return Trouble(seen, f"an answer within {total:g} s", _log_of(entry), late=error.kind == TIMEOUT)


def _refused(entry: Mapping[str, Any], url: str, answer: Response, path_of_key: str) -> Trouble:
    seen = f"{name_of(entry)}: {url} answered {answer.status}: {answer.text(300)}"
    if answer.refused_key:
        how = f"the key in {path_of_key} is not the one it was started with" if path_of_key else "it wants a key and the plan names none"
        return Trouble(f"{seen} ({how})", "200: it is alive, but the key is wrong", f"deploy {entry['instance']} again, so that it starts with the planned key")
    if answer.status == 503 and entry["role"] == "router":
        then = f"curl -m 5 {url_of(entry, '/workers')}, then the logs of the group's workers. A router names the prefill also where the decode is at fault. "
        return Trouble(seen, "200", then + "Wait for its breakers (about a minute) before the next try")
    if answer.status == 404:
        return Trouble(seen, "200", f"see what listens there: curl -m 5 {url}")
    return Trouble(seen, "200", _log_of(entry))


def read_counters(host: LocalHost, entry: Mapping[str, Any]) -> Reading:
    """What a server has counted. :raises Trouble:"""
    found = reading_of(ask(host, entry, "/metrics").body.decode("utf-8", "replace"))
    if found is None:
        seen = f"{name_of(entry)}: {url_of(entry, '/metrics')} answered without SGLang's counters"
        raise Trouble(seen, "the counters that show a transfer", "start prefills and decodes with enable-metrics: true (the collection's default)")
    return found


def read_bound(host: LocalHost, prefill: Mapping[str, Any]) -> Bound:
    """What a prompt token weighs at least, as the prefill itself tells. A scheduler that does not answer here would answer no prompt.

    :raises Trouble: where the server does not answer or the key is wrong.
    """
    try:
        return bound_of(ask(host, prefill, "/server_info").json())
    except HttpError as error:
        return Bound(None, f"unknown: /server_info is {error}")
    except Trouble as trouble:
        if "answered 404" in str(trouble):
            return Bound(None, "unknown: this release has no /server_info")
        raise


def reply_of(answer: Response, name: str, stream: bool) -> Reply:
    """The completion in an answer of status 200. :raises Trouble: where there is none."""
    read = _streamed if stream else _whole
    try:
        text, usage = read(answer)
        prompt_tokens, completion_tokens = int(usage["prompt_tokens"]), int(usage["completion_tokens"])
    except _NoCompletion as error:
        raise Trouble(f"{name}: 200, but {error}", "a whole stream with usage" if stream else "a completion", f"look at the log of {name}") from None
    except (HttpError, LookupError, TypeError, ValueError, AttributeError):
        seen = f"{name}: 200, but no completion: {answer.text(200)}"
        raise Trouble(seen, "choices with text, and usage", f"look at the log of {name}") from None
    return Reply(text, prompt_tokens, completion_tokens, answer.headers.get(ROUTED, "").rstrip("/"))


class _NoCompletion(Exception):
    """What is wrong with a stream."""


def _whole(answer: Response) -> tuple[str, Mapping[str, Any]]:
    body = answer.json()
    if "error" in body:
        raise _NoCompletion(f"an error: {str(body['error'])[:200]}")
    return str(body["choices"][0]["text"]), body["usage"]


def _streamed(answer: Response) -> tuple[str, Mapping[str, Any]]:
    """Server-sent events: lines ``data: {…}``, the last one ``data: [DONE]``. Not ``splitlines``: it also splits inside JSON strings."""
    text: list[str] = []
    usage: Mapping[str, Any] | None = None
    events = 0
    for line in answer.body.decode("utf-8", "replace").split("\n"):
        if not line.startswith("data:"):
            continue
        data = line[len("data:") :].strip()
        if data == "[DONE]":
            break
        events += 1
        chunk = json.loads(data)
        if "error" in chunk:
            raise _NoCompletion(f"an error in event {events} of the stream: {str(chunk['error'])[:200]}")
        text += [str(choice.get("text") or "") for choice in chunk.get("choices") or []]
        usage = chunk.get("usage") or usage
    else:
        raise _NoCompletion(f"the stream broke off after {events} events, without data: [DONE]" if events else f"no stream: {answer.text(200)}")
    if usage is None:
        raise _NoCompletion(f"a stream of {events} events without usage")
    return "".join(text), usage


def ask_both(host: LocalHost, halves: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], request_id: str, timeout: float) -> list[Response | Trouble]:
    """Send the halves of one request (server and body) at the same time; the answer or the trouble of each, in the same order.

    A half that fails ends the wait for the other one soon. That one's thread is left behind: it is a daemon and ends with its time-out
    or with this process, which closes the connection and so ends the request on the server too.
    """
    told: queue.Queue[tuple[int, Response | Trouble]] = queue.Queue()

    def run(number: int, entry: Mapping[str, Any], body: Mapping[str, Any]) -> None:
        try:
            answer: Response | Trouble = ask(host, entry, COMPLETIONS, timeout, method="POST", payload=body, headers={"X-Request-Id": request_id})
        except Trouble as trouble:
            answer = trouble
        told.put((number, answer))

    for number, (entry, body) in enumerate(halves):
        threading.Thread(target=run, args=(number, entry, body), daemon=True).start()
    answers: dict[int, Response | Trouble] = {}
    patience = timeout + GRACE_SECONDS
    while len(answers) < len(halves):
        try:
            number, answer = told.get(timeout=patience)
        except queue.Empty:
            break
        answers[number] = answer
        if isinstance(answer, Trouble):
            patience = GRACE_SECONDS
    return [answers.get(number) or _left(entry, answers) for number, (entry, _body) in enumerate(halves)]


def _left(entry: Mapping[str, Any], answers: Mapping[int, Response | Trouble]) -> Trouble:
    seen = f"{name_of(entry)}: no answer yet{f' {GRACE_SECONDS:g} s after the other half had failed' if answers else ''}, not waited for any longer"
    return Trouble(seen, "an answer", _log_of(entry), late=True)
