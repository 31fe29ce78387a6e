# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every rule of the plan: an inventory on which it speaks, and one close to it on which it does not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from ansible_collections.plumbline.sglang.tests.unit.plan_inventory import GPUS, KEY, REMOVED, found, plan

MODEL = {"path": "/srv/models/tiny"}


class Case(NamedTuple):
    """A rule with changes of the faultless cluster that break it, what the finding names, and changes that do not."""

    rule: str
    bad: Mapping[str, Any]
    where: list[str]
    good: Mapping[str, Any] = {}
    level: str = "error"
    says: str = ""
    groups: Mapping[str, tuple[str, ...]] = {}
    good_groups: Mapping[str, tuple[str, ...]] = {}


def group(**settings: Any) -> dict[str, Any]:
    return {"all": {"sglang_groups": {"chat": {"model": MODEL, **settings}}}}


def prefill(**settings: Any) -> dict[str, Any]:
    return {"p1": {"sglang_prefill_instances": [settings]}}


def decode(**settings: Any) -> dict[str, Any]:
    return {"d1": {"sglang_decode_instances": [settings]}}


def both(*prefills: Mapping[str, Any]) -> dict[str, Any]:
    return {"p1": {"sglang_prefill_instances": list(prefills)}}


P, D, R = "p1/prefill-chat-0", "d1/decode-chat-0", "r1/router-chat-0"
ONE_HOST = {"d1": (), "r1": (), "p1": ("sglang_prefill", "sglang_decode", "sglang_router")}
SPLIT = {"sglang_prefill_instances": [{"gpus": [0, 1, 2, 3]}], "sglang_decode_instances": [{"gpus": [4, 5, 6, 7]}]}
BIG, SMALL = [0, 1, 2, 3], [0]

