# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan itself: its form, its derivations, its independence from everything but the inventory."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.planning.entry import fingerprint
from ansible_collections.plumbline.sglang.plugins.module_utils.planning.instances import HostInput
from ansible_collections.plumbline.sglang.plugins.module_utils.planning.plan import build_plan, seal
from ansible_collections.plumbline.sglang.plugins.module_utils.planning.render import render
from ansible_collections.plumbline.sglang.tests.unit.plan_inventory import GPUS, KEY, LOCKS, REMOVED, entry, flags, inventory, plan


def test_prefill_entry_whole() -> None:
    result = plan({"p1": {"sglang_prefill_instances": [{"name": "a", "gpus": [0, 1], "port": 30100, "bootstrap_port": 8999}]}})
    item = entry(result, "p1")
    release = result["hosts"]["p1"]["releases"][0]
    expected = {
        "instance": "prefill-chat-a",
        "unit": "sglang-prefill-chat-a.service",
        "role": "prefill",
        "group": "chat",
        "name": "a",
        "host": "p1",
        "address": "10.0.0.1",
        "port": 30100,
        "url": "http://10.0.0.1:30100",
        "bootstrap_port": 8999,
        "ports": [
            {"port": 30100, "address": "10.0.0.1", "purpose": "http", "owner": "flag --port"},
            {"port": 8999, "address": "10.0.0.1", "purpose": "bootstrap", "owner": "flag --disaggregation-bootstrap-port"},
            {"port": 30435, "address": "0.0.0.0", "purpose": "distributed", "owner": "flag --nccl-port"},
        ],
        "gpus": [0, 1],
        "numa_node": 0,
        "device": "cuda",
        "model": {"name": "tiny", "path": "/srv/models/tiny", "copy_from": None, "served_name": "tiny"},
        "served_name": "tiny",
        "release": {key: release[key] for key in ("id", "kind", "package", "version", "path", "python")},
        "credentials": [
            {
                "name": "api-key",
                "flag": "--api-key",
                "path": "/etc/sglang/credentials/chat/api-key",
                "variable": "sglang_api_key",
                "fingerprint": fingerprint(KEY, "/etc/sglang/credentials/chat/api-key"),
            }
        ],
        "user": "sglang",
        "user_group": "sglang",
        "expect": {
            "disaggregation_mode": "prefill",
            "model_path": "/srv/models/tiny",
            "served_name": "tiny",
            "version": "0.5.23",
            "tp_size": 2,
            "pp_size": 1,
            "nnodes": 1,
            "transfer_backend": "nixl",
        },
        "start_budget_seconds": 1800,
        "stop_timeout_seconds": 180,
        "paths": {
            "config": "/etc/sglang/instances/prefill-chat-a.json",
            "unit": "/etc/systemd/system/sglang-prefill-chat-a.service",
            "renders": "/var/lib/sglang/renders/prefill-chat-a",
            "state": "/var/lib/sglang/prefill-chat-a",
            "cache": "/var/cache/sglang",
            "program": "/opt/sglang/tools/plumbline.pyz",
        },
    }
    assert {key: item[key] for key in expected} == expected
    assert set(item) == {*expected, "launcher", "argv", "environment", "peers"}
    assert [peer["url"] for peer in item["peers"]["decode"]] == ["http://10.0.0.2:30002"]
    assert item["peers"]["prefill"] == []


def test_the_router_gets_its_workers_from_the_plan() -> None:
    result = plan(
        {
            "p1": {"sglang_prefill_instances": [{"gpus": [0]}, {"name": "1", "gpus": [1], "port": 30100, "bootstrap_port": 9000}]},
            "d1": {"sglang_address": "fd00::2", "sglang_decode_instances": [{"gpus": [0]}]},
        }
    )
    argv = entry(result, "r1")["argv"]
    assert [item[1:] for item in argv if item[0] == "--prefill"] == [["http://10.0.0.1:30000", "8998"], ["http://10.0.0.1:30100", "9000"]]
    assert [item[1:] for item in argv if item[0] == "--decode"] == [["http://[fd00::2]:30002"]]
    assert ["--pd-disaggregation"] in argv
    assert entry(result, "r1")["expect"]["tp_size"] is None


