# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The served name on every surface: each way of being wrong has a word of its own, and a completion is sent last and once."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.host import http
from ansible_collections.plumbline.sglang.plugins.module_utils.host.http import BROKEN, TIMEOUT, UNREACHABLE, HttpError, Response
from ansible_collections.plumbline.sglang.plugins.module_utils.readiness.name_check import Report, check, endpoints_of
from ansible_collections.plumbline.sglang.plugins.module_utils.readiness.served_model import Endpoint, Told, bad_name, completion_route
from ansible_collections.plumbline.sglang.tests.unit.witness import ADDRESS, Host, body, entry

PREFILL, DECODE, ROUTER = (f"http://{ADDRESS}:{port}" for port in (30000, 30002, 30001))
PATH = "/srv/models/tiny-llama"
NAME = "llama"
NO_SUCH_MODEL = b'{"error":{"message":"The model does not exist","type":"invalid_request_error","param":"model","code":"model_not_found"}}'
NO_SUCH_PATH = b'{"detail":"Not Found"}'


def js(value: Any) -> Response:
    return Response(200, json.dumps(value).encode())


def serve(host: Host, url: str, name: str, asked: str = NAME, adapters: tuple[str, ...] = (), mode: str = "prefill") -> None:
    """A server that serves ``name``, in the shape of the captured one, and is asked for ``asked``."""
    models = body("prefill_endpoints.txt", "GET /v1/models")
    models["data"][0].update(id=name, root=name)
    # srt/entrypoints/http_server.py:2013: an adapter has the served name as its parent.
    models["data"] += [{**models["data"][0], "id": adapter, "root": f"/loras/{adapter}", "parent": name} for adapter in adapters]
    host.answers[f"{url}/v1/models"] = js(models)
    host.answers[f"{url}/model_info"] = js({**body("prefill_endpoints.txt", "GET /model_info"), "served_model_name": name, "disaggregation_mode": mode})
    known = js({**models["data"][0], "id": asked}) if name == asked else Response(404, NO_SUCH_MODEL)
    host.answers[f"{url}/v1/models/{asked}"] = known


def route(host: Host, *names: str, listed: tuple[str, ...] = (), capture: str = "smg") -> None:
    """A router that holds ``names`` for its prefill and its decode."""
    workers = body(f"{capture}_endpoints.txt", "GET /workers")
    by_role = dict(zip(("prefill", "decode"), names))
    for worker in workers["workers"]:
        worker["model_id"] = by_role[worker["worker_type"]]
    host.answers[f"{ROUTER}/workers"] = js(workers)
    host.answers[f"{ROUTER}/v1/models"] = js({"object": "list", "data": [{"id": name, "object": "model"} for name in listed or dict.fromkeys(names)]})
    host.answers[f"{ROUTER}/v1/completions"] = js({"model": NAME, "choices": [{"text": "x"}]})


def group(prefill: str = NAME, decode: str = NAME, router: tuple[str, str] = (NAME, NAME), asked: str = NAME) -> Host:
    host = Host("router")
    serve(host, PREFILL, prefill, asked)
    serve(host, DECODE, decode, asked, mode="decode")
    route(host, *router)
    return host


def plan(name: str = NAME) -> list[Endpoint]:
    found, bad = endpoints_of({"instances": [entry(role, served_name=name) for role in ("prefill", "decode", "router")]})
    assert not bad
    return found


def look(host: Host, completion: bool = False, name: str = NAME) -> Report:
    return check(plan(name), host, completion)


def states(report: Report) -> dict[tuple[str, str, str], str]:
    """(instance, surface, worker) → state, for what is not right."""
    return {(row.instance.split("-")[0], row.surface, row.worker): row.state for row in report.rows if not row.fine}


