# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The name under which a model is served, as every server and router tells it, against the one asked for. Pure.

A worker tells it at ``/v1/models`` (with the names of LoRA adapters beside it), ``/v1/models/<name>`` and ``/model_info``. A router
tells it at ``/v1/models``, and at ``/workers`` as what it read of each worker when that one registered. A completion's reply
proves nothing alone: the engine does not check the name and echoes what was asked (srt/entrypoints/openai/serving_base.py).

Without ``--served-model-name`` the name is the model's path, and it becomes the path after a weight update
(srt/managers/tokenizer_manager.py:2368). It must not hold a colon (srt/arg_groups/validation_hook.py:215).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .addresses import normal
from .router_view import UNREAD_MODEL, worker_facts

OK = "ok"
PATH = "path_as_name"
OTHER = "other_name"
TWO = "two_names"
KEPT = "kept_old_name"
WRONG_KEY = "wrong_key"
KEY_UNREADABLE = "key_unreadable"
NOTHING_THERE = "nothing_there"
NO_ANSWER = "no_answer"
#: A release that does not have this surface. The others decide.
NOT_TOLD = "not_told"
STATES = (OK, PATH, OTHER, TWO, KEPT, WRONG_KEY, KEY_UNREADABLE, NOTHING_THERE, NO_ANSWER, NOT_TOLD)

MODELS = "/v1/models"
MODEL = "/v1/models/<name>"
INFO = "/model_info"
WORKERS = "/workers"
COMPLETION = "completion"
GROUP = "group"

_UNREAD = "the router could not read a worker's name: give it the workers' key, and restart it"


@dataclass(frozen=True)
class Endpoint:
    """A server or router to ask. ``role`` is prefill, decode, regular or router; ``group`` its PD group; ``expected`` the name asked for."""

    instance: str
    url: str
    role: str
    expected: str
    host: str = ""
    group: str = ""
    unit: str = ""
    credential_path: str = ""


@dataclass(frozen=True)
class Answer:
    """What one request got. ``problem`` is one of the states above where there is no usable answer, and empty where ``body`` holds an
    object; ``status`` is 0 where no answer came; ``text`` says what was seen."""

    status: int = 0
    body: Mapping[str, Any] | None = None
    problem: str = ""
    text: str = ""


@dataclass(frozen=True)
class Told:
    """What a worker says of itself; None where it does not tell."""

    name: str | None = None
    path: str | None = None
    mode: str | None = None
    adapters: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """What one surface of one endpoint told. ``worker`` is the worker that a router speaks of."""

    instance: str
    host: str
    url: str
    role: str
    surface: str
    state: str
    observed: str
    expected: str
    next: str = ""
    worker: str = ""

    @property
    def fine(self) -> bool:
        """Whether it contradicts nothing."""
        return self.state in (OK, NOT_TOLD)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for a module's result."""
        return asdict(self)


def bad_name(name: Any) -> str:
    """Why a model cannot be served under ``name``; empty where it can."""
    if not isinstance(name, str) or not name.strip():
        return f"served_name is {name!r}, expected a name"
    if ":" in name:
        return f"served_name is {name!r}, expected a name without a colon: the engine takes what is behind it for a LoRA adapter"
    return ""


def told_by(answers: Mapping[str, Answer]) -> Told:
    """What a worker's answers tell of it."""
    cards = _cards(answers.get(MODELS))
    info = (answers[INFO].body or {}) if INFO in answers else {}
    name = cards[0][0] if cards else _text(info.get("served_model_name"))
    return Told(name, _text(info.get("model_path")), _text(info.get("disaggregation_mode")), tuple(identity for identity, _parent in cards[1:]))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _cards(answer: Answer | None) -> list[tuple[str, Any]]:
    """(id, parent) of each model listed, the served one first: it has no parent, an adapter has the served one."""
    data = (answer.body or {}).get("data") if answer else None
    cards = [(str(card["id"]), card.get("parent")) for card in data if isinstance(card, Mapping) and card.get("id")] if isinstance(data, list) else []
    return sorted(cards, key=lambda card: card[1] is not None)


def _naming(observed: str, expected: str, paths: Iterable[str | None]) -> str:
    """The state of one name."""
    if observed == expected:
        return OK
    return PATH if observed.startswith(("/", "./", "../", "~")) or observed in paths else OTHER


def judge_worker(endpoint: Endpoint, answers: Mapping[str, Answer]) -> list[Row]:
    """One row for each surface that was asked."""
    told = told_by(answers)
    rows = []
    for surface, answer in answers.items():
        if answer.problem:
            rows.append(_problem(endpoint, surface, answer))
        elif surface == MODELS:
            rows.append(_listed(endpoint, told, _cards(answer)))
        elif surface == MODEL:
            rows.append(_single(endpoint, told, answer))
        else:
            rows.append(_informed(endpoint, told, answer))
    return rows