CASES = [
    # GPUs and NUMA nodes
    Case(
        "gpu-overlap",
        both({"gpus": [0, 1]}, {"name": "1", "gpus": [1, 2], "port": 30010, "bootstrap_port": 8999}),
        [P, "p1/prefill-chat-1"],
        both({"gpus": [0, 1]}, {"name": "1", "gpus": [2, 3], "port": 30010, "bootstrap_port": 8999}),
        says="GPU 1",
    ),
    Case("gpu-undeclared", prefill(gpus=[0, 9]), [P], prefill(gpus=[0, 7]), says="GPU 9"),
    Case("gpu-missing", {"p1": {"sglang_numa_gpus": REMOVED}}, [P], {"all": {"sglang_args": {"device": "cpu"}, "sglang_numa_gpus": {}}}),
    Case("gpu-unused", {"p1": {"sglang_args": {"device": "cpu"}, "sglang_prefill_instances": [{"gpus": [0]}]}}, [P], prefill(gpus=[0])),
    Case("gpu-declared-twice", {"p1": {"sglang_numa_gpus": {0: [0, 1], 1: [1, 2]}}}, ["p1"], {"p1": {"sglang_numa_gpus": {0: [0, 1], 1: [2, 3]}}}),
    Case("gpu-count", prefill(gpus=[0, 1, 2], args={"tp-size": 4}), [P], prefill(gpus=BIG, args={"tp-size": 4})),
    Case("gpu-count", prefill(gpus=BIG, args={"tensor-parallel-size": 2}), [P], prefill(gpus=BIG, args={"tp-size": 2, "pp-size": 2})),
    Case("numa-gpus", prefill(gpus=[2, 3, 4, 5], numa_node=0), [P], prefill(gpus=[2, 3, 4, 5]), says="GPU 4 is on node 1"),
    Case("numa-unknown", prefill(gpus=BIG, numa_node=-1), [P], prefill(gpus=BIG, numa_node=0)),
    Case("numa-unknown", {"p1": {"sglang_numa_gpus": {-1: BIG}}}, ["p1"], {"p1": {"sglang_numa_gpus": {"0": BIG}}}),
    Case("numa-undeclared", prefill(gpus=BIG, numa_node=3), [P], prefill(gpus=[4, 5], numa_node=1)),
    # Ports and addresses
    Case(
        "port-overlap",
        {"p1": {**SPLIT, "sglang_decode_instances": [{"gpus": [4, 5, 6, 7], "port": 30000, "dist_port": 30999}]}},
        ["p1/decode-chat-0", P],
        {"p1": {**SPLIT}},
        groups=ONE_HOST,
        good_groups=ONE_HOST,
    ),
    Case("port-overlap", prefill(port=8998), [P], prefill(port=8997), says="port 8998"),
    Case("port-overlap", prefill(dist_port=8998), [P], prefill(dist_port=8999), says="distributed"),
    Case(
        "port-overlap",
        # DP attention derives 30233 to 30239 from port 30000.
        prefill(gpus=BIG, args={"attn-dp-size": 2}, dist_port=30238),
        [P],
        prefill(gpus=BIG, args={"attn-dp-size": 2}, dist_port=30240),
        says="dp-attention",
    ),
    Case("port-overlap", {"r1": {"sglang_router_instances": [{"port": 29000}]}}, [R], {"r1": {"sglang_router_instances": [{"port": 29001}]}}),
    Case("port-ephemeral", prefill(port=40000, dist_port=30500), [P], prefill(port=20000, dist_port=30500), level="warning"),
    Case("address-name", {"p1": {"sglang_address": "gpu-7.example.org"}}, [P], {"p1": {"sglang_address": "fd00::1"}}),
    Case("address-unspecified", {"p1": {"sglang_address": "0.0.0.0"}}, [P], {"p1": {"sglang_address": "10.0.0.7"}}),
    Case("address-unreachable", {"p1": {"sglang_address": "127.0.0.1"}}, [P], {"p1": {**SPLIT, "sglang_address": "127.0.0.1"}}, good_groups=ONE_HOST),
    Case("address-unreachable", {"d1": {"sglang_address": "localhost"}}, [D], {"d1": {"sglang_address": "10.1.0.2"}}),
    Case("address-shared", {"d1": {"sglang_address": "10.0.0.1"}}, ["d1", "p1"], {"d1": {"sglang_address": "10.0.0.4"}}),
    # Names and groups
    Case("served-name", group(served_name="org:model"), ["chat"], group(served_name="org-model"), says="'org-model'"),
    Case("served-name", group(served_name="/srv/models/tiny"), ["chat"], group(served_name="tiny"), says="'tiny'"),
    Case("instance-duplicate", both({"gpus": [0]}, {"gpus": [1], "port": 30010, "bootstrap_port": 9}), [P], both({"gpus": [0]})),
    Case("group-unknown", prefill(group="chatt"), ["p1"], prefill(group="chat"), says="set group to chat"),
    Case("group-unknown", {"all": {"sglang_groups": REMOVED}}, ["d1"]),
    Case("group-incomplete", {}, ["chat"], groups={"d1": ()}, says="no decode"),
    Case("group-incomplete", {"d1": {"sglang_decode_instances": []}, "r1": {"sglang_router_instances": []}}, ["chat"], says="no decode and no router"),
    Case("group-incomplete", {}, ["chat"], groups={"p1": ()}, says="no prefill"),
    Case("model-missing", group(model={}), ["chat"], group(model={"name": "tiny"})),
    Case(
        "group-differs",
        {"d1": {"sglang_groups": {"chat": {"model": MODEL, "served_name": "other"}}}},
        ["d1", "p1", "r1"],
        {"d1": {"sglang_groups": {"chat": {"model": {"path": "/mnt/other-disk/tiny"}}}}},
    ),
    Case(
        "group-unused",
        {
            "all": {
                "sglang_groups": {"chat": {"model": MODEL}, "more": {"model": MODEL}},
                **{f"sglang_{r}_instances": [{"group": "chat"}] for r in ("prefill", "decode", "router")},
            }
        },
        ["more"],
        level="warning",
    ),
    Case("instances-unused", {"r1": {"sglang_decode_instances": [{"port": 1}]}}, ["r1"], {"all": {"sglang_decode_instances": [{"port": 1}]}}, level="warning"),
    Case("not-alike", {"p1": {"sglang_root": "/opt/other"}}, ["d1", "p1", "r1"], {"all": {"sglang_root": "/opt/other"}}),
    # Pairing
    Case("bootstrap-missing", prefill(bootstrap_port=None), [P], prefill(bootstrap_port=9000)),
    Case("pair-differs", {"d1": {"sglang_args": {"page-size": 64}}}, [D, P], {"all": {"sglang_args": {"page-size": 64}}}, says="page-size: 64 on d1"),
    Case("pair-differs", {"d1": {"sglang_args": {"kv-cache-dtype": "fp8_e4m3"}}}, [D, P], {"d1": {"sglang_args": {"kv-cache-dtype": "auto"}}}),
    Case("pair-differs", prefill(args={"disaggregation-enable-kv-checksum": True}), [D, P], group(args={"disaggregation-enable-kv-checksum": True})),
    Case(
        "pair-differs",
        decode(args={"disaggregation-decode-allocation-policy": "prefill_complete"}),
        [D, P],
        decode(args={"disaggregation-decode-allocation-policy": "early"}),
    ),
    Case(
        "pair-differs",
        decode(args={"disaggregation-transfer-backend": "mooncake"}),
        [D, P],
        decode(args={"disaggregation-transfer-backend": "nixl"}),
        says="mooncake on d1",
    ),
    Case("pair-cp", decode(args={"attn-cp-size": 2}), [D], prefill(args={"attn-cp-size": 2})),
    Case("pair-pp", decode(gpus=BIG, args={"pp-size": 2}), [D], {**decode(gpus=BIG, args={"pp-size": 2}), **prefill(gpus=BIG, args={"pp-size": 2})}),
    Case("pair-tp", {**prefill(gpus=SMALL), **decode(gpus=BIG)}, [D, P], {**prefill(gpus=BIG), **decode(gpus=BIG)}, level="warning", says="1 and 4"),
    Case("pair-fake", group(args={"disaggregation-transfer-backend": "fake"}), [P], group(args={"disaggregation-transfer-backend": "nixl"})),
    Case("multi-node", prefill(gpus=BIG, args={"nnodes": 2}), [P], prefill(gpus=BIG, args={"nnodes": 1})),
    Case("dist-port-replicas", prefill(gpus=BIG, args={"dp-size": 2}, dist_port=30500), [P], prefill(gpus=BIG, args={"dp-size": 2})),
    Case("rust-server", prefill(env={"SGLANG_RUST_SERVER": "1"}), [P], prefill(env={"SGLANG_RUST_SERVER": "0"})),
    Case("not-observable", prefill(args={"skip-server-warmup": True}), [P], prefill(args={"skip-server-warmup": False}), level="warning"),
    Case("not-observable", prefill(env={"SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION": False}), [P], prefill(env={"SGLANG_LOG_MS": 1}), level="warning"),
    Case("not-observable", prefill(args={"enable-metrics": None}), [P], prefill(args={"enable-metrics": True}), level="warning"),
    # Keys
    Case("key-differs", {"d1": {"sglang_api_key": "another-key"}}, ["d1", "p1", "r1"], {"all": {"sglang_api_key": "another-key"}}),
    Case("key-differs", {"r1": {"sglang_api_key": REMOVED}}, ["d1", "p1", "r1"], says="not set on r1"),
    Case("key-differs", {"p1": {"sglang_admin_api_key": "root-key-1"}}, ["d1", "p1", "r1"], {"all": {"sglang_admin_api_key": "root-key-1"}}),
    Case(
        "admin-key-alone",
        {"all": {"sglang_api_key": REMOVED, "sglang_admin_api_key": "root-key-1"}},
        ["d1", "p1", "r1"],
        {"all": {"sglang_admin_api_key": "root-key-1"}},
    ),
    Case("no-key", {"all": {"sglang_api_key": REMOVED}}, ["chat"], level="warning"),
    Case("key-tokenizers", prefill(args={"tokenizer-worker-num": 2}), [P], {**prefill(args={"tokenizer-worker-num": 2}), "all": {"sglang_api_key": REMOVED}}),
    # Locks
    Case("lock-missing", {"p1": {"sglang_engine_requirements": REMOVED}}, ["p1"], {"r1": {"sglang_engine_requirements": REMOVED}}),
    Case("lock-missing", {"p1": {"sglang_engine_requirements": "nowhere.txt"}}, ["p1"], says="no file nowhere.txt"),
    Case("lock-version", {"p1": {"sglang_engine_version": "0.5.22"}}, ["p1"], {"p1": {"sglang_engine_version": "0.5.23"}}, says="sglang==0.5.23"),
    Case("pair-version", {"p1": {"sglang_engine_version": "0.5.22"}}, [D, P], {"all": {"sglang_engine_version": "0.5.22"}}),
    Case("lock-package", {"r1": {"sglang_router_package": "sglang-router"}}, ["r1"], {"r1": {"sglang_router_package": "smg"}}),
    # Values
    Case("type", {"p1": {"sglang_numa_gpus": [0, 1]}}, ["p1"], {"p1": GPUS}),
    Case("type", prefill(port="http"), ["p1"], prefill(port="30100")),
    Case("type", prefill(port=70000), ["p1"], prefill(port=20000)),
    Case("type", prefill(gpus=[0, True]), ["p1"], prefill(gpus=[0, 1])),
    Case("type", {"all": {"sglang_state_dir": "var/lib/sglang"}}, ["d1", "p1", "r1"], {"all": {"sglang_state_dir": "/data/sglang"}}),
    Case("type", group(model={"path": "models/tiny"}), ["d1", "p1", "r1"], group(model={"path": "/models/tiny"})),
    Case("type", group(args=["--tp 2"]), ["d1", "p1", "r1"], group(args={"log-level": "debug"})),
    Case("type", {"p1": {"sglang_python": "python3"}}, ["p1"], {"p1": {"sglang_python": "/usr/bin/python3.12"}}),
    Case("choice", {"r1": {"sglang_router_package": "smgg"}}, ["r1"], {"r1": {"sglang_router_package": "smg"}}, says="set sglang_router_package to smg"),
    Case("env-name", {"p1": {"sglang_env": {"A-B": "1"}}}, ["p1"], {"p1": {"sglang_env": {"A_B": "1"}}}),
    Case("unknown-variable", {"p1": {"sglang_prefil_args": {}}}, ["p1"], {"p1": {"sglang_prefill_args": {}}}, says="'sglang_prefill_args'"),
    Case("unknown-key", prefill(prot=30000), ["p1"], prefill(port=30000), says="'port'"),
    Case("unknown-key", group(served_nam="x"), ["d1", "p1", "r1"], group(served_name="x"), says="'served_name'"),
    Case("unknown-key", group(model={"path": "/m/x", "pth": 1}), ["d1", "p1", "r1"], says="'path'"),
    # Arguments and environment
    Case(
        "arg-spelling",
        prefill(args={"mem_fraction_static": 0.8}),
        [P],
        prefill(args={"mem-fraction-static": 0.8}),
        says="rename mem_fraction_static to mem-fraction-static",
    ),
    Case("arg-spelling", prefill(args={"--page-size": 1}), [P], {"all": {"sglang_args": {"page-size": 1}}}, says="the spelling page-size"),
    Case("arg-spelling", prefill(args={"tp": 8}), [P], prefill(args={"tp-size": 8}), says="tp-size"),
    Case("arg-spelling", decode(args={"cuda-graph-max-bs": 8}), [D], decode(args={"cuda-graph-max-bs-decode": 8}), says="cuda-graph-max-bs-decode"),
    *(
        Case("owned-arg", prefill(args={flag: value}), [P], says=says)
        for flag, value, says in [
            ("model-path", "/x", "model.path"),
            ("model", "/x", "model.path"),
            ("served-model-name", "x", "served_name"),
            ("host", "::", "sglang_address"),
            ("port", 1, "port of the instance"),
            ("disaggregation-mode", "decode", "sglang_inventory_groups"),
            ("disaggregation-bootstrap-port", 1, "bootstrap_port"),
            ("base-gpu-id", 4, "gpus"),
            ("nccl-port", 1, "dist_port"),
            ("numa-node", [0], "numa_node"),
        ]
    ),
    Case("owned-arg", {"r1": {"sglang_router_args": {"prefill": "http://x:1"}}}, ["r1"], {"r1": {"sglang_router_args": {"policy": "random"}}}),
    Case("refused-arg", prefill(args={"config": "/etc/x.yaml"}), [P], prefill(args={"config": None})),
    Case("refused-arg", prefill(args={"nccl-init-addr": "10.0.0.1:5000"}), [P], prefill(dist_port=5000)),
    Case("refused-arg", prefill(args={"ssl-certfile": "/etc/x.pem"}), [P], {"r1": {"sglang_router_args": {"ca-cert-paths": "/etc/x.pem"}}}),
    Case("arg-value", prefill(args={"chat-template": "--x"}), [P], prefill(args={"chunked-prefill-size": "-1"})),
    Case("arg-value", prefill(args={"chat-template": True}), [P], prefill(args={"chat-template": "x.jinja"}), says="does not stand alone"),
    Case("arg-value", prefill(args={"sleep-on-idle": 1}), [P], prefill(args={"sleep-on-idle": True}), says="stands alone"),
    Case(
        "arg-unknown",
        prefill(args={"mem-fraction-statc": 0.8}),
        [P],
        {"p1": {"sglang_engine_version": "0.5.23+mine", "sglang_args": {"my-flag": 1}}},
        says="mem-fraction-static, the nearest",
    ),
    Case("arg-unknown", {"r1": {"sglang_router_args": {"page-size": 1}}}, ["r1"], {"all": {"sglang_args": {"page-size": 1}}}, says="smg 1.13.0"),
    Case("owned-env", prefill(env={"CUDA_VISIBLE_DEVICES": "0,1"}), [P], prefill(env={"NVIDIA_TF32_OVERRIDE": "1"}), says="gpus of the instance"),
    Case("owned-env", {"all": {"sglang_env": {"PLUMBLINE_RENDER": "x"}}}, ["d1", "p1"], {"all": {"sglang_env": {"PLUMBLINE_X": "x"}}}),
    Case("secret-in-args", prefill(args={"api-key": KEY}), [P], says="sglang_api_key"),
    Case("secret-in-args", prefill(args={"admin-api-key": "unknown-to-the-plan"}), [P], says="sglang_admin_api_key"),
    Case("secret-in-args", prefill(args={"preferred-sampling-params": {"deep": [f"x{KEY}x"]}}), [P], prefill(args={"preferred-sampling-params": {"deep": 1}})),
    Case("secret-in-args", {"r1": {"sglang_router_args": {"tenant-api-key": ["t:secret"]}}}, ["r1"]),
    Case("secret-in-env", prefill(env={"HF_TOKEN": "hf_x"}), [P], prefill(env={"TOKENIZERS_PARALLELISM": "false"})),
    Case("secret-in-env", prefill(env={"X_HEADER": f"Bearer {KEY}"}), [P], prefill(env={"X_HEADER": "Bearer"})),
]


