# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each signal, by what the real programs wrote and answered: where it passes, and where each kind of fault makes it say no."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.host.credentials import Redactor
from ansible_collections.plumbline.sglang.plugins.module_utils.host.http import Response
from ansible_collections.plumbline.sglang.plugins.module_utils.signals import bootstrap, identity, log, process
from ansible_collections.plumbline.sglang.plugins.module_utils.signals.log_view import LogView
from ansible_collections.plumbline.sglang.tests.unit.witness import (
    ADDRESS,
    CHILD,
    OTHER_RUN,
    PID,
    STRANGER,
    Host,
    body,
    capture,
    context,
    entry,
    ready,
    records,
    route,
)

PREFILL = f"http://{ADDRESS}:30000"


# --- process ----------------------------------------------------------------------------------------------------------


def test_process_passes_for_the_run_asked_about_with_the_planned_render_on_its_own_socket() -> None:
    signal = process.observe(context(ready()))
    assert signal.state == "passed"
    assert f"PID {PID}" in signal.observed


def test_process_waits_for_the_socket_that_a_server_opens_after_loading() -> None:
    assert process.observe(context(Host())).state == "pending"


@pytest.mark.parametrize(
    ("unit", "says"),
    [
        ({"load_state": "not-found"}, "not installed"),
        ({"load_state": "bad-setting"}, "bad-setting"),
        ({"active_state": "failed", "sub_state": "failed", "main_pid": 0, "exec_main_code": 1, "exec_main_status": 3}, "exited with status 3"),
        ({"active_state": "failed", "sub_state": "failed", "main_pid": 0, "exec_main_code": 2, "exec_main_status": 9}, "killed by SIGKILL"),
        ({"active_state": "inactive", "sub_state": "dead", "main_pid": 0}, "does not run"),
        ({"invocation_id": OTHER_RUN}, f"now runs {OTHER_RUN}"),
    ],
)
def test_process_fails_where_the_run_is_over_or_never_was(unit: dict[str, Any], says: str) -> None:
    host = ready()
    host.unit_is(**unit)
    signal = process.observe(context(host))
    assert (signal.state, says in signal.observed) == ("failed", True), signal
    assert signal.next


def test_a_restart_is_a_failure_in_a_deployment_only() -> None:
    host = ready()
    host.unit_is(n_restarts=1)
    assert process.observe(context(host, deployment=True)).state == "failed"
    assert process.observe(context(host)).state == "passed"


def test_a_pending_automatic_restart_is_a_failure_in_a_deployment_only() -> None:
    host = ready()
    host.unit_is(active_state="activating", sub_state="auto-restart", main_pid=0, exec_main_code=1, exec_main_status=1)
    assert process.observe(context(host, deployment=True)).state == "failed"
    assert process.observe(context(host)).state == "pending"


def test_process_fails_where_another_process_holds_the_port() -> None:
    host = ready()
    host.sockets[30000] = STRANGER
    signal = process.observe(context(host))
    assert signal.state == "failed"
    assert f"PID {STRANGER}" in signal.observed and "/user.slice" in signal.observed


def test_a_unit_that_lost_its_port_says_to_whom() -> None:
    host = ready()
    host.sockets[30000] = STRANGER
    host.unit_is(active_state="failed", sub_state="failed", main_pid=0, exec_main_code=1, exec_main_status=3, control_group="")
    signal = process.observe(context(host))
    assert "exited with status 3" in signal.observed and f"PID {STRANGER}" in signal.observed


def test_a_child_of_the_unit_may_hold_the_port() -> None:
    host = ready()
    host.sockets[30000] = CHILD
    assert process.observe(context(host)).state == "passed"


def test_an_owner_that_cannot_be_seen_is_unknown() -> None:
    host = ready()
    host.visible = False
    assert process.observe(context(host)).state == "unknown"


@pytest.mark.parametrize(
    ("environment", "state"),
    [
        ({"PATH": "/bin", "PLUMBLINE_RENDER": "e" * 64}, "failed"),
        ({"PATH": "/bin"}, "failed"),
        ({}, "unknown"),
    ],
)
def test_the_running_process_must_be_the_planned_rendered_set(environment: dict[str, str], state: str) -> None:
    host = ready()
    host.environments[PID] = environment
    assert process.observe(context(host)).state == state


