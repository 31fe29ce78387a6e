# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Preflight refuses what is no part of a plan, by name, before any check trips over it."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.preflight.parameters import wrong

RELEASE = {"id": "sglang-1", "kind": "engine", "path": "/opt/r", "python": "/opt/r/bin/python", "requirements": "sglang==1"}
HOST: dict[str, Any] = {"address": "192.0.2.11", "releases": [RELEASE], "models": [{"path": "/srv/models/llama"}], "numa": {"0": [0]}}
ENTRY = {"instance": "prefill-a", "unit": "u.service", "address": "192.0.2.11", "ports": [{"port": 1, "address": "192.0.2.11"}], "gpus": [0]}


def test_parts_of_a_plan_are_taken() -> None:
    assert wrong(HOST, [ENTRY], ["address", "ports"]) == []


def test_a_part_of_a_host_is_enough_for_a_part_of_the_checks() -> None:
    assert wrong({"releases": [RELEASE]}, [], ["interpreter", "libraries"]) == []
    assert wrong({"releases": [RELEASE]}, [], ["address"]) == ["host.address is missing, expected the address of this host"]


@pytest.mark.parametrize(
    ("host", "entry", "said"),
    [
        ({"address": 4}, {}, "host.address is '4' (int), expected the address of this host"),
        ({"numa": [0]}, {}, "host.numa is '[0]' (list), expected NUMA node to GPU indices"),
        ({"releases": "sglang"}, {}, "host.releases is 'sglang' (str), expected a list"),
        ({"releases": [{**RELEASE, "python": ""}]}, {}, "host.releases[0] has no python"),
        ({"models": ["llama"]}, {}, "host.models[0] is 'llama' (str), expected an object of the plan"),
        ({}, {"unit": None}, "instances[0] has no unit"),
        ({}, {"ports": [{"port": 1}]}, "ports of prefill-a[0] has no address"),
        ({}, {"gpus": 3}, "gpus of prefill-a is '3' (int), expected a list of GPU indices"),
    ],
)
def test_what_is_wrong_is_named(host: dict[str, Any], entry: dict[str, Any], said: str) -> None:
    assert wrong({**HOST, **host}, [{**ENTRY, **entry}], ["address"]) == [said]


def test_an_entry_that_is_no_object_is_named() -> None:
    assert wrong(HOST, ["prefill-a"], []) == ["instances[0] is 'prefill-a' (str), expected an object of the plan"]