def identify(case: Case) -> str:
    return f"{case.rule}-{CASES.index(case)}"


def test_the_unchanged_cluster_has_no_findings() -> None:
    assert plan()["findings"] == []


@pytest.mark.parametrize("case", CASES, ids=identify)
def test_rule_speaks(case: Case) -> None:
    result = plan(case.bad, case.groups)
    findings = found(result, case.rule)
    assert findings, f"no {case.rule} in {result['findings']}"
    assert any(item["where"] == case.where and item["level"] == case.level and case.says in json.dumps(item, ensure_ascii=False) for item in findings), findings
    assert all(item["seen"] and item["expected"] and item["next"] for item in result["findings"])


@pytest.mark.parametrize("case", [case for case in CASES if case.good], ids=identify)
def test_rule_is_silent(case: Case) -> None:
    assert found(plan(case.good, case.good_groups), case.rule) == []


@pytest.mark.parametrize("case", CASES, ids=identify)
def test_no_secret_in_plan_or_findings(case: Case) -> None:
    """Whatever is wrong, and even where the caller ignores the errors."""
    text = json.dumps(plan(case.bad, case.groups))
    for secret in (KEY, "another-key", "root-key-1", "unknown-to-the-plan", "t:secret", "hf_x"):
        assert secret not in text