# --- log --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["prefill", "decode"])
def test_log_passes_for_a_good_start_with_every_stage(role: str) -> None:
    looked = context(Host(role), role, capture(f"{role}_ready.log"))
    assert log.observe(looked).state == "passed"
    stages = [hit.row.name for hit in looked.log.stages]
    assert [name for name in ("arguments", "load-begin", "load-end", "kv-cache", "all-ranks", "http", "warmup-begin") if name not in stages] == []
    assert ("bootstrap-server" in stages) == (role == "prefill")


def test_every_prefix_of_a_good_start_is_pending() -> None:
    lines = capture("prefill_ready.log").split("\n")
    last = next(number for number, line in enumerate(lines) if "fired up" in line)
    states = {log.observe(context(Host(), text="\n".join(lines[:upto]))).state for upto in range(0, last, 7)}
    assert states == {"pending"}


def test_the_ready_line_after_a_failed_warm_up_is_no_readiness() -> None:
    text = capture("prefill_ready.log").replace(
        "Disaggregation warmup requests completed for all 1 DP ranks", "Disaggregation warmup failed (mode=prefill), status codes: [500]"
    )
    text = "\n".join(line for line in text.split("\n") if "End of disaggregation warmup" not in line)
    signal = log.observe(context(Host(), text=text))
    assert signal.state == "failed"
    assert "status codes: [500]" in signal.observed and "ready line followed" in signal.observed


def test_the_ready_line_without_a_warm_up_is_unknown() -> None:
    text = "\n".join(line for line in capture("prefill_ready.log").split("\n") if "disaggregation warmup" not in line.lower())
    assert log.observe(context(Host(), text=text)).state == "unknown"


@pytest.mark.parametrize(("status", "state"), [(200, "passed"), (500, "failed")])
def test_the_older_generation_of_the_warm_up_line(status: int, state: str) -> None:
    text = f"server_args=ServerArgs(x)\nEnd of prefill disaggregation mode warmup with status {status}, resp: x\nThe server is fired up and ready to roll!"
    assert log.observe(context(Host(), text=text)).state == state


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("port_taken.log", "address already in use"),
        ("bad_flag.log", "unrecognized arguments: --no-such-flag 1"),
    ],
)
def test_log_fails_for_a_captured_failure(name: str, says: str) -> None:
    signal = log.observe(context(Host(), text=capture(name)))
    assert signal.state == "failed"
    assert says in signal.observed
    assert signal.next


def test_the_captured_logs_of_good_starts_hold_nothing_fatal() -> None:
    for name, role in (("tp2_ready.log", "prefill"), ("decode_ready.log", "decode"), ("smg_start.log", "router"), ("sglang_router_start.log", "router")):
        start = capture(name).split("fired up")[0]
        assert log.observe(context(Host(), role, start)).details["fatal"] == [], name


@pytest.mark.parametrize(
    ("row", "line"),
    [
        ("bootstrap-port-taken", "[2026-11-30 21:00:00] Server error: [Errno 98] error while attempting to listen"),
        ("child-crashed", "Subprocess scheduler_0 (pid=20374) crashed with exit code -9. Triggering SIGQUIT for cleanup..."),
        ("child-crashed", "Rank 0 scheduler died during initialization (exit code: -9). If exit code is -9"),
        ("child-failed", "SIGQUIT received. signum=None, frame=None. It usually means one child failed."),
        ("initialization", "Initialization failed. warmup error: Traceback"),
        ("watchdog", "Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)"),
        ("memory-fraction", "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value: mem_fraction_static=0.8"),
        ("gpu-unbalanced", "The memory capacity is unbalanced. Some GPUs may be occupied by other processes."),
        ("architecture", "ValueError: Model architectures ['X'] are not supported for now. Supported architectures: dict_keys"),
        ("pair-mismatch", "RuntimeError: Page size mismatch: prefill server has page_size=64"),
        ("transfer-missing", "ImportError: Please install NIXL by following the instructions"),
        ("graph-capture", "Exception: Capture cuda graph failed: out of memory. Possible solutions:"),
    ],
)
def test_each_fatal_row_is_met_by_the_engines_own_words(row: str, line: str) -> None:
    view = LogView("decode")
    view.feed(records(line))
    assert row in [hit.row.name for hit in view.fatals]


