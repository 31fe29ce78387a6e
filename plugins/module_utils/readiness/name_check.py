# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asking servers and routers for the name they serve, all at once; then, where all is right, one completion at most.

served_model.py judges. A completion comes last and once: one that fails counts against the breakers of both workers, which then
stay open for about a minute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from urllib.parse import quote

from ..host.credentials import Credential, CredentialError, Redactor
from ..host.http import REFUSED, HttpError
from ..host.local import LocalHost
from ..signals.base import is_follower, key_path
from .addresses import bad_address, normal
from .instance_entry import problems
from .served_model import (
    INFO,
    KEY_UNREADABLE,
    MODEL,
    MODELS,
    NO_ANSWER,
    NOTHING_THERE,
    WORKERS,
    WRONG_KEY,
    Answer,
    Endpoint,
    Row,
    Told,
    bad_name,
    completion_payload,
    completion_route,
    judge_completion,
    judge_router,
    judge_worker,
    told_by,
    two_names,
)

ASK_SECONDS = 5.0
ASK_AT_ONCE = 32


@dataclass
class Report:
    """Rows in the order asked. ``sent`` tells whether a completion went to ``sent_to``; ``why_not`` why none did."""

    rows: list[Row] = field(default_factory=list)
    sent: bool = False
    sent_to: str = ""
    why_not: str = ""

    @property
    def ok(self) -> bool:
        """Whether everything that told a name told the one asked for, and everything answered."""
        return all(row.fine for row in self.rows)

    def text(self) -> str:
        """Each surface that is not right on a line of its own, with what to do; one line where all are."""
        wrong = [row for row in self.rows if not row.fine]
        sent = f"a completion through {self.sent_to} came back" if self.sent else f"no completion was sent: {self.why_not}"
        if not wrong:
            names = ", ".join(dict.fromkeys(row.expected for row in self.rows))
            asked = ", ".join(dict.fromkeys(row.instance for row in self.rows))
            return f"{names}: served under this name by {asked}; {sent}"
        lines = []
        for row in wrong:
            where = f"{row.instance}{' on ' + row.host if row.host else ''}{' (' + row.url + ')' if row.url else ''}"
            about = f" for {row.worker}" if row.worker else ""
            lines += [f"{where}: {row.surface}{about}: {row.state}: seen {row.observed}; expected {row.expected}", f"  next: {row.next}"]
        return "\n".join(lines if self.sent else [*lines, sent])


def endpoints_of(parameters: Mapping[str, Any]) -> tuple[list[Endpoint], list[str]]:
    """The endpoints that a module's parameters describe, and what is wrong with the parameters.

    Ranks above 0 of a server over several nodes are left out: nothing but a dummy server answers there.
    """
    wanted, key = parameters.get("served_name"), parameters.get("credential_path") or ""
    found: list[Endpoint] = []
    bad: list[str] = []
    for entry in parameters.get("instances") or []:
        holes = problems(entry)
        bad += holes
        if not holes and not is_follower(entry):
            found.append(_planned(entry, wanted, key))
    for role, name in ((None, "workers"), ("router", "routers")):
        for item in parameters.get(name) or []:
            url = normal(item["url"] or "")
            found.append(Endpoint(item.get("name") or url.partition("//")[2] or name, url, role or item["role"], wanted or "", credential_path=key))
    for endpoint in found:
        bad += [text for text in (bad_address(f"url of {endpoint.instance}", endpoint.url), bad_name(endpoint.expected or None)) if text]
    if not found and not bad:
        bad.append("nothing to ask is given: instances, workers or routers")
    return found, list(dict.fromkeys(bad))


def _planned(entry: Mapping[str, Any], wanted: str | None, key: str) -> Endpoint:
    return Endpoint(
        str(entry["instance"]),
        normal(entry["url"]),
        str(entry["role"]),
        wanted or str(entry.get("served_name") or ""),
        str(entry.get("host") or ""),
        str(entry.get("group") or ""),
        str(entry["unit"]),
        key or key_path(entry),
    )