def test_a_served_name_that_two_groups_share_is_a_warning() -> None:
    groups = {"a": {"model": MODEL}, "b": {"model": MODEL}}
    other = {
        "p1": {
            "sglang_prefill_instances": [{"group": "a", "gpus": BIG}, {"name": "0", "group": "b", "gpus": [4, 5, 6, 7], "port": 30100, "bootstrap_port": 8999}]
        },
        "d1": {"sglang_decode_instances": [{"group": "a", "gpus": BIG}, {"name": "0", "group": "b", "gpus": [4, 5, 6, 7], "port": 30100}]},
        "r1": {"sglang_router_instances": [{"group": "a"}, {"group": "b", "port": 30100, "metrics_port": 29001}]},
    }
    result = plan({"all": {"sglang_groups": groups}, **other})
    assert [(item["rule"], item["level"], item["where"]) for item in result["findings"]] == [("served-name-shared", "warning", ["a", "b"])]
    groups["b"] = {"model": MODEL, "served_name": "other"}
    assert plan({"all": {"sglang_groups": groups}, **other})["findings"] == []


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("sglang==0.5.23\nnixl>=1.5\n", "lock-pin"),
        ("sglang==0.5.23\nnixl\n", "lock-pin"),
        ("sglang==0.5.*\nnixl==1.5.1\n", "lock-pin"),
        ("--index-url https://user:pass@index.example.org/simple\nsglang==0.5.23\nnixl==1.5.1\n", "lock-pin"),
        ("sglang==0.5.23\nnixl==1.5.1\nnixl==1.5.2\n", "lock-pin"),
        ("nixl==1.5.1\n", "lock-package"),
        ("sglang==0.5.23\n", "transfer-library"),
        ("sglang==0.5.23\nmooncake-transfer-engine==0.3.13\n", "transfer-library"),
    ],
)
def test_lock_rules(text: str, rule: str) -> None:
    result = plan(locks={"engine.txt": text})
    assert [item["rule"] for item in result["findings"]] == [rule]
    assert "pass" not in json.dumps(result["findings"])