@pytest.mark.parametrize(
    "line",
    [
        "Fail to set RLIMIT_NOFILE: current limit exceeds maximum limit",
        "OpenAI Responses API (/v1/responses) disabled: OpenAIServingResponses init failed (ModuleNotFoundError: No module named 'x')",
        "No IB devices specified for Mooncake backend, falling back to auto discovery.",
        "kill_process_tree called: parent_pid=1, include_parent=False, pid=1",
        "E1130 21:41:27.760640  4574 transfer_metadata.cpp:1098] Local segment descriptor not found",
        "Detokenizer watchdog timeout (self.watchdog_timeout=300, self.soft=True)",
        "Ignore import error when loading sglang.srt.models.inkling: No module named 'cutlass'",
    ],
)
def test_what_only_looks_bad_decides_nothing(line: str) -> None:
    assert log.observe(context(Host(), text=capture("prefill_ready.log").split("SIGTERM")[0] + "\n" + line)).state == "passed"


def test_the_first_cause_of_a_chain_is_named_and_not_only_its_last_line() -> None:
    text = """[2026-11-30 21:00:00] Scheduler hit an exception: Traceback (most recent call last):
  File "a.py", line 1, in <module>
    import mooncake
ImportError: libibverbs.so.1: cannot open shared object file: No such file or directory

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "b.py", line 2, in <module>
ImportError: Please install mooncake by following the instructions
[2026-11-30 21:00:01] Received sigquit from a child process. It usually means the child failed."""
    signal = log.observe(context(Host(), text=text))
    assert signal.state == "failed"
    assert signal.details["chain"][0].startswith("ImportError: libibverbs.so.1")
    assert signal.observed.startswith("Scheduler hit an exception: ImportError: libibverbs.so.1")
    assert "libibverbs1" in signal.next
    assert "libibverbs.so.1" in signal.observed and "Please install mooncake" in signal.observed


def test_an_exception_that_was_survived_is_not_blamed_for_a_failure_that_explains_itself() -> None:
    survived = "Traceback (most recent call last):\n  File a\nKeyError: harmless\n"
    signal = log.observe(context(Host(), text=survived + capture("port_taken.log")))
    assert "address already in use" in signal.observed and "harmless" not in signal.observed
    signal = log.observe(context(Host(), text=survived + "SIGQUIT received. signum=3. It usually means one child failed."))
    assert "harmless" in signal.observed


def test_a_cause_that_no_row_knows_is_still_found() -> None:
    signal = log.observe(context(Host(), text=capture("bad_model_path.log")))
    assert signal.state == "pending"
    assert signal.details["cause"].startswith("huggingface_hub.errors.HFValidationError: Repo id must be")
    assert "it became: OSError" in signal.details["cause"]


def test_interleaved_tracebacks_of_two_ranks_are_kept_apart() -> None:
    view = LogView("prefill")
    first = ["Scheduler hit an exception: Traceback (most recent call last):", "  File a", "ValueError: one"]
    second = ["Scheduler hit an exception: Traceback (most recent call last):", "  File b", "KeyError: two"]
    for left, right in zip(first, second):
        view.feed(records(left, pid=1) + records(right, pid=2))
    assert view.chain == ["ValueError: one"]


@pytest.mark.parametrize(
    "line",
    [
        "[2026-11-30 21:00:00] Receive: obj=GenerateReqInput(text='Initialization failed. SIGQUIT received. The server is fired up and ready to roll!')",
        "[2026-11-30 21:00:00 TP0] Finish: obj=GenerateReqInput(text='Scheduler hit an exception: Traceback (most recent call last):')",
        '{"event": "request.received", "obj": {"text": "Disaggregation warmup failed (mode=prefill), status codes: [500]"}}',
    ],
)
def test_what_a_client_wrote_is_never_the_engines_word(line: str) -> None:
    view = LogView("prefill")
    view.feed(records(line))
    assert (view.fatals, view.ready, view.warmup_failed, view.chain, list(view.last_lines)) == ([], None, None, [], [])