def check(endpoints: Sequence[Endpoint], host: LocalHost, completion: bool, seconds: float = 30.0) -> Report:
    """Ask all endpoints, judge, and send one completion of at most ``seconds`` where ``completion`` and all names are right."""
    with ThreadPoolExecutor(max_workers=min(ASK_AT_ONCE, max(1, len(endpoints)))) as pool:
        answers = list(pool.map(lambda endpoint: ask(endpoint, host), endpoints))
    told = {endpoint.url: told_by(found) for endpoint, found in zip(endpoints, answers) if endpoint.role != "router"}
    report = Report()
    for endpoint, found in zip(endpoints, answers):
        if endpoint.role == "router":
            report.rows += judge_router(endpoint, found, _of_group(endpoint, endpoints, told))
        else:
            report.rows += judge_worker(endpoint, found)
    report.rows += two_names(endpoints, told)
    if not completion:
        report.why_not = "none was asked for"
    elif not report.ok:
        report.why_not = "the names are not right, so it would prove nothing and might open a router's breakers"
    else:
        _complete(report, endpoints, told, host, seconds)
    redactor = Redactor.of({endpoint.credential_path for endpoint in endpoints if endpoint.credential_path})
    report.rows = [replace(row, **{name: redactor.text(value) for name, value in asdict(row).items()}) for row in report.rows]
    return report


def _of_group(router: Endpoint, endpoints: Sequence[Endpoint], told: Mapping[str, Told]) -> dict[str, Told]:
    return {endpoint.url: told[endpoint.url] for endpoint in endpoints if endpoint.group == router.group and endpoint.role != "router"}


def _complete(report: Report, endpoints: Sequence[Endpoint], told: Mapping[str, Told], host: LocalHost, seconds: float) -> None:
    target, report.why_not = completion_route(endpoints, told)
    if target is None:
        return
    payload = completion_payload(target.expected)
    answer = _get(target, "/v1/completions", host, method="POST", payload=payload, total=seconds)
    if answer.status == 404 and not answer.problem:
        answer = Answer(404, problem=NO_ANSWER, text="/v1/completions answered 404")
    report.sent, report.sent_to = True, target.instance
    report.rows.append(judge_completion(target, answer))


def ask(endpoint: Endpoint, host: LocalHost) -> dict[str, Answer]:
    """Surface → answer, in the order asked. One that gives no usable answer ends the questions: the next would get none either."""
    paths = {MODELS: "/v1/models"}
    if endpoint.role == "router":
        paths[WORKERS] = "/workers"
    else:
        paths[MODEL] = f"/v1/models/{quote(endpoint.expected, safe='/')}"
        paths[INFO] = "/model_info"
    answers: dict[str, Answer] = {}
    for surface, path in paths.items():
        answer = _get(endpoint, path, host)
        if surface == INFO and answer.status == 404:
            # Its name in releases before /model_info.
            answer = _get(endpoint, "/get_model_info", host)
        if surface in (MODELS, WORKERS) and answer.status == 404 and not answer.problem:
            answer = Answer(404, problem=NO_ANSWER, text=f"{path} answered 404")
        answers[surface] = answer
        # A router that has no model to list may still tell its workers.
        if answer.problem and not (endpoint.role == "router" and answer.status >= 500):
            break
    return answers


def _get(endpoint: Endpoint, path: str, host: LocalHost, **options: Any) -> Answer:
    """One request. A 404 is an answer: which one, the surface decides."""
    credential = Credential(endpoint.credential_path) if endpoint.credential_path else None
    try:
        answer = host.request(endpoint.url + path, credential=credential, **{"total": ASK_SECONDS, **options})
        if answer.refused_key:
            how = "the key is wrong" if credential else "it wants a key and none was given"
            return Answer(answer.status, problem=WRONG_KEY, text=f"{path} answered {answer.status}: alive, but {how}")
        if answer.status not in (200, 404):
            return Answer(answer.status, problem=NO_ANSWER, text=f"{path} answered {answer.status}: {answer.text(120)}")
        if answer.status == 404:
            try:
                body = answer.json()
            except HttpError:
                body = None
            return Answer(404, body if isinstance(body, dict) else None)
        body = answer.json()
    except HttpError as error:
        return Answer(problem=NOTHING_THERE if error.kind == REFUSED else NO_ANSWER, text=f"{path}: {error}")
    except CredentialError as error:
        return Answer(problem=KEY_UNREADABLE, text=str(error))
    if not isinstance(body, dict):
        return Answer(200, problem=NO_ANSWER, text=f"{path} answered something that is no object: {answer.text(80)}")
    return Answer(200, body)
