# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The schema of user variables: one declaration, and documentation that follows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.planning.findings import Findings
from ansible_collections.plumbline.sglang.plugins.module_utils.planning.schema import BY_NAME, INSTANCE_OPTIONS, SECRETS, VARIABLES, Option
from ansible_collections.plumbline.sglang.plugins.module_utils.planning.schema_check import Checker, nearest
from ansible_collections.plumbline.sglang.plugins.module_utils.planning.schema_docs import to_markdown


def check(name: str, value: object) -> tuple[object, list[dict[str, object]]]:
    findings = Findings()
    checked = Checker(findings, "h1").variables({name: value}, {})
    return checked[name], findings.sorted()


def test_docs_are_up_to_date() -> None:
    path = Path(__file__).resolve().parents[4] / "docs" / "variables.md"
    assert path.read_text(encoding="utf-8") == to_markdown(), "run docs/build_variables.py"


def test_every_variable_is_documented() -> None:
    text = to_markdown()
    options = [*VARIABLES, *(item for options in INSTANCE_OPTIONS.values() for item in options)]
    assert all(f"| `{option.name}` |" in text for option in options)
    assert all(option.description.endswith((".", ")")) for option in options)


def test_names_are_declared_once() -> None:
    assert len(BY_NAME) == len(VARIABLES) and all(name.startswith("sglang_") for name in BY_NAME)


def test_every_kind_has_a_check() -> None:
    def walk(options: tuple[Option, ...]) -> list[Option]:
        return [item for option in options for item in (option, *walk(option.options))]

    for option in walk(VARIABLES):
        Checker(Findings(), "h1").value(option, "x", option.name)


def test_an_empty_inventory_gives_the_defaults() -> None:
    findings = Findings()
    checked = Checker(findings, "h1").variables({}, {})
    assert findings.sorted() == []
    assert checked["sglang_root"] == "/opt/sglang" and checked["sglang_groups"] == {} and checked["sglang_prefill_instances"] is None
    assert checked["sglang_inventory_groups"] == {"prefill": "sglang_prefill", "decode": "sglang_decode", "router": "sglang_router"}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("sglang_start_budget_seconds", "60", 60),
        ("sglang_api_key", None, None),
        ("sglang_wheelhouse", None, None),
        ("sglang_root", "/opt//sglang/", "/opt/sglang"),
        ("sglang_numa_gpus", {"1": [2], 0: [1]}, {"1": [2], "0": [1]}),
        ("sglang_prefill_instances", None, None),
        ("sglang_prefill_instances", [], []),
        ("sglang_python", "auto", "auto"),
    ],
)
def test_accepted(name: str, value: object, expected: object) -> None:
    assert check(name, value) == (expected, [])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sglang_start_budget_seconds", True),
        ("sglang_start_budget_seconds", 0),
        ("sglang_root", "~/sglang"),
        ("sglang_root", None),
        ("sglang_user", "svc user"),
        ("sglang_user", "../root"),
        ("sglang_address", " 10.0.0.1"),
        ("sglang_engine_version", 0.5),
        ("sglang_numa_gpus", {0: [1, 1]}),
        ("sglang_numa_gpus", {0: [-1]}),
        ("sglang_prefill_instances", {"name": "a"}),
        ("sglang_prefill_instances", ["a"]),
        ("sglang_groups", {"a/b": {"model": {"path": "/m"}}}),
        ("sglang_groups", ["a"]),
        ("sglang_inventory_groups", "gpu"),
    ],
)
def test_refused_with_one_finding_and_the_default_instead(name: str, value: object) -> None:
    _result, findings = check(name, value)
    assert [(item["level"], item["rule"], item["where"]) for item in findings] == [("error", "type", ["h1"])]
    assert name in str(findings[0]["seen"])


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("value", ["", 12345678, ["k3y-12345678"], "k3y-12345678\n", " k3y-12345678"])
def test_a_refused_key_is_not_shown(name: str, value: object) -> None:
    _result, (finding,) = check(name, value)
    assert "12345678" not in str(finding) and name in str(finding["seen"])


def test_nearest() -> None:
    assert nearest("sglang_prefil_args", BY_NAME) == "sglang_prefill_args"
    assert nearest("sglang_engine_requirement", BY_NAME) == "sglang_engine_requirements"
    assert nearest("completely_different", BY_NAME) is None
