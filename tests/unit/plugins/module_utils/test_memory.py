# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The memory signal: whose memory, where, how much, and how alike."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.host.gpus import Gpu, GpuProcess, GpuReport
from ansible_collections.plumbline.sglang.plugins.module_utils.signals import memory
from ansible_collections.plumbline.sglang.plugins.module_utils.snapshots.safetensors import Tensor
from ansible_collections.plumbline.sglang.plugins.module_utils.snapshots.weights import Weights
from ansible_collections.plumbline.sglang.tests.unit.witness import CHILD, GIB, MODEL, PID, STRANGER, context, ready

GB = 10**9
CARD = 97_887 << 20
#: The weights of the operator who learned not to believe: 149 GB on four GPUs of 97,887 MiB.
LARGE = Weights(MODEL, {f"{MODEL}/model.safetensors": 149 * GB}, {"model.layers.0.w": Tensor("U8", 149 * GB)}, {})


def on_gpus(*held: Any, gpus: tuple[int, ...] = (0, 1, 2, 3), pid: int = CHILD, **options: Any) -> Any:
    """The signal of a TP 4 server on ``gpus``; ``held`` are bytes (of ``pid``) on GPU 0, 1 …"""
    host = ready()
    host.model = LARGE
    cards = [
        Gpu(f"GPU-{index}", index, "RTX PRO 6000", memory_total=CARD, processes=(GpuProcess(pid, size),) if size != 0 else ())
        for index, size in enumerate(held)
    ]
    host.cards = GpuReport("580.95", "13.0", "nvidia-smi", tuple(cards))
    expect = {"tp_size": options.pop("tp", 4), "pp_size": options.pop("pp", 1), "nnodes": options.pop("nodes", 1)}
    return memory.observe(context(host, device="cuda", gpus=list(gpus), argv=options.pop("argv", []), expect=expect))


# --- GPUs -------------------------------------------------------------------------------------------------------------


def test_the_operators_healthy_case_passes() -> None:
    """37 to 38 GB on each GPU, a memory fraction of 0.80: the bound follows from the weights and not from the fraction."""
    signal = on_gpus(int(37.3 * GB), 37 * GB, 38 * GB, int(37.6 * GB), argv=[["--mem-fraction-static", "0.80"]])
    assert signal.state == "passed", signal.observed
    assert signal.details["source"] == "nvidia-smi"
    assert signal.details["weight_bytes"] == 149 * GB
    assert signal.details["lower_bound_bytes"] < 37 * GB


@pytest.mark.parametrize(
    ("held", "state", "says"),
    [
        ((37 * GB, 37 * GB, 12 * GB, 38 * GB), "unknown", "on GPU 2"),
        ((20 * GB, 20 * GB, 20 * GB, 20 * GB), "unknown", "on GPU 0, 1, 2, 3"),
        ((37 * GB, 37 * GB, 0, 38 * GB), "unknown", "on GPU 2"),
        ((37 * GB, 37 * GB, 60 * GB, 38 * GB), "unknown", "not alike across the TP group"),
        ((0, 0, 0, 0), "failed", "holds nothing on GPU 0, 1, 2, 3"),
        ((37 * GB, 37 * GB, 38 * GB, 37 * GB, 37 * GB), "failed", "holds memory on GPU 4, planned: 0, 1, 2, 3"),
        ((37 * GB, 37 * GB, 38 * GB), "failed", "the host has no GPU 3"),
        ((37 * GB, 37 * GB, None, 38 * GB), "unknown", f"does not tell the memory of PID {CHILD}"),
    ],
)
def test_each_way_in_which_the_weights_are_not_there(held: tuple[Any, ...], state: str, says: str) -> None:
    signal = on_gpus(*held)
    assert signal.state == state, signal.observed
    assert says in signal.observed
    assert signal.next


def test_memory_of_another_process_is_not_this_units_and_is_named() -> None:
    signal = on_gpus(37 * GB, 37 * GB, 38 * GB, 37 * GB, pid=STRANGER)
    assert signal.state == "failed"
    assert f"PID {STRANGER} (/user.slice" in signal.observed
    assert len(signal.details["foreign"]) == 4


def test_a_stranger_beside_a_healthy_server_is_named_and_is_no_fault() -> None:
    host = ready()
    host.model = LARGE
    cards = [Gpu(f"GPU-{index}", index, "x", processes=(GpuProcess(CHILD, 38 * GB), GpuProcess(STRANGER, GB))) for index in range(4)]
    host.cards = GpuReport(source="nvml", gpus=tuple(cards))
    signal = memory.observe(context(host, device="cuda", gpus=[0, 1, 2, 3], argv=[], expect={"tp_size": 4}))
    assert signal.state == "passed" and f"PID {STRANGER}" in signal.observed


def test_pipeline_stages_are_not_cut_evenly_but_their_sum_is_the_model() -> None:
    assert on_gpus(30 * GB, 30 * GB, 45 * GB, 45 * GB, tp=2, pp=2).state == "passed"
    assert on_gpus(30 * GB, 30 * GB, 35 * GB, 35 * GB, tp=2, pp=2).state == "unknown"
    assert on_gpus(10 * GB, 60 * GB, 45 * GB, 45 * GB, tp=2, pp=2).state == "unknown"
    assert "not alike" in on_gpus(70 * GB, 20 * GB, 70 * GB, 70 * GB, tp=2, pp=2).observed


def test_a_node_with_the_smaller_stage_is_not_measured_by_the_sum() -> None:
    assert on_gpus(30 * GB, 30 * GB, gpus=(0, 1), tp=2, pp=2, nodes=2).state == "passed"
    assert on_gpus(15 * GB, 15 * GB, gpus=(0, 1), tp=2, pp=2, nodes=2).state == "unknown"