def test_a_race_that_resolves_itself_is_not_fatal_but_giving_up_is() -> None:
    race = "Prefill instance failed to register to bootstrap server: Connection refused"
    assert log.observe(context(Host(), text=race)).state == "pending"
    assert log.observe(context(Host(), text=race.replace(": Connection", " after 5 retries: Connection"))).state == "failed"


def test_out_of_memory_is_fatal_before_the_ready_line_only() -> None:
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate"
    assert log.observe(context(Host(), text=oom)).state == "failed"
    assert log.observe(context(Host(), text=capture("prefill_ready.log") + oom)).state == "passed"


def test_a_rank_above_0_is_up_when_its_dummy_server_is() -> None:
    changes = {"argv": [["--node-rank", "1"]]}
    assert log.observe(context(Host(), text=capture("multinode_rank1_ready.log"), **changes)).state == "passed"
    assert log.observe(context(Host(), text=capture("prefill_ready.log").split("KV Cache")[0], **changes)).state == "pending"


@pytest.mark.parametrize("name", ["smg_start.log", "sglang_router_start.log"])
def test_a_router_is_up_when_it_listens(name: str) -> None:
    text = capture(name)
    assert log.observe(context(Host("router"), "router", text)).state == "passed"
    before = text.split("Starting server on")[0]
    assert log.observe(context(Host("router"), "router", before)).state == "pending"
    clash = before + "\nError: Address already in use (os error 98)"
    assert log.observe(context(Host("router"), "router", clash)).state == "failed"


def test_a_journal_that_cannot_be_read_is_unknown() -> None:
    looked = context(Host(), text=capture("prefill_ready.log"))
    looked.log.unreadable = "no permission"
    assert log.observe(looked).state == "unknown"


def test_no_key_survives_in_a_log_view() -> None:
    key = "sk-planted-0815"
    view = LogView("prefill", Redactor([key]))
    view.feed(records(f"server_args={{'api_key': 'other', 'admin_api_key': '{key}'}}\n{key} somewhere\n\x1b[1mAuthorization: Bearer other\x1b[0m"))
    kept = json.dumps([*view.words(), *[hit.line for hit in view.stages]])
    assert key not in kept and "other" not in kept
    assert view.stages[0].row.name == "arguments"


def test_a_progress_bar_gives_a_percentage_and_no_last_words() -> None:
    view = LogView("prefill")
    view.feed(records("Multi-thread loading shards:  10% Completed\rMulti-thread loading shards:  42% Completed | 3/7"))
    assert view.loading_percent == 42
    assert view.words() == []


# --- identity ---------------------------------------------------------------------------------------------------------


def test_identity_passes_for_the_captured_servers() -> None:
    for role in ("prefill", "decode"):
        assert identity.observe(context(ready(role), role)).state == "passed", role


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("served_name", "other"),
        ("model_path", "/srv/models/other"),
        ("disaggregation_mode", "decode"),
        ("version", "0.5.22"),
        ("tp_size", 2),
        ("pp_size", 2),
        ("transfer_backend", "nixl"),
    ],
)
def test_identity_fails_for_another_server(name: str, value: Any) -> None:
    planned = {**entry()["expect"], name: value}
    signal = identity.observe(context(ready(), expect=planned))
    assert signal.state == "failed"
    assert name in signal.observed and repr(value) in signal.observed


def test_a_served_name_that_the_model_list_does_not_show_fails() -> None:
    host = ready()
    host.answers[f"{PREFILL}/v1/models"] = Response(200, b'{"object":"list","data":[{"id":"other"},{"id":"lora"}]}')
    signal = identity.observe(context(host))
    assert (signal.state, "['other', 'lora']" in signal.observed) == ("failed", True)


def test_a_restart_that_did_nothing_is_seen_in_the_launch_command() -> None:
    planned = [*entry()["argv"][:-1], ["--max-total-tokens", "9000"]]
    signal = identity.observe(context(ready(), argv=planned))
    assert signal.state == "failed"
    assert "- --max-total-tokens 9000" in signal.details["differences"]


def test_values_with_blanks_are_compared_as_the_engine_joins_them() -> None:
    planned = [["--json-model-override-args", '{"a": 1, "b": "x y"}'], ["--enable-metrics"]]
    running = '--json-model-override-args {"a": 1, "b": "x y"} --enable-metrics --api-key sk-1 --admin-api-k=sk-2'
    assert identity.command_differences(planned, running) == []
    assert identity.command_differences(planned, running.replace("x y", "x z")) != []