def test_members_of_another_group_are_no_peers() -> None:
    groups = {"a": {"model": {"path": "/m/a"}}, "b": {"model": {"path": "/m/b"}}}
    changes: dict[str, Any] = {"all": {"sglang_groups": groups}}
    changes["p1"] = {"sglang_prefill_instances": [{"group": "a", "gpus": [0]}, {"group": "b", "gpus": [1], "port": 30100, "bootstrap_port": 9000}]}
    changes["d1"] = {"sglang_decode_instances": [{"group": "a", "gpus": [0]}, {"group": "b", "gpus": [1], "port": 30100}]}
    changes["r1"] = {"sglang_router_instances": [{"group": "a"}, {"group": "b", "port": 30100, "metrics_port": 29001}]}
    result = plan(changes)
    assert result["findings"] == []
    for name, bootstrap in (("a", "8998"), ("b", "9000")):
        argv = entry(result, "r1", f"router-{name}-0")["argv"]
        assert [item[2] for item in argv if item[0] == "--prefill"] == [bootstrap]
        assert {peer["instance"] for peers in entry(result, "p1", f"prefill-{name}-0")["peers"].values() for peer in peers} == {
            f"decode-{name}-0",
            f"router-{name}-0",
        }
    assert [model["path"] for model in result["hosts"]["p1"]["models"]] == ["/m/a", "/m/b"]
    assert [item["path"] for item in result["hosts"]["r1"]["credentials"]] == [f"/etc/sglang/credentials/{name}/api-key" for name in "ab"]


def test_order_and_hosts() -> None:
    result = plan(groups={"d1": ("sglang_decode",), "x1": ("other",), "a1": ("sglang_router",)}, changes={"a1": {"sglang_address": "10.0.0.8"}})
    assert [(item["role"], item["host"]) for item in result["instances"]] == [("prefill", "p1"), ("decode", "d1"), ("router", "a1"), ("router", "r1")]
    assert set(result["hosts"]) == {"p1", "d1", "a1", "r1"}
    assert result["hosts"]["r1"]["numa"] == {} and result["hosts"]["p1"]["numa"] == {"0": [0, 1, 2, 3], "1": [4, 5, 6, 7]}


def test_layers_last_wins_and_null_removes() -> None:
    group = {
        "model": {"path": "/m/x"},
        "args": {"page-size": 3, "log-level": "group"},
        "prefill_args": {"page-size": 4, "stream-interval": 4},
        "env": {"A": "group", "B": "group"},
    }
    changes = {
        "all": {"sglang_groups": {"chat": group}, "sglang_env": {"A": "host", "C": "host"}},
        "p1": {
            "sglang_args": {"page-size": 1, "log-level": "all", "sleep-on-idle": True, "enable-metrics": False},
            "sglang_prefill_args": {"page-size": 2, "log-level": "role"},
            "sglang_prefill_instances": [{"gpus": [0], "args": {"page-size": 5, "stream-interval": None, "tensor-parallel-size": 1}, "env": {"B": None}}],
        },
    }
    result = flags(entry(plan(changes), "p1")["argv"])
    assert result["--page-size"] == ["5"] and result["--log-level"] == ["group"] and result["--sleep-on-idle"] == []
    assert "--stream-interval" not in result and "--enable-metrics" not in result and "--tensor-parallel-size" not in result
    environment = entry(plan(changes), "p1")["environment"]
    assert environment["A"] == "group" and "B" not in environment and environment["C"] == "host"


def test_engine_arguments_do_not_reach_a_router() -> None:
    changes = {"all": {"sglang_args": {"page-size": 1}, "sglang_env": {"X": "1"}, "sglang_router_args": {"policy": "random"}, "sglang_router_env": {"Y": "1"}}}
    result = plan(changes)
    assert "--page-size" not in flags(entry(result, "r1")["argv"]) and "X" not in entry(result, "r1")["environment"]
    assert flags(entry(result, "r1")["argv"])["--policy"] == ["random"] and entry(result, "r1")["environment"]["Y"] == "1"
    assert "--policy" not in flags(entry(result, "p1")["argv"]) and "Y" not in entry(result, "p1")["environment"]