def test_weights_in_the_hosts_memory_are_not_asked_of_the_gpus() -> None:
    held = (20 * GB, 20 * GB, 20 * GB, 20 * GB)
    assert on_gpus(*held, argv=[["--cpu-offload-gb", "20"]]).state == "passed"
    assert on_gpus(*held, argv=[["--cpu-offload-gb", "5"]]).state == "unknown"


@pytest.mark.parametrize("flag", [["--weight-cache-mode", "client"], ["--enable-paged-experts"], ["--kt-weight-path", "/k"], ["--offload-group-size", "4"]])
def test_weights_that_another_process_or_the_host_holds_have_no_bound(flag: list[str]) -> None:
    signal = on_gpus(2 * GB, 2 * GB, 2 * GB, 2 * GB, argv=[flag])
    assert signal.state == "unknown" and flag[0] in signal.observed


@pytest.mark.parametrize("processes", [(), (GpuProcess(900_000, 37 * GB),)])
def test_a_driver_that_names_no_process_of_this_host_proves_nothing(processes: tuple[GpuProcess, ...]) -> None:
    """NVML in a container: the memory is used, by nobody or by PIDs of another namespace."""
    host = ready()
    host.model = LARGE
    host.cards = GpuReport(source="nvml", gpus=tuple(Gpu(f"GPU-{index}", index, "x", memory_used=37 * GB, processes=processes) for index in range(4)))
    signal = memory.observe(context(host, device="cuda", gpus=[0, 1, 2, 3], argv=[], expect={"tp_size": 4}))
    assert signal.state == "unknown" and "no process that this host knows" in signal.observed


def test_a_gpu_that_is_not_planned_may_hide_its_processes() -> None:
    host = ready()
    host.model = LARGE
    cards = [Gpu(f"GPU-{index}", index, "x", processes=(GpuProcess(CHILD, 38 * GB),) if index < 4 else None) for index in range(5)]
    host.cards = GpuReport(source="nvml", gpus=tuple(cards))
    assert memory.observe(context(host, device="cuda", gpus=[0, 1, 2, 3], argv=[], expect={"tp_size": 4})).state == "passed"


def test_the_size_that_the_server_names_serves_where_the_parameters_name_none() -> None:
    host = ready()
    host.model = LARGE
    host.cards = GpuReport(source="nvml", gpus=tuple(Gpu(f"GPU-{index}", index, "x", processes=(GpuProcess(CHILD, 38 * GB),)) for index in range(4)))
    looked = context(host, device="cuda", gpus=[], argv=[], expect={})
    looked.memory["server_info"] = {"tp_size": 4, "pp_size": 1}
    assert memory.observe(looked).state == "passed"
    looked.memory["server_info"] = {"tp_size": 2, "pp_size": 1}
    assert memory.observe(looked).state == "unknown"


@pytest.mark.parametrize(
    "report", [GpuReport(problem="no NVIDIA driver"), GpuReport(source="nvml"), GpuReport(source="nvml", gpus=(Gpu("GPU-0", 0, "x", processes=None),))]
)
def test_what_the_driver_does_not_show_is_unknown_and_never_zero(report: GpuReport) -> None:
    host = ready()
    host.cards = report
    assert memory.observe(context(host, device="cuda", gpus=[0], argv=[], expect={})).state == "unknown"


def test_gpus_that_are_not_named_are_those_that_the_unit_is_on() -> None:
    assert on_gpus(37 * GB, 37 * GB, 38 * GB, 37 * GB, 0, gpus=()).state == "passed"
    assert on_gpus(0, gpus=(), tp=1).state == "failed"


# --- the engine on the CPU --------------------------------------------------------------------------------------------


def test_the_scheduler_holds_the_weights_on_the_cpu() -> None:
    signal = memory.observe(context(ready()))
    assert signal.state == "passed"
    assert signal.details["held_bytes"] == {str(CHILD): 2 * GIB} and "RssAnon" in signal.details["source"]


def test_a_scheduler_without_weights_is_not_covered_by_the_rest_of_the_unit() -> None:
    host = ready()
    host.anonymous = {PID: 8 * GIB, CHILD: GIB // 2}
    signal = memory.observe(context(host))
    assert signal.state == "unknown" and f"PID {CHILD} holds 512.0 MiB" in signal.observed


def test_each_tp_rank_holds_its_share() -> None:
    host = ready()
    host.processes[9000] = "/u"
    host.names[9000] = "sglang::schedul"
    host.anonymous = {CHILD: 600 << 20, 9000: 600 << 20}
    expect = {"tp_size": 2}
    assert memory.observe(context(host, expect=expect)).state == "passed"
    host.anonymous[9000] = 300 << 20
    assert memory.observe(context(host, expect=expect)).state == "unknown"


def test_memory_that_cannot_be_read_is_unknown() -> None:
    host = ready()
    host.anonymous = {}
    assert memory.observe(context(host)).state == "unknown"


@pytest.mark.parametrize("changes", [{"model": {"path": "/nowhere"}}, {"model": None, "expect": {}}, {"model": None, "expect": {"model_path": "org/name"}}])
def test_a_model_that_cannot_be_measured_is_unknown_and_says_what_to_give(changes: dict[str, Any]) -> None:
    signal = memory.observe(context(ready(), **changes))
    assert signal.state == "unknown" and "model_path" in signal.next


def test_the_path_that_the_server_names_serves_where_the_plan_names_none() -> None:
    looked = context(ready(), model=None, expect={})
    looked.memory["server_info"] = {"model_path": MODEL}
    assert memory.observe(looked).state == "passed"