# --- right ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("capture", ["smg", "sglang_router"])
def test_what_the_real_servers_and_routers_answered_is_right(capture: str) -> None:
    """All of it as captured. They serve the path, and the path is what is asked for."""
    host = Host("router")
    for role, url in (("prefill", PREFILL), ("decode", DECODE)):
        for path in ("/v1/models", "/model_info"):
            host.answers[url + path] = js(body(f"{role}_endpoints.txt", f"GET {path}"))
        host.answers[f"{url}/v1/models/{PATH}"] = js(body(f"{role}_endpoints.txt", "GET /v1/models")["data"][0])
    for path in ("/v1/models", "/workers"):
        host.answers[ROUTER + path] = js(body(f"{capture}_endpoints.txt", f"GET {path}"))
    report = look(host, name=PATH)
    assert report.ok and {row.state for row in report.rows} == {"ok"}
    assert [(row.instance, row.surface) for row in report.rows] == [
        *[("prefill-g-a", surface) for surface in ("/v1/models", "/v1/models/<name>", "/model_info")],
        *[("decode-g-a", surface) for surface in ("/v1/models", "/v1/models/<name>", "/model_info")],
        ("router-g-a", "/v1/models"),
        ("router-g-a", "/workers"),
        ("router-g-a", "/workers"),
    ]
    assert all(row.observed == row.expected == PATH and not row.next for row in report.rows)
    assert {row.worker for row in report.rows if row.surface == "/workers"} == {PREFILL, DECODE}


def test_adapters_may_stand_beside_the_name() -> None:
    host = group()
    serve(host, PREFILL, NAME, adapters=("sql", "poems"))
    route(host, NAME, NAME, listed=("poems", NAME, "sql"))
    assert look(host).ok


def test_a_name_that_only_an_adapter_has_is_another_name() -> None:
    host = group()
    serve(host, PREFILL, "base", adapters=(NAME,))
    assert states(look(host))[("prefill", "/v1/models", "")] == "other_name"


def test_a_release_without_a_surface_is_judged_by_the_others() -> None:
    host = group()
    host.answers[f"{PREFILL}/v1/models/{NAME}"] = Response(404, NO_SUCH_PATH)
    host.answers[f"{PREFILL}/model_info"] = Response(404, NO_SUCH_PATH)
    host.answers[f"{PREFILL}/get_model_info"] = js({"model_path": PATH})
    report = look(host)
    assert report.ok
    assert [row.state for row in report.rows if row.instance == "prefill-g-a"] == ["ok", "not_told", "not_told"]
    serve(host, PREFILL, "other")
    host.answers[f"{PREFILL}/model_info"] = Response(404, NO_SUCH_PATH)
    host.answers[f"{PREFILL}/get_model_info"] = Response(404, NO_SUCH_PATH)
    assert ("prefill", "/v1/models", "") in states(look(host))


# --- wrong ------------------------------------------------------------------------------------------------------------


def test_a_path_served_as_name() -> None:
    report = look(group(PATH, PATH, (PATH, PATH)))
    assert set(states(report).values()) == {"path_as_name"} and len(states(report)) == 9
    assert "--served-model-name llama" in report.rows[0].next and "systemctl restart sglang-prefill-g-a.service" in report.rows[0].next


def test_the_name_of_a_model_from_a_hub_is_its_path() -> None:
    host = group()
    serve(host, PREFILL, "meta-llama/Llama-3.1-8B")
    assert states(look(host))[("prefill", "/v1/models", "")] == "other_name"
    info = {"model_path": "meta-llama/Llama-3.1-8B", "served_model_name": "meta-llama/Llama-3.1-8B"}
    host.answers[f"{PREFILL}/model_info"] = js(info)
    assert states(look(host))[("prefill", "/v1/models", "")] == "path_as_name"


def test_another_name_on_all_is_one_name_and_no_mixed_group() -> None:
    """The served name was changed in the inventory, and nothing was restarted."""
    report = look(group("llama-old", "llama-old", ("llama-old", "llama-old")))
    assert set(states(report).values()) == {"other_name"}
    row = report.rows[0]
    assert (row.observed, row.expected) == ("llama-old", "llama")
    assert "systemctl restart sglang-prefill-g-a.service" in row.next