@pytest.mark.parametrize(
    ("instance", "gpus", "node", "tp"),
    [
        ({}, [0, 1, 2, 3, 4, 5, 6, 7], None, "8"),
        ({"numa_node": 1}, [4, 5, 6, 7], 1, "4"),
        ({"gpus": [6]}, [6], 1, "1"),
        ({"gpus": [3, 4]}, [3, 4], None, "2"),
        ({"gpus": [0, 1, 2, 3], "args": {"pp-size": 2}}, [0, 1, 2, 3], 0, "2"),
        ({"gpus": [0, 1, 2, 3], "args": {"dp-size": 2}}, [0, 1, 2, 3], 0, "2"),
    ],
)
def test_gpus_node_and_size_follow(instance: dict[str, Any], gpus: list[int], node: int | None, tp: str) -> None:
    item = entry(plan({"p1": {"sglang_prefill_instances": [instance]}}), "p1")
    assert (item["gpus"], item["numa_node"], flags(item["argv"])["--tp-size"]) == (gpus, node, [tp])
    assert item["environment"]["CUDA_VISIBLE_DEVICES"] == ",".join(map(str, gpus))
    assert item["environment"]["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID" and "--base-gpu-id" not in flags(item["argv"])


def test_cpu_engines_see_no_gpu() -> None:
    item = entry(plan({"p1": {"sglang_args": {"device": "cpu"}}, "d1": {"sglang_args": {"device": "cpu"}}}), "p1")
    assert item["device"] == "cpu" and item["gpus"] == [] and item["numa_node"] is None
    assert not {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_HOME"} & set(item["environment"])


def test_a_router_is_stopped_later_than_its_own_grace_period() -> None:
    assert entry(plan(), "r1")["stop_timeout_seconds"] == 200
    changes = {"r1": {"sglang_router_args": {"shutdown-grace-period-secs": 600}}}
    assert entry(plan(changes), "r1")["stop_timeout_seconds"] == 620
    assert entry(plan({"all": {"sglang_stop_timeout_seconds": 900}}), "r1")["stop_timeout_seconds"] == 900


def test_replicas_get_no_fixed_port_for_torch() -> None:
    item = entry(plan({"p1": {"sglang_prefill_instances": [{"gpus": [0, 1], "args": {"dp-size": 2}}]}}), "p1")
    assert "--nccl-port" not in flags(item["argv"]) and "distributed" not in [port["purpose"] for port in item["ports"]]


def test_keys_are_paths_and_names_only() -> None:
    result = plan({"all": {"sglang_admin_api_key": "root-key-1"}})
    text = json.dumps(result)
    assert KEY not in text and "root-key-1" not in text
    assert [item["name"] for item in entry(result, "p1")["credentials"]] == ["api-key", "admin-api-key"]
    assert [item["name"] for item in entry(result, "r1")["credentials"]] == ["api-key"]
    other = plan({"all": {"sglang_admin_api_key": "root-key-2"}})
    assert result["digest"] != other["digest"], "a server that read the old key must restart"


@pytest.mark.parametrize(
    "wrong",
    [
        {"sglang_prefill_instances": {"args": {"api-key": "planted-key-77"}}},
        {"sglang_prefill_instances": ["planted-key-77"]},
        {"sglang_groups": [{"args": {"api-key": "planted-key-77"}}]},
        {"sglang_groups": {"chat": ["planted-key-77"]}},
        {"sglang_args": {"--api-key planted-key-77": True}},
        {"sglang_args": {"api-key": "planted-key-77"}},
        {"sglang_env": ["OPENAI_API_KEY=planted-key-77"]},
    ],
)
def test_no_finding_shows_what_stands_in_the_wrong_place(wrong: dict[str, Any]) -> None:
    result = plan({"all": wrong})
    assert result["findings"]
    assert "planted-key-77" not in json.dumps(result)


def test_no_key_no_credential() -> None:
    assert entry(plan({"all": {"sglang_api_key": REMOVED}}), "p1")["credentials"] == []


def test_the_plan_depends_on_the_inventory_alone() -> None:
    hosts = inventory()
    assert build_plan(hosts, LOCKS) == build_plan(dict(reversed(list(hosts.items()))), LOCKS)
    assert json.loads(json.dumps(plan())) == plan()


def test_the_digest_follows_the_content_and_not_the_findings() -> None:
    first = plan()
    assert first["digest"] != plan({"all": {"sglang_start_budget_seconds": 5}})["digest"]
    assert seal({**first, "findings": [{"level": "warning"}]})["digest"] == first["digest"]
    assert build_plan(inventory(), LOCKS, "another launcher")["digest"] != first["digest"]


def test_the_launcher_is_named_after_its_text() -> None:
    paths = {entry(build_plan(inventory(), LOCKS, text), "p1")["launcher"] for text in ("one", "two", "two")}
    assert len(paths) == 2
    assert all(path.startswith("/opt/sglang/launchers/") and path.endswith("/launch.py") for path in paths)


def test_the_address_is_ansible_host_else_the_name() -> None:
    hosts = {"10.0.0.5": HostInput(name="10.0.0.5", groups=("sglang_prefill",)), **{name: host for name, host in inventory().items() if name != "p1"}}
    hosts["10.0.0.5"] = HostInput(name="10.0.0.5", groups=("sglang_prefill",), variables=inventory()["p1"].variables)
    assert entry(build_plan(hosts, LOCKS), "10.0.0.5")["url"] == "http://10.0.0.5:30000"
    assert entry(plan({"p1": {"sglang_address": "10.9.9.9"}}), "p1")["url"] == "http://10.9.9.9:30000"


def test_inventory_groups_can_have_other_names() -> None:
    names = {"prefill": "gpu_p", "decode": "gpu_d", "router": "gate"}
    result = plan({"all": {"sglang_inventory_groups": names}}, {"p1": ("gpu_p",), "d1": ("gpu_d",), "r1": ("gate",)})
    assert result["findings"] == [] and len(result["instances"]) == 3


def test_directories_are_moved_together() -> None:
    changes = {"all": {"sglang_config_dir": "/c", "sglang_root": "/r/", "sglang_state_dir": "/s", "sglang_cache_dir": "/k", **GPUS}}
    result = plan(changes)
    item = entry(result, "p1")
    assert result["paths"] == {"config": "/c", "root": "/r", "state": "/s", "cache": "/k"}
    assert item["paths"]["config"].startswith("/c/") and item["launcher"].startswith("/r/") and item["paths"]["state"].startswith("/s/")
    assert item["environment"]["HOME"] == "/k" and item["environment"]["SGLANG_CACHE_DIR"] == "/k"
    assert item["release"]["path"].startswith("/r/releases/") and item["credentials"][0]["path"].startswith("/c/credentials/chat/")


def test_every_entry_can_be_rendered() -> None:
    for item in plan()["instances"]:
        assert render(item)["files"]["unit"].startswith("# Managed")


def tools_of(result: dict[str, Any], host: str) -> list[dict[str, Any]]:
    return [release for release in result["hosts"][host]["releases"] if release["kind"] == "tools"]


def test_a_host_with_gpus_has_the_modules_own_environment_and_a_router_has_none() -> None:
    result = plan({})
    (release,) = tools_of(result, "p1")
    assert release["requirements"].startswith("nvidia-ml-py==") and release["import_check"] == ["pynvml"]
    assert release["path"].startswith("/opt/sglang/releases/nvidia-ml-py-")
    routers = [item["host"] for item in result["instances"] if item["role"] == "router"]
    assert [tools_of(result, host) for host in routers if host not in {item["host"] for item in result["instances"] if item["gpus"]}] == [[]]


def test_without_gpus_or_where_it_is_not_wanted_there_is_no_such_environment() -> None:
    assert tools_of(plan({"p1": {"sglang_tools": False}}), "p1") == []
    assert tools_of(plan({"p1": {"sglang_args": {"device": "cpu"}}, "d1": {"sglang_args": {"device": "cpu"}}}), "p1") == []