def _row(endpoint: Endpoint, surface: str, state: str, observed: str, worker: str = "", then: str = "") -> Row:
    step = "" if state in (OK, NOT_TOLD) else then or advice(endpoint, state, observed)
    return Row(endpoint.instance, endpoint.host, endpoint.url, endpoint.role, surface, state, observed, endpoint.expected, step, worker)


def _problem(endpoint: Endpoint, surface: str, answer: Answer) -> Row:
    return _row(endpoint, surface, answer.problem, answer.text)


def _listed(endpoint: Endpoint, told: Told, cards: Sequence[tuple[str, Any]]) -> Row:
    if not cards:
        return _row(endpoint, MODELS, NO_ANSWER, "no model is listed")
    # A name that only an adapter has is not the model's.
    return _row(endpoint, MODELS, _naming(cards[0][0], endpoint.expected, [told.path]), cards[0][0])


def _single(endpoint: Endpoint, told: Told, answer: Answer) -> Row:
    identity = _text((answer.body or {}).get("id"))
    if answer.status == 404:
        error = (answer.body or {}).get("error")
        if not isinstance(error, Mapping):
            return _row(endpoint, MODEL, NOT_TOLD, "404: this release does not have it")
        state = _naming(told.name, endpoint.expected, [told.path]) if told.name else OTHER
        # It lists the name and does not know it: whatever that is, it is not this name alone.
        return _row(endpoint, MODEL, OTHER if state == OK else state, f"404: it does not know {endpoint.expected!r}")
    if identity is None:
        return _row(endpoint, MODEL, NO_ANSWER, "the answer has no id")
    return _row(endpoint, MODEL, _naming(identity, endpoint.expected, [told.path]), identity)


def _informed(endpoint: Endpoint, told: Told, answer: Answer) -> Row:
    if answer.status == 404:
        return _row(endpoint, INFO, NOT_TOLD, "404: this release does not have it")
    name = _text((answer.body or {}).get("served_model_name"))
    if name is None:
        return _row(endpoint, INFO, NOT_TOLD, "this release does not tell served_model_name there")
    return _row(endpoint, INFO, _naming(name, endpoint.expected, [told.path]), name)


def judge_router(endpoint: Endpoint, answers: Mapping[str, Answer], told: Mapping[str, Told]) -> list[Row]:
    """The router's own list and its view of each worker.

    :param told: worker's URL → what it says of itself, for the workers of this router that were asked. A router that names a
        worker otherwise than the worker itself has kept an old name.
    """
    rows = []
    for surface, answer in answers.items():
        if answer.problem:
            rows.append(_problem(endpoint, surface, answer))
        elif surface == MODELS:
            rows.append(_router_list(endpoint, answer, told))
        else:
            rows += _router_workers(endpoint, answer, told)
    return rows


def _router_list(endpoint: Endpoint, answer: Answer, told: Mapping[str, Told]) -> Row:
    ids = [identity for identity, _parent in _cards(answer)]
    if not ids:
        return _row(endpoint, MODELS, NO_ANSWER, "no model is listed")
    if set(ids) == {UNREAD_MODEL} and endpoint.expected != UNREAD_MODEL:
        return _row(endpoint, MODELS, NO_ANSWER, UNREAD_MODEL, then=_UNREAD)
    names = {item.name for item in told.values()}
    known = names | {adapter for item in told.values() for adapter in item.adapters}
    complete = bool(told) and None not in names
    beside = [identity for identity in ids if identity != endpoint.expected]
    if endpoint.expected in ids:
        # A name beside it that no worker has (any more). Where a worker did not tell, nobody can say.
        old = [identity for identity in beside if identity not in known] if complete else []
        text = ", ".join([endpoint.expected, *(old or beside)])
        return _row(endpoint, MODELS, KEPT if old else OK, text)
    if complete and names == {endpoint.expected}:
        return _row(endpoint, MODELS, KEPT, ", ".join(ids))
    return _row(endpoint, MODELS, _naming(ids[0], endpoint.expected, [item.path for item in told.values()]), ", ".join(ids))