def test_two_names_in_a_group_are_told_with_who_has_which() -> None:
    report = look(group(decode="qwen", router=(NAME, "qwen")))
    found = states(report)
    assert found[("PD group g", "group", "")] == "two_names"
    assert found[("decode", "/v1/models", "")] == "other_name" and ("prefill", "/v1/models", "") not in found
    assert next(row.observed for row in report.rows if row.surface == "group") == "llama: prefill-g-a@h1; qwen: decode-g-a@h1"


def test_two_groups_may_have_two_names() -> None:
    host = group()
    serve(host, "http://192.0.2.9:30000", "qwen", asked="qwen")
    other = entry("prefill", instance="prefill-q-a", group="q", served_name="qwen", url="http://192.0.2.9:30000")
    endpoints, bad = endpoints_of({"instances": [entry(role, served_name=NAME) for role in ("prefill", "decode", "router")] + [other]})
    assert not bad and check(endpoints, host, False).ok


@pytest.mark.parametrize("capture", ["smg", "sglang_router"])
def test_a_router_that_kept_an_old_name(capture: str) -> None:
    host = group()
    route(host, "llama-old", "llama-old", capture=capture)
    report = look(host)
    assert states(report) == {
        ("router", "/v1/models", ""): "kept_old_name",
        ("router", "/workers", PREFILL): "kept_old_name",
        ("router", "/workers", DECODE): "kept_old_name",
    }
    row = next(row for row in report.rows if row.worker == PREFILL)
    assert row.observed == "llama-old, while the worker itself says llama"
    assert "systemctl restart sglang-router-g-a.service" in row.next


def test_an_old_name_beside_the_right_one_is_kept_too() -> None:
    host = group()
    route(host, NAME, NAME, listed=("llama-old", NAME))
    assert states(look(host)) == {("router", "/v1/models", ""): "kept_old_name"}


def test_a_router_that_could_not_read_a_name_is_told_apart() -> None:
    """sglang-router without the workers' key registers them all the same, as model "unknown"."""
    host = group()
    route(host, "unknown", "unknown")
    report = look(host)
    assert set(states(report).values()) == {"no_answer"} and "give it the workers' key" in report.rows[-1].next


@pytest.mark.parametrize(
    ("answer", "state", "says"),
    [
        (Response(401), "wrong_key", "answered 401: alive, but it wants a key and none was given"),
        (Response(403), "wrong_key", "answered 403: alive"),
        (None, "nothing_there", "connection refused"),
        (HttpError(TIMEOUT, "no answer within 5 s"), "no_answer", "no answer within 5 s"),
        (HttpError(UNREACHABLE, "no connection (No route to host)"), "no_answer", "No route to host"),
        (HttpError(BROKEN, "not an HTTP answer"), "no_answer", "not an HTTP answer"),
        (Response(503, b"loading"), "no_answer", "answered 503: loading"),
        (Response(404), "no_answer", "answered 404"),
        (Response(200, b"<html>"), "no_answer", "not JSON"),
        (Response(200, b"[]"), "no_answer", "no object"),
        (Response(200, b'{"data": []}'), "no_answer", "no model is listed"),
        (Response(200, b'{"data": 7}'), "no_answer", "no model is listed"),
    ],
)
@pytest.mark.parametrize("url", [PREFILL, ROUTER])
def test_no_usable_answer_is_told_apart(url: str, answer: Any, state: str, says: str) -> None:
    host = group()
    del host.answers[f"{url}/v1/models"]
    if answer is not None:
        host.answers[f"{url}/v1/models"] = answer
    report = look(host)
    row = next(row for row in report.rows if row.url == url)
    assert (row.surface, row.state) == ("/v1/models", state) and says in row.observed and row.next


@pytest.mark.parametrize("answer", [HttpError(TIMEOUT, "no answer within 5 s"), Response(401)])
def test_a_server_that_gave_no_answer_is_asked_no_more(answer: Any) -> None:
    host = group()
    host.answers[f"{PREFILL}/v1/models"] = answer
    look(host)
    assert [url for url in host.asked if url.startswith(PREFILL)] == [f"{PREFILL}/v1/models"]