def test_a_router_lock_holds_one_router() -> None:
    assert [item["rule"] for item in plan(locks={"router.txt": "smg==1.13.0\nsglang-router==0.3.2\n"})["findings"]] == ["lock-router"]


def test_an_inventory_without_hosts_is_an_error_and_no_crash() -> None:
    result = plan(groups={"p1": (), "d1": (), "r1": ()})
    assert [item["rule"] for item in result["findings"]] == ["no-hosts"]
    assert result["instances"] == [] and result["hosts"] == {}


def test_a_failed_template_names_variable_and_host() -> None:
    from ansible_collections.plumbline.sglang.plugins.module_utils.planning.instances import HostInput
    from ansible_collections.plumbline.sglang.plugins.module_utils.planning.plan import build_plan

    hosts = {"p1": HostInput(name="p1", groups=("sglang_prefill",), errors={"sglang_args": "'x' is undefined"}, ansible_host="10.0.0.1")}
    (finding,) = found(build_plan(hosts, {}), "template")
    assert finding["where"] == ["p1"] and "sglang_args" in finding["seen"] and "'x' is undefined" in finding["seen"]


def test_all_findings_come_at_once_and_errors_first() -> None:
    changes = {
        "p1": {"sglang_prefill_instances": [{"gpus": [9], "port": 8998, "args": {"tp": 1}}], "sglang_nonsense": 1},
        "d1": {"sglang_args": {"page-size": 64}},
        "all": {"sglang_api_key": REMOVED},
    }
    result = plan(changes)
    rules = [item["rule"] for item in result["findings"]]
    assert {"gpu-undeclared", "port-overlap", "arg-spelling", "unknown-variable", "pair-differs", "no-key"} <= set(rules)
    levels = [item["level"] for item in result["findings"]]
    assert levels == sorted(levels, key=lambda level: level != "error")
