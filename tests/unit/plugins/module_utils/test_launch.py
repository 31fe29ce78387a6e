# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments and environment as the programs read them."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.planning.launch import Launch, argv, device, environment, merge_args, parallel, to_argv
from ansible_collections.plumbline.sglang.tests.unit.plan_inventory import flags


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, [["--x"]]),
        (False, []),
        (None, []),
        ([], []),
        (0, [["--x", "0"]]),
        (0.8, [["--x", "0.8"]]),
        ("", [["--x", ""]]),
        ("a b", [["--x", "a b"]]),
        ([1, "b"], [["--x", "1", "b"]]),
        ([["a", 1], ["b"]], [["--x", "a", "1"], ["--x", "b"]]),
        ({"b": True, "a": [1, "ü"]}, [["--x", '{"a":[1,"ü"],"b":true}']]),
        ([{"a": 1}], [["--x", '{"a":1}']]),
    ],
)
def test_value_forms(value: Any, expected: list[list[str]]) -> None:
    assert to_argv({"x": value}) == expected


def test_flags_are_in_alphabetical_order() -> None:
    assert [item[0] for item in to_argv({"b": 1, "a": True, "c": [1]})] == ["--a", "--b", "--c"]


def test_an_alias_in_a_later_layer_replaces_the_flag() -> None:
    assert merge_args([{"tp-size": 2, "dp-size": 2}, {"tensor-parallel-size": 4, "data-parallel-size": None}]) == {"tp-size": 4}


@pytest.mark.parametrize(
    ("args", "gpus", "expected"),
    [
        ({}, (), (1, 1, 1, 1)),
        ({}, (0, 1, 2, 3), (4, 1, 1, 1)),
        ({"pp-size": "2"}, (0, 1, 2, 3), (2, 2, 1, 1)),
        ({"dp-size": 2}, (0, 1, 2, 3), (2, 1, 2, 1)),
        ({"attn-dp-size": 4}, (0, 1, 2, 3), (4, 1, 1, 4)),
        ({"dp-size": 2, "enable-dp-attention": True}, (0, 1, 2, 3), (4, 1, 1, 2)),
        ({"tp-size": 8}, (0, 1), (8, 1, 1, 1)),
    ],
)
def test_parallel_sizes(args: dict[str, Any], gpus: tuple[int, ...], expected: tuple[int, ...]) -> None:
    sizes = parallel(args, gpus)
    assert (sizes.tp, sizes.pp, sizes.dp, sizes.attn_dp) == expected


def engine(**changes: Any) -> Launch:
    settings: dict[str, Any] = {
        "role": "prefill",
        "package": "sglang",
        "address": "10.0.0.1",
        "port": 30000,
        "release_path": "/r/one",
        "cache_dir": "/cache",
        "model_path": "/m/x",
        "served_name": "x",
        "bootstrap_port": 8998,
        "dist_port": 30335,
        "gpus": (0, 1),
    }
    return Launch(**{**settings, **changes})


def router(**changes: Any) -> Launch:
    settings: dict[str, Any] = {
        "role": "router",
        "package": "smg",
        "address": "10.0.0.3",
        "port": 30001,
        "release_path": "/r/two",
        "cache_dir": "/cache",
        "metrics_port": 29000,
        "prefill_urls": [("http://10.0.0.1:30000", 8998)],
        "decode_urls": ["http://10.0.0.2:30002"],
    }
    return Launch(**{**settings, **changes})


def test_engine_argv() -> None:
    result = flags(argv(engine(args={"enable-metrics": True})))
    assert result == {
        "--model-path": ["/m/x"],
        "--served-model-name": ["x"],
        "--host": ["10.0.0.1"],
        "--port": ["30000"],
        "--disaggregation-mode": ["prefill"],
        "--disaggregation-bootstrap-port": ["8998"],
        "--tp-size": ["2"],
        "--nccl-port": ["30335"],
        "--enable-metrics": [],
    }


def test_each_flag_stands_once_and_what_the_plan_decides_wins() -> None:
    names = [item[0] for item in argv(engine(args={"tp-size": 2, "port": 1, "page-size": 64}))]
    assert len(names) == len(set(names))
    assert flags(argv(engine(args={"port": 1})))["--port"] == ["30000"]


def test_a_decode_without_a_port_leaves_the_flag_out() -> None:
    assert "--disaggregation-bootstrap-port" not in flags(argv(engine(role="decode", bootstrap_port=None)))


def test_a_router_without_a_bootstrap_port_gets_no_word_none() -> None:
    assert ["--prefill", "http://p:1"] in argv(router(prefill_urls=[("http://p:1", None)]))


def test_engine_environment() -> None:
    result = environment(engine(env={"SGLANG_LOG_MS": True, "HF_HUB_OFFLINE": 0}))
    assert result["PATH"].startswith("/r/one/bin:/usr/local/cuda/bin:") and result["CUDA_HOME"] == "/usr/local/cuda"
    assert result["SGLANG_HOST_IP"] == "10.0.0.1" and result["CUDA_VISIBLE_DEVICES"] == "0,1" and result["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    for name in ("SGLANG_AUTO_NUMA_BIND", "SGLANG_PYSPY_DUMP_BEFORE_CRASH", "SGLANG_CUDA_COREDUMP_BEFORE_CRASH"):
        assert result[name] == "0"
    assert result["SPT_NOENV"] == result["PYTHONUNBUFFERED"] == "1"
    assert result["SGLANG_LOG_MS"] == "true" and result["HF_HUB_OFFLINE"] == "0", "the operator's values are text, and win"
    assert all(isinstance(value, str) for value in result.values())


def test_the_operator_can_remove_a_built_in_variable() -> None:
    assert "CUDA_HOME" not in environment(engine(env={"CUDA_HOME": None}))


def test_router_environment_has_nothing_of_an_engine() -> None:
    result = environment(router())
    assert result["PATH"].startswith("/r/two/bin:/usr/local/sbin") and result["HF_HUB_OFFLINE"] == "1"
    assert not [name for name in result if name.startswith(("SGLANG_", "CUDA_"))]


def test_device() -> None:
    assert device({"device": "cpu"}) == "cpu"
    assert device({"device": "auto"}) == device({}) == "cuda"