def test_a_router_with_no_models_still_tells_its_workers() -> None:
    host = group()
    host.answers[f"{ROUTER}/v1/models"] = Response(503, b"No models available")
    host.answers[f"{ROUTER}/workers"] = Response(200, b'{"workers":[],"total":0}')
    assert states(look(host)) == {("router", "/v1/models", ""): "no_answer", ("router", "/workers", ""): "no_answer"}


def test_a_server_that_lists_the_name_and_does_not_know_it_is_not_right() -> None:
    host = group()
    host.answers[f"{PREFILL}/v1/models/{NAME}"] = Response(404, NO_SUCH_MODEL)
    assert states(look(host)) == {("prefill", "/v1/models/<name>", ""): "other_name"}


def test_a_name_after_a_weight_update_shows_in_model_info() -> None:
    host = group()
    host.answers[f"{DECODE}/model_info"] = js({"model_path": PATH, "served_model_name": PATH})
    assert states(look(host)) == {("decode", "/model_info", ""): "path_as_name"}


def test_a_name_with_odd_characters_is_asked_as_one_path() -> None:
    host = group()
    look(host, name="my model?#x")
    assert f"{PREFILL}/v1/models/my%20model%3F%23x" in host.asked


def test_all_endpoints_are_asked_at_once() -> None:
    """Each waits until all have been asked: one after the other, none would ever be answered."""
    endpoints = [Endpoint(str(number), f"http://192.0.2.{number}:30000", "decode", NAME) for number in range(1, 21)]
    all_asked = threading.Barrier(len(endpoints))

    class Dead(Host):
        def request(self, url: str, **options: Any) -> Response:
            assert options["total"] == 5.0
            all_asked.wait(timeout=60)
            raise HttpError(TIMEOUT, "no connection within 3 s")

    report = check(endpoints, Dead(), True)
    assert [row.state for row in report.rows] == ["no_answer"] * 20 and not report.sent


def test_a_key_that_cannot_be_read_is_no_statement_about_the_server(tmp_path: Any) -> None:
    host: Any = group()
    host.request = http.request
    endpoint = Endpoint("x", "http://127.0.0.1:1", "prefill", NAME, credential_path=str(tmp_path / "none"))
    row = check([endpoint], host, True).rows[0]
    assert row.state == "key_unreadable" and str(tmp_path / "none") in row.observed


def test_no_key_is_in_what_is_told(tmp_path: Any) -> None:
    key = tmp_path / "key"
    key.write_text("s3cret-key\n")
    host = group()
    host.answers[f"{PREFILL}/v1/models"] = Response(500, b"got Bearer s3cret-key")
    endpoints, _bad = endpoints_of({"instances": [entry("prefill", served_name=NAME, credentials=[{"name": "api-key", "path": str(key)}])]})
    report = check(endpoints, host, False)
    assert host.sent[0]["credential"].path == str(key)
    assert "s3cret" not in repr(report) and "<hidden>" in report.rows[0].observed


# --- a completion -----------------------------------------------------------------------------------------------------


def completions(host: Host) -> list[str]:
    return [url for url in host.asked if url.endswith("/v1/completions")]


def test_one_completion_goes_through_the_router_once_all_names_are_right() -> None:
    host = group()
    report = look(host, completion=True)
    assert report.ok and (report.sent, report.sent_to, report.why_not) == (True, "router-g-a", "")
    assert (completions(host), host.asked[-1]) == ([f"{ROUTER}/v1/completions"], f"{ROUTER}/v1/completions")
    payload = host.sent[-1]["payload"]
    assert (payload["model"], payload["n"], payload["max_tokens"]) == (NAME, 1, 4)
    assert (report.rows[-1].surface, report.rows[-1].state) == ("completion", "ok")


def test_none_is_sent_where_a_name_is_wrong() -> None:
    host = group(decode="qwen")
    report = look(host, completion=True)
    assert completions(host) == [] and not report.sent and "names are not right" in report.why_not


