# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entries made from plain parameters, and entries with holes."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.readiness.instance_entry import from_parameters, problems
from ansible_collections.plumbline.sglang.plugins.module_utils.readiness.router_view import planned_workers
from ansible_collections.plumbline.sglang.tests.unit.witness import entry


def test_a_planned_entry_has_no_holes() -> None:
    assert [problems(entry(role)) for role in ("prefill", "decode", "router")] == [[], [], []]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"unit": ""}, "unit is missing"),
        ({"port": "http"}, "port is 'http'"),
        ({"port": 0}, "port is 0"),
        ({"role": "worker"}, "role is 'worker'"),
        ({"bootstrap_port": None}, "bootstrap_port"),
        ({"peers": ["x"]}, "peers is list, expected an object"),
        ({"argv": 3}, "argv is int, expected a list"),
        ({"argv": ["--port", "1"]}, "argv holds something else than lists of words"),
        ({"credentials": {"a": "b"}}, "credentials is dict"),
        ({"credentials": ["x"]}, "credentials holds something else than objects"),
        ({"start_budget_seconds": "x"}, "start_budget_seconds is str"),
    ],
)
def test_a_hole_is_named_with_its_instance(changes: dict[str, Any], says: str) -> None:
    lines = problems({**entry(), **changes})
    assert any(says in line and "prefill-g-a" in line for line in lines), lines


def test_what_is_no_entry_at_all() -> None:
    assert problems("prefill-g-a") == ["an entry is an object of the plan, not str"]


def test_an_entry_from_plain_parameters_expects_only_what_was_given() -> None:
    made = from_parameters({"unit": "x", "role": "decode", "address": "::1", "port": 30002, "served_name": "m", "prefill_workers": ["http://h:1 8998"]})
    assert problems(made) == []
    assert (made["unit"], made["url"], made["instance"]) == ("x.service", "http://[::1]:30002", "x")
    assert made["expect"] == {"disaggregation_mode": "decode", "served_name": "m"}
    assert made["peers"]["prefill"][0]["bootstrap_port"] == 8998


def test_a_router_from_plain_parameters_knows_its_workers() -> None:
    made = from_parameters({"unit": "r", "role": "router", "address": "h", "port": 1, "prefill_workers": ["http://a:1 8998"], "decode_workers": ["http://b:2"]})
    assert planned_workers(made) == {
        "http://a:1": {"role": "prefill", "bootstrap_port": 8998},
        "http://b:2": {"role": "decode", "bootstrap_port": None},
    }