def _router_workers(endpoint: Endpoint, answer: Answer, told: Mapping[str, Told]) -> list[Row]:
    workers = worker_facts(answer.body)
    if not workers:
        return [_row(endpoint, WORKERS, NO_ANSWER, "the router has no workers")]
    rows = []
    for worker in workers:
        itself = told.get(worker["url"], Told())
        name = str(worker["model"] or "")
        then = ""
        if name in ("", UNREAD_MODEL) and endpoint.expected != UNREAD_MODEL:
            state, then = NO_ANSWER, _UNREAD
        elif name != endpoint.expected and itself.name is not None and itself.name != name:
            state = KEPT
        else:
            state = _naming(name, endpoint.expected, [item.path for item in told.values()])
        observed = f"{name}, while the worker itself says {itself.name}" if state == KEPT else name or "no model id"
        row = _row(endpoint, WORKERS, state, observed, worker["url"], then)
        if row not in rows:
            rows.append(row)
    return rows


def two_names(endpoints: Sequence[Endpoint], told: Mapping[str, Told]) -> list[Row]:
    """A row for each PD group whose servers do not all serve one name. ``told``: URL → what it says of itself."""
    rows = []
    for group in dict.fromkeys(endpoint.group for endpoint in endpoints):
        members = [endpoint for endpoint in endpoints if endpoint.group == group and endpoint.role != "router"]
        names: dict[str, list[str]] = {}
        for endpoint in members:
            name = told.get(normal(endpoint.url), Told()).name
            if name is not None:
                names.setdefault(name, []).append(f"{endpoint.instance}@{endpoint.host}" if endpoint.host else endpoint.instance)
        if len(names) > 1:
            text = "; ".join(f"{name}: {', '.join(who)}" for name, who in names.items())
            label = f"PD group {group}" if group else "the workers"
            rows.append(Row(label, "", "", "", GROUP, TWO, text, members[0].expected, "serve one name in a PD group: a router takes them for two models"))
    return rows


def completion_route(endpoints: Sequence[Endpoint], told: Mapping[str, Told]) -> tuple[Endpoint | None, str]:
    """Where a plain completion may be sent, and why nowhere.

    Through the first router, else to the first regular server that says itself that it is one. Never to a prefill or decode: it
    needs a bootstrap room, and one that comes without waits for a partner that never comes.
    """
    for endpoint in endpoints:
        if endpoint.role == "router":
            return endpoint, ""
    reason = "no router and no regular server was given, and a prefill or decode takes no plain completion"
    for endpoint in endpoints:
        if endpoint.role == "regular":
            mode = told.get(normal(endpoint.url), Told()).mode
            if mode == "null":
                return endpoint, ""
            reason = f"{endpoint.url} is given as regular and says that its disaggregation mode is {mode or 'not told'}"
    return None, reason


def completion_payload(name: str) -> dict[str, Any]:
    """The smallest request that generates."""
    return {"model": name, "prompt": "plumbline", "max_tokens": 4, "temperature": 0, "n": 1, "stream": False}


def judge_completion(endpoint: Endpoint, answer: Answer) -> Row:
    """The name in the reply."""
    if answer.problem:
        then = ""
        if answer.problem == NO_ANSWER and endpoint.role == "router":
            then = (
                "look at the logs of the prefill and the decode; a router names the prefill also where the decode is at fault. "
                "Its breakers may now be open for about a minute: wait before the next try"
            )
        return _row(endpoint, COMPLETION, answer.problem, answer.text, then=then)
    name = _text((answer.body or {}).get("model"))
    if name is None or not (answer.body or {}).get("choices"):
        return _row(endpoint, COMPLETION, NO_ANSWER, "200 without a model or without choices")
    return _row(endpoint, COMPLETION, _naming(name, endpoint.expected, []), name)


def advice(endpoint: Endpoint, state: str, observed: str) -> str:
    """What to do about one row."""
    flag = f"--served-model-name {endpoint.expected}"
    restart = f"systemctl restart {endpoint.unit}" if endpoint.unit else "restart it"
    if state in (PATH, OTHER) and endpoint.role == "router":
        return f"put the workers right first, then {restart}: a router reads a worker's name once"
    if state == PATH:
        return f"it was started without {flag}, or its weights were updated since: give it the flag (served_name in the plan), {restart}"
    if state == OTHER:
        return f"where its arguments already say {flag}: {restart}; else deploy it, or ask for the name that it has"
    if state == KEPT:
        return f"{restart}: a router reads a worker's name once, when it registers"
    if state == WRONG_KEY:
        where = f"the key in {endpoint.credential_path}" if endpoint.credential_path else "give credential_path; the key in it"
        return f"{where} must be the one that {endpoint.instance} was started with"
    if state == KEY_UNREADABLE:
        return "run this as root, or as a member of the service group, on a host that has the file"
    if state == NOTHING_THERE:
        return f"systemctl status {endpoint.unit}" if endpoint.unit else f"see whether it runs: curl -m 5 {endpoint.url}/health"
    return f"curl -m 5 {endpoint.url}{MODELS}; then its log"