def test_a_pair_without_a_router_gets_none() -> None:
    host = group()
    report = check([endpoint for endpoint in plan() if endpoint.role != "router"], host, True)
    assert report.ok and completions(host) == [] and "no router and no regular server" in report.why_not


def test_a_regular_server_gets_one() -> None:
    host = Host("router")
    serve(host, PREFILL, NAME, mode="null")
    host.answers[f"{PREFILL}/v1/completions"] = js({"model": NAME, "choices": [{"text": "x"}]})
    assert check([Endpoint("x", PREFILL, "regular", NAME)], host, True).sent_to == "x"


@pytest.mark.parametrize("mode", ["prefill", "decode", None])
def test_a_server_given_as_regular_that_is_none_gets_none(mode: Any) -> None:
    host = Host("router")
    serve(host, PREFILL, NAME, mode=mode)
    report = check([Endpoint("x", PREFILL, "regular", NAME)], host, True)
    assert completions(host) == [] and f"disaggregation mode is {mode or 'not told'}" in report.why_not


@pytest.mark.parametrize("role", ["prefill", "decode"])
def test_no_route_ever_leads_to_half_a_pair(role: str) -> None:
    assert completion_route([Endpoint("x", PREFILL, role, NAME)], {PREFILL: Told(NAME, PATH, "null")})[0] is None


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (js({"model": "other", "choices": [{"text": "x"}]}), "other_name"),
        (js({"model": PATH, "choices": [{"text": "x"}]}), "path_as_name"),
        (js({"model": NAME, "choices": []}), "no_answer"),
        (js({"choices": [{"text": "x"}]}), "no_answer"),
        (Response(401), "wrong_key"),
        (Response(404), "no_answer"),
        (Response(503, b"No available prefill workers"), "no_answer"),
        (HttpError(TIMEOUT, "no answer within 30 s"), "no_answer"),
    ],
)
def test_a_completion_that_fails_is_not_tried_again(answer: Any, state: str) -> None:
    host = group()
    host.answers[f"{ROUTER}/v1/completions"] = answer
    report = look(host, completion=True)
    assert (report.ok, report.sent, report.rows[-1].state, len(completions(host))) == (False, True, state, 1)
    assert report.rows[-1].next
    if state == "no_answer" and not (isinstance(answer, Response) and answer.status == 200):
        assert "about a minute" in report.rows[-1].next


# --- what somebody typed ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "says"), [("a:b", "without a colon"), ("", "expected a name"), (None, "expected a name"), (" ", "expected a name")])
def test_a_name_that_cannot_be_served_is_refused(name: Any, says: str) -> None:
    assert says in bad_name(name)
    assert bad_name("meta-llama/Llama-3.1-8B") == ""


def test_plain_parameters_become_endpoints() -> None:
    found, bad = endpoints_of(
        {
            "served_name": NAME,
            "credential_path": "/key",
            "workers": [{"url": f"{PREFILL}/", "role": "prefill", "name": None}],
            "routers": [{"url": ROUTER, "name": "front"}],
        }
    )
    assert bad == []
    assert [(item.instance, item.url, item.role, item.credential_path) for item in found] == [
        (f"{ADDRESS}:30000", PREFILL, "prefill", "/key"),
        ("front", ROUTER, "router", "/key"),
    ]


def test_the_rank_that_answers_to_everything_is_not_asked() -> None:
    follower = entry("prefill", argv=[["--node-rank", "1"]])
    assert endpoints_of({"instances": [follower]}) == ([], ["nothing to ask is given: instances, workers or routers"])


def test_the_name_asked_for_and_the_key_may_be_given_beside_a_plan() -> None:
    found, _bad = endpoints_of({"instances": [entry("prefill", credentials=[{"name": "api-key", "path": "/a"}])], "served_name": NAME, "credential_path": "/b"})
    assert (found[0].expected, found[0].credential_path) == (NAME, "/b")
