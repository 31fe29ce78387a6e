# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the engine resolved for itself: log, server and plan must tell the same."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.signals import identity
from ansible_collections.plumbline.sglang.plugins.module_utils.signals.log_view import LogView
from ansible_collections.plumbline.sglang.plugins.module_utils.signals.resolved import differences, resolve
from ansible_collections.plumbline.sglang.tests.unit.witness import body, capture, records

LOG = {"context_len": "2048", "max_total_num_tokens": "8192", "disaggregation_mode": "prefill", "disaggregation_transfer_backend": "mooncake"}
SERVER = {"max_model_len": 2048, "max_total_num_tokens": 8192, "disaggregation_mode": "prefill", "disaggregation_transfer_backend": "mooncake", "dp_size": 1}


def test_the_captured_log_and_answers_of_one_server_agree() -> None:
    view = LogView("prefill")
    view.feed(records(capture("prefill_ready.log")))
    assert view.resolved == LOG
    models = body("prefill_endpoints.txt", "GET /v1/models")
    name = models["data"][0]["id"]
    info = body("prefill_endpoints.txt", "GET /server_info")
    server = {**{key: info[key] for key in SERVER if key in info}, "max_model_len": identity.context_length(models, name)}
    assert differences(view.resolved, server, {}) == []
    assert resolve(view.resolved, server) == {
        "context_length": 2048,
        "kv_tokens": 8192,
        "disaggregation_mode": "prefill",
        "transfer_backend": "mooncake",
    }


def test_the_older_generation_of_the_argument_line_is_understood() -> None:
    view = LogView("decode")
    view.feed(records("[2026-11-30 21:41:07] server_args=ServerArgs(disaggregation_mode='decode', disaggregation_transfer_backend='nixl')"))
    assert view.resolved == {"disaggregation_mode": "decode", "disaggregation_transfer_backend": "nixl"}


@pytest.mark.parametrize(
    ("changes", "planned", "says"),
    [
        ({"max_model_len": 4096}, {}, "the context length in tokens is 2048 in the log of this run and 4096"),
        ({"max_total_num_tokens": 100}, {}, "the KV cache in tokens is 8192 in the log of this run and 100"),
        ({"disaggregation_mode": "decode"}, {}, "the disaggregation mode is prefill"),
        ({"disaggregation_transfer_backend": "nixl"}, {}, "the transfer backend is mooncake"),
        ({}, {"context_length": "524288"}, "is 2048, planned 524288"),
        ({}, {"max_total_tokens": "4096"}, "is 8192, planned at most 4096"),
    ],
)
def test_each_contradiction_is_named(changes: dict[str, Any], planned: dict[str, str], says: str) -> None:
    (line,) = differences(LOG, {**SERVER, **changes}, planned)
    assert says in line


def test_what_nobody_tells_is_null_and_contradicts_nothing() -> None:
    assert set(resolve({}, {}).values()) == {None}
    assert differences({}, SERVER, {"context_length": ""}) == []


def test_replicas_may_have_caches_of_different_size() -> None:
    assert differences(LOG, {**SERVER, "dp_size": 2, "max_total_num_tokens": 8000}, {}) == []
