# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rendered set: what systemd reads back is what the plan said, and the digest moves with everything that decides what runs."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.planning.render import argv_text, directories, quote, render, unit_text


def an_entry() -> dict[str, Any]:
    """A prefill entry with everything that render() reads."""
    return {
        "instance": "prefill-main-default",
        "unit": "sglang-prefill-main-default.service",
        "role": "prefill",
        "group": "main",
        "name": "default",
        "user": "sglang",
        "user_group": "sglang",
        "numa_node": 0,
        "model": {"name": "tiny", "path": "/srv/models/tiny"},
        "launcher": "/opt/sglang/launchers/0123456789ab/launch.py",
        "release": {"package": "sglang", "python": "/opt/sglang/releases/sglang-0.5.23-0123456789ab/bin/python"},
        "argv": [["--model-path", "/srv/models/tiny"], ["--enable-metrics"], ["--model-loader-extra-config", '{"a": 50}']],
        "environment": {"SPT_NOENV": "1", "HOME": "/var/cache/sglang"},
        "credentials": [
            {
                "name": "api-key",
                "path": "/etc/sglang/credentials/main/api-key",
                "variable": "sglang_api_key",
                "fingerprint": "0a1b2c3d4e5f",
            }
        ],
        "stop_timeout_seconds": 180,
        "paths": {
            "config": "/etc/sglang/instances/prefill-main-default.json",
            "renders": "/var/lib/sglang/renders/prefill-main-default",
            "state": "/var/lib/sglang/prefill-main-default",
            "cache": "/var/cache/sglang",
            "program": "/opt/sglang/tools/plumbline.pyz",
        },
    }


@pytest.mark.parametrize(
    ("word", "on_command", "in_environment"),
    [
        ("--enable-metrics", "--enable-metrics", "--enable-metrics"),
        ("50%", "50%%", "50%%"),
        ("$HOME", '"$$HOME"', '"$HOME"'),
        ('{"a": "b"}', r'"{\"a\": \"b\"}"', r'"{\"a\": \"b\"}"'),
        ("back\\slash", '"back\\\\slash"', '"back\\\\slash"'),
        ("two words", '"two words"', '"two words"'),
        ("", '""', '""'),
        ("line\nbreak", '"line\\nbreak"', '"line\\nbreak"'),
        (";", '";"', '";"'),
        ("@first", '"@first"', '"@first"'),
    ],
)
def test_a_word_survives_systemd(word: str, on_command: str, in_environment: str) -> None:
    assert quote(word, command=True) == on_command
    assert quote(word, command=False) == in_environment


def test_a_word_with_nul_is_refused() -> None:
    with pytest.raises(ValueError, match="NUL"):
        quote("a\0b", command=True)


def test_every_flag_stands_on_a_line_of_its_own() -> None:
    unit = render(an_entry())["files"]["unit"]
    for line in ("    --model-path /srv/models/tiny \\", "    --enable-metrics \\", r'    --model-loader-extra-config "{\"a\": 50}"'):
        assert line in unit.splitlines()
    assert argv_text(an_entry()["argv"]).splitlines()[0] == "--model-path /srv/models/tiny"


def test_the_unit_names_the_credential_file_and_the_digest() -> None:
    result = render(an_entry())
    unit = result["files"]["unit"]
    assert "--credential api-key=/etc/sglang/credentials/main/api-key" in unit
    assert f'Environment="PLUMBLINE_RENDER={result["digest"]}"' in unit
    assert f"PLUMBLINE_RENDER={result['digest']}" in result["files"]["environment"]


def test_numa_binding_is_rendered_only_where_a_node_is_planned() -> None:
    assert "NUMAMask=0" in render(an_entry())["files"]["unit"]
    assert "NUMA" not in render({**an_entry(), "numa_node": None})["files"]["unit"]


@pytest.mark.parametrize(
    "change",
    [
        {"argv": [["--model-path", "/srv/models/other"]]},
        {"environment": {"SPT_NOENV": "1"}},
        {"launcher": "/opt/sglang/launchers/ba9876543210/launch.py"},
        {"user": "other"},
        {"stop_timeout_seconds": 181},
        {"credentials": []},
        {"credentials": [{**an_entry()["credentials"][0], "fingerprint": "ffffffffffff"}]},
        {"numa_node": 1},
    ],
)
def test_the_digest_moves_with_all_that_decides_what_runs(change: dict[str, Any]) -> None:
    assert render({**an_entry(), **change})["digest"] != render(an_entry())["digest"]


def test_a_router_starts_anew_where_the_served_name_changes() -> None:
    router = {**an_entry(), "role": "router", "served_name": "one"}
    assert render(router)["digest"] != render({**router, "served_name": "two"})["digest"]


def test_the_digest_is_the_same_for_the_same_entry_and_free_of_order() -> None:
    entry = an_entry()
    entry["environment"] = dict(reversed(list(entry["environment"].items())))
    assert render(entry) == render(copy.deepcopy(an_entry()))


def test_an_engines_start_is_witnessed_as_root_and_never_fails_for_it() -> None:
    (line,) = [line for line in unit_text(an_entry(), "d" * 64).splitlines() if line.startswith("ExecStartPre=")]
    assert line == (
        "ExecStartPre=+-/opt/sglang/releases/sglang-0.5.23-0123456789ab/bin/python -I /opt/sglang/tools/plumbline.pyz"
        " witness --entry /etc/sglang/instances/prefill-main-default.json"
    )
    router = {**an_entry(), "role": "router", "model": None, "served_name": "tiny"}
    assert "ExecStartPre" not in unit_text(router, "d" * 64)


def test_every_run_is_proved_by_a_process_beside_its_unit() -> None:
    (line,) = [line for line in unit_text(an_entry(), "d" * 64).splitlines() if line.startswith("ExecStartPost=")]
    assert line.startswith("ExecStartPost=+-systemd-run --quiet --no-block --collect --unit=sglang-proof-prefill-main-default ")
    assert line.endswith(" prove --entry /etc/sglang/instances/prefill-main-default.json")


def test_directories_come_parents_first_and_only_the_cache_is_the_services() -> None:
    found = directories(an_entry(), "d" * 64)
    paths = [item["path"] for item in found]
    assert paths.index("/etc/sglang") < paths.index("/etc/sglang/credentials") < paths.index("/etc/sglang/credentials/main")
    assert paths.index("/var/lib/sglang") < paths.index("/var/lib/sglang/renders/prefill-main-default/" + "d" * 64)
    assert [item["path"] for item in found if item["owner"] != "root"] == ["/var/cache/sglang"]
    assert all(item["mode"] == "0750" for item in found if "credentials" in item["path"])