def test_a_key_in_server_info_and_launch_command_is_kept_nowhere() -> None:
    host = ready()
    info = body("prefill_endpoints.txt", "GET /server_info")
    secret = "sk-planted-4711"
    info.update(api_key=secret, admin_api_key=secret, ssl_keyfile_password=secret, internal_states=[{"api_key": secret}])
    info["launch_command"] += f" --api-key {secret} --log-level debug"
    host.answers[f"{PREFILL}/server_info"] = Response(200, json.dumps(info).encode())
    looked = context(host)
    signal = identity.observe(looked)
    assert signal.state == "failed"
    assert "+ --log-level debug" in signal.observed
    assert secret not in json.dumps([signal.as_dict(), looked.memory])


def test_identity_without_the_right_key_is_unknown() -> None:
    host = ready()
    host.answers[f"{PREFILL}/model_info"] = Response(401, b'{"error":"Unauthorized"}')
    signal = identity.observe(context(host))
    assert (signal.state, "alive" in signal.observed) == ("unknown", True)


def test_a_credential_file_that_is_missing_is_unknown_and_named() -> None:
    host = ready()
    gone = "/nonexistent/api-key"

    def read_key(_host: Any) -> Response:
        from ansible_collections.plumbline.sglang.plugins.module_utils.host.credentials import Credential

        Credential(gone).read()
        raise AssertionError

    host.answers[f"{PREFILL}/model_info"] = read_key
    signal = identity.observe(context(host, credentials=[{"name": "api-key", "path": gone}]))
    assert (signal.state, gone in signal.observed) == ("unknown", True)


# --- bootstrap --------------------------------------------------------------------------------------------------------

REGISTRY = f"http://{ADDRESS}:8998/route"


def test_bootstrap_passes_for_a_registered_prefill_and_for_a_decode_that_reaches_it() -> None:
    assert bootstrap.observe(context(ready())).state == "passed"
    looked = context(ready("decode"), "decode")
    identity.observe(looked)
    assert bootstrap.observe(looked).state == "passed"


def test_bootstrap_waits_while_ranks_are_missing() -> None:
    host = ready()
    host.answers[REGISTRY] = Response(503, b"Prefill server not fully registered yet (1 workers registered).")
    signal = bootstrap.observe(context(host))
    assert (signal.state, "1 workers registered" in signal.observed) == ("pending", True)


def test_another_prefills_registry_on_the_port_fails_by_owner_and_by_content() -> None:
    host = ready()
    host.sockets[8998] = STRANGER
    assert bootstrap.observe(context(host)).state == "failed"
    host = ready()
    host.answers[REGISTRY] = Response(200, route(prefill_http_port=31000))
    assert bootstrap.observe(context(host)).state == "failed"


@pytest.mark.parametrize(
    ("field", "value", "state"),
    [("page_size", 64, "failed"), ("kv_cache_dtype", "fp8_e5m2", "failed"), ("kv_cache_dtype", "auto", "passed")],
)
def test_fields_that_would_break_the_pair_at_its_first_request(field: str, value: Any, state: str) -> None:
    host = ready("decode")
    host.answers[REGISTRY] = Response(200, route(**{field: value}))
    looked = context(host, "decode")
    looked.memory["server_info"] = {"page_size": 1, "kv_cache_dtype": "bfloat16"}
    assert bootstrap.observe(looked).state == state


def test_a_registry_that_nobody_answers_at_is_told_from_one_that_loads() -> None:
    host = ready("decode")
    del host.answers[REGISTRY]
    signal = bootstrap.observe(context(host, "decode"))
    assert (signal.state, signal.details["peers"]["prefill-g-a@h1"]["reached"]) == ("pending", False)
    host.answers[REGISTRY] = Response(503, b"not fully registered yet")
    signal = bootstrap.observe(context(host, "decode"))
    assert (signal.state, signal.details["peers"]["prefill-g-a@h1"]["reached"]) == ("pending", True)


def test_a_decode_without_prefills_in_the_plan_proves_nothing() -> None:
    assert bootstrap.observe(context(ready("decode"), "decode", peers={})).state == "unknown"
