# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ports an instance opens, the derived ones too."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.plumbline.sglang.tests.unit.plan_inventory import entry, plan


def ports(host: str, changes: dict[str, Any]) -> list[tuple[int, str]]:
    return [(port["port"], port["purpose"]) for port in entry(plan(changes), host)["ports"]]


def test_dp_attention_block() -> None:
    found = ports("p1", {"p1": {"sglang_prefill_instances": [{"gpus": [0, 1], "port": 20000, "args": {"attn-dp-size": 2}}]}})
    assert [number for number, purpose in found if purpose == "dp-attention"] == list(range(20233, 20240))


def test_the_deprecated_spelling_of_dp_attention_has_the_same_block() -> None:
    found = ports("p1", {"p1": {"sglang_prefill_instances": [{"gpus": [0, 1], "args": {"dp-size": 2, "enable-dp-attention": True}}]}})
    assert (30233, "dp-attention") in found


def test_dp_attention_at_the_upper_end_goes_downwards() -> None:
    found = ports("p1", {"p1": {"sglang_prefill_instances": [{"gpus": [0, 1], "port": 65500, "args": {"attn-dp-size": 2}}]}})
    assert [number for number, purpose in found if purpose == "dp-attention"] == list(range(65267, 65274))
    assert (65165, "distributed") in found


@pytest.mark.parametrize(
    ("instance", "expected"),
    [
        ({}, []),
        ({"bootstrap_port": 8999}, []),
        ({"bootstrap_port": 8999, "args": {"enable-pd-role-switch": True}}, [8999]),
    ],
)
def test_a_decode_opens_a_bootstrap_port_only_when_it_can_become_a_prefill(instance: dict[str, Any], expected: list[int]) -> None:
    found = ports("d1", {"d1": {"sglang_decode_instances": [{"gpus": [0], **instance}]}})
    assert [number for number, purpose in found if purpose == "bootstrap"] == expected


def test_router_ports() -> None:
    assert ports("r1", {}) == [(30001, "http"), (29000, "metrics")]
    assert (39527, "mesh") in ports("r1", {"r1": {"sglang_router_args": {"enable-mesh": True}}})


def test_grpc_port() -> None:
    assert (50051, "grpc") in ports("p1", {"p1": {"sglang_prefill_args": {"grpc-port": 50051}}})
