# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs as NVML and nvidia-smi tell of them: what is not told is None with a reason, and a host without a driver is a fact."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.host import command, gpus, nvidia_smi, nvml
from ansible_collections.plumbline.sglang.plugins.module_utils.host.command import CommandError, Completed
from ansible_collections.plumbline.sglang.plugins.module_utils.host.gpus import DEDICATED, UNIFIED, Gpu, GpuProcess, GpuReport
from ansible_collections.plumbline.sglang.tests.unit.stand_ins import pynvml_stand_in as stand_in
from ansible_collections.plumbline.sglang.tests.unit.stand_ins.pynvml_stand_in import Device, Process, Pynvml

FIXTURES = Path(__file__).parents[2] / "fixtures" / "nvidia_smi"
MIB = 1 << 20
HOST, CONTAINER = "pid:[4026531836]", "pid:[4026532201]"


def document(name: str) -> str:
    """A fixture."""
    return (FIXTURES / f"{name}.xml").read_text()


def xml(*elements: str) -> str:
    """A whole document with one GPU per text."""
    head = '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n<nvidia_smi_log>'
    return f"{head}{''.join(f'<gpu>{element}</gpu>' for element in elements)}</nvidia_smi_log>"


def program(stdout: str = "", rc: int = 0, stderr: str = "", capabilities: Any = "") -> Callable[[Sequence[str]], Completed]:
    """nvidia-smi that says this."""

    def run(argv: Sequence[str]) -> Completed:
        if tuple(argv) == ("nvidia-smi", "-q", "-x"):
            return Completed(rc, stdout, stderr)
        if isinstance(capabilities, Exception):
            raise capabilities
        return Completed(0, capabilities, "")

    return run


def smi(stdout: str = "", **rest: Any) -> GpuReport:
    """What is read of nvidia-smi that says this, on a machine without such devices."""
    return nvidia_smi.read(program(stdout, **rest), "/nowhere")


@pytest.fixture(name="ask")
def _ask(monkeypatch: pytest.MonkeyPatch) -> Callable[..., GpuReport]:
    """Read a stand-in for NVML as if it were the module of nvidia-ml-py."""

    def ask(*devices: Device, sysfs: str = "/nowhere", installed: dict[str, str] | None = None, module: Any = None, **rest: Any) -> GpuReport:
        module = module or Pynvml(*devices, **rest)
        packages = {"nvidia-ml-py": "13.615.71"} if installed is None else installed
        monkeypatch.setitem(sys.modules, "pynvml", module)
        monkeypatch.setattr(nvml, "_installed", packages.get)
        report = nvml.read(sysfs)
        assert getattr(module, "open", 0) == 0
        return report

    return ask


@pytest.fixture(name="proc")
def _proc(tmp_path: Path) -> Callable[..., str]:
    """A /proc in this PID namespace. Processes: PID -> (command, control group, what it has open)."""

    def proc(namespace: str = HOST, processes: dict[int, tuple[str, str, str]] | None = None, driver: str = "") -> str:
        (tmp_path / "self" / "ns").mkdir(parents=True)
        (tmp_path / "self" / "ns" / "pid").symlink_to(namespace)
        for pid, (name, group, opened) in (processes or {}).items():
            (tmp_path / str(pid) / "fd").mkdir(parents=True)
            (tmp_path / str(pid) / "fd" / "7").symlink_to(opened)
            (tmp_path / str(pid) / "comm").write_text(f"{name}\n")
            (tmp_path / str(pid) / "cgroup").write_text(f"0::{group}\n")
        if driver:
            (tmp_path / "driver" / "nvidia").mkdir(parents=True)
            (tmp_path / "driver" / "nvidia" / "version").write_text(driver)
        return str(tmp_path)

    return proc


def devices(root: Path, nodes: dict[str, str]) -> str:
    """A /sys with PCI devices at these NUMA nodes."""
    for address, node in nodes.items():
        (root / "bus/pci/devices" / address).mkdir(parents=True)
        (root / "bus/pci/devices" / address / "numa_node").write_text(f"{node}\n")
        if node != "-1":
            (root / f"devices/system/node/node{node}").mkdir(parents=True, exist_ok=True)
            (root / f"devices/system/node/node{node}/cpulist").write_text(f"{node}0-{node}9\n")
    return str(root)


# --- nvidia-smi ----------------------------------------------------------------------------------------------------------


def test_eight_gpus_of_two_servers() -> None:
    capabilities = "".join(f"GPU-0000000{index}-1111-2222-3333-444444444444, 9.0\n" for index in range(8))
    report = smi(document("h100x8"), capabilities=capabilities)
    assert (report.source, report.driver_version, report.cuda_version, report.problem, report.notes) == ("nvidia-smi", "570.172.08", "12.8", "", ())
    assert [gpu.index for gpu in report.gpus] == list(range(8))
    assert [gpu.pci_address for gpu in report.gpus][:3] == ["0000:19:00.0", "0000:3b:00.0", "0000:4c:00.0"]
    first = report.gpus[0]
    assert (first.uuid, first.name, first.compute_capability) == ("GPU-00000000-1111-2222-3333-444444444444", "NVIDIA H100 80GB HBM3", "9.0")
    assert (first.memory_total, first.memory_used, first.memory_free) == (81559 * MIB, 71346 * MIB, 9644 * MIB)
    assert (first.memory_reserved, first.memory_kind, first.notes) == (569 * MIB, DEDICATED, ())
    assert first.memory_source == "nvidia-smi -q -x, fb_memory_usage"
    assert first.processes == (GpuProcess(21010, 71336 * MIB, "compute"),)
    assert [gpu.processes[0].pid for gpu in report.gpus if gpu.processes] == [21010, 21011, 21012, 21013, 22010, 22011, 22012, 22013]


def test_eight_gpus_lie_at_two_numa_nodes(tmp_path: Path) -> None:
    addresses = [gpu.pci_address or "" for gpu in smi(document("h100x8")).gpus]
    root = devices(tmp_path, {address: str(index // 4) for index, address in enumerate(addresses)})
    found = nvidia_smi.read(program(document("h100x8")), root).gpus
    assert [(gpu.numa_node, gpu.numa_cpus) for gpu in found] == [(0, "00-09")] * 4 + [(1, "10-19")] * 4


def test_unified_memory_has_no_sizes_and_its_processes_have() -> None:
    gpu = smi(document("gb10")).gpus[0]
    assert (gpu.memory_kind, gpu.memory_total, gpu.memory_used, gpu.memory_free, gpu.memory_reserved) == (UNIFIED, None, None, None, None)
    assert gpu.processes == (GpuProcess(2553, 18 * MIB, "graphics"), GpuProcess(19135, 114687 * MIB, "compute"))
    assert gpu.pci_address == "000f:01:00.0"
    assert "N/A" in gpu.memory_source and gpu.notes == ("memory: N/A",)


@pytest.mark.parametrize("words", ["[N/A]", "Not Supported", "[Not Supported]"])
def test_other_words_for_no_such_number(words: str) -> None:
    assert smi(xml(f"<fb_memory_usage><total>{words}</total></fb_memory_usage><processes/>")).gpus[0].memory_kind == UNIFIED


@pytest.mark.parametrize("words", ["Unknown Error", "GPU is lost", "80 apples"])
def test_a_number_that_was_not_got_is_not_unified_memory(words: str) -> None:
    gpu = smi(xml(f"<fb_memory_usage><total>{words}</total><free>7 MiB</free></fb_memory_usage><processes/>")).gpus[0]
    assert (gpu.memory_total, gpu.memory_free, gpu.memory_kind) == (None, None, DEDICATED)
    assert gpu.notes == (f"memory: {words}",) and words in gpu.memory_source


def test_mig_counts_the_whole_gpu_and_a_process_in_all_its_instances() -> None:
    gpu = smi(document("a100_mig")).gpus[0]
    assert (gpu.memory_total, gpu.memory_free) == (81920 * MIB, 61291 * MIB)
    assert gpu.processes == (GpuProcess(31001, (9800 + 9860) * MIB, "compute"),)


def test_mig_without_rights_is_unknown_with_its_reason() -> None:
    gpu = smi(document("a100_mig_no_permission")).gpus[0]
    assert (gpu.memory_total, gpu.memory_used, gpu.memory_kind, gpu.processes) == (None, None, DEDICATED, None)
    assert gpu.notes == ("memory: Insufficient Permissions", "processes: Insufficient Permissions")


@pytest.mark.parametrize(
    ("element", "processes"),
    [
        ("<processes>\n\t</processes>", ()),
        ("<processes>N/A</processes>", None),
        ("<processes>Insufficient Permissions</processes>", None),
        ("", None),
        ("<processes><process_info><pid>5</pid><type>C</type><used_memory>N/A</used_memory></process_info></processes>", (GpuProcess(5, None),)),
        ("<processes><process_info><pid>5</pid><type>C+G</type><used_memory>1 MiB</used_memory></process_info></processes>", (GpuProcess(5, MIB),)),
    ],
)
def test_no_processes_is_not_the_same_as_none_shown(element: str, processes: Any) -> None:
    gpu = smi(xml(f"<fb_memory_usage><total>9 MiB</total></fb_memory_usage>{element}")).gpus[0]
    assert gpu.processes == processes
    assert bool(gpu.notes) == (processes is None)


def test_free_memory_that_is_larger_than_the_card_is_not_taken() -> None:
    sizes = "<total>16303 MiB</total><used>100 MiB</used><free>61000 MiB</free>"
    gpu = smi(xml(f"<fb_memory_usage>{sizes}</fb_memory_usage><processes/>")).gpus[0]
    assert (gpu.memory_total, gpu.memory_used, gpu.memory_free) == (16303 * MIB, 100 * MIB, None)
    assert f"free memory is told as {61000 * MIB} bytes of {16303 * MIB}" in gpu.notes[0]


def test_gpus_are_numbered_by_pci_address_and_lie_at_numa_nodes(tmp_path: Path) -> None:
    root = devices(tmp_path, {"0000:19:00.0": "0", "0000:9b:00.0": "1", "10000:01:00.0": "-1"})
    buses = ["00010000:01:00.0", "00000000:9B:00.0", "00000000:19:00.0", "00000000:DB:00.0"]
    text = xml(*(f"<uuid>GPU-{bus}</uuid><pci><pci_bus_id>{bus}</pci_bus_id></pci>" for bus in buses))
    found = nvidia_smi.read(program(text), root).gpus
    assert [(gpu.index, gpu.pci_address, gpu.numa_node, gpu.numa_cpus) for gpu in found] == [
        (0, "0000:19:00.0", 0, "00-09"),
        (1, "0000:9b:00.0", 1, "10-19"),
        (2, "0000:db:00.0", None, ""),
        (3, "10000:01:00.0", None, ""),
    ]


def test_what_the_program_does_not_tell_is_none() -> None:
    report = smi(xml("<uuid>N/A</uuid><pci><pci_bus_id>[N/A]</pci_bus_id></pci>"), capabilities=CommandError("did not end within 30 s"))
    gpu = report.gpus[0]
    assert (report.driver_version, report.cuda_version, gpu.uuid, gpu.pci_address, gpu.compute_capability) == (None, None, "", None, None)


NOT_LOADED = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\n\n"
)
MISMATCH = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.54\n"


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"stdout": NOT_LOADED, "rc": 9}, "nvidia-smi ended with status 9: NVIDIA-SMI has failed because it couldn't communicate"),
        ({"stdout": MISMATCH, "rc": 18}, "status 18: Failed to initialize NVML: Driver/library version mismatch NVML library version: 550.54"),
        ({"rc": 1}, "status 1: no output"),
        ({"stdout": "<?xml version='1.0' ?><nvidia_smi_log><gpu>"}, "printed no whole document"),
        ({"stdout": "<nvidia_smi_log><gpu></nvidia_smi_log>"}, "printed something that is not its XML: mismatched tag"),
        ({}, "printed no whole document: no output"),
    ],
)
def test_a_program_that_fails_is_a_problem_in_its_own_words(said: dict[str, Any], problem: str) -> None:
    report = smi(**said)
    assert problem in report.problem
    assert (report.source, report.gpus) == ("", ())


@pytest.mark.parametrize("text", ["nvidia-smi is not installed on this host", "nvidia-smi -q did not end within 30 s"])
def test_a_program_that_cannot_be_run_is_a_problem(text: str) -> None:
    def run(argv: Sequence[str]) -> Completed:
        raise CommandError(text)

    assert nvidia_smi.read(run).problem == text


def test_the_program_is_given_30_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[str, float]] = []

    def run(argv: Sequence[str], timeout: float) -> Completed:
        given.append((argv[0], timeout))
        return Completed(0, document("gb10"), "")

    monkeypatch.setattr(nvidia_smi, "run", run)
    assert nvidia_smi.read().gpus
    assert set(given) == {("nvidia-smi", 30.0)}
    assert command.run(["true"], timeout=nvidia_smi.SECONDS).rc == 0


def test_warnings_around_the_document_do_not_hide_it() -> None:
    warning = "WARNING: infoROM is corrupted at gpu 0000:19:00.0\n"
    report = smi(document("h100x8") + warning, rc=14)
    assert len(report.gpus) == 8
    assert report.notes == ("nvidia-smi ended with status 14: WARNING: infoROM is corrupted at gpu 0000:19:00.0",)


# --- NVML ----------------------------------------------------------------------------------------------------------------


def test_what_nvml_tells(ask: Callable[..., GpuReport], tmp_path: Path) -> None:
    root = devices(tmp_path, {"0000:17:00.0": "1"})
    report = ask(Device(compute=[Process(7, 5 * MIB)], graphics=[Process(7, 5 * MIB), Process(3, MIB)], mps=[Process(9, MIB)]), sysfs=root)
    assert (report.source, report.driver_version, report.cuda_version, report.problem, report.notes) == ("nvml", "580.95.05", "13.0", "", ())
    processes = (GpuProcess(3, MIB, "graphics"), GpuProcess(7, 5 * MIB, "compute"), GpuProcess(9, MIB, "compute"))
    assert report.gpus == (
        Gpu(
            uuid="GPU-aaaa",
            index=0,
            name="NVIDIA H100 80GB HBM3",
            compute_capability="9.0",
            pci_address="0000:17:00.0",
            numa_node=1,
            numa_cpus="10-19",
            memory_total=81559 * MIB,
            memory_used=70000 * MIB,
            memory_free=(81559 - 70000 - 569) * MIB,
            memory_source="NVML nvmlDeviceGetMemoryInfo_v2",
            processes=processes,
            memory_reserved=569 * MIB,
        ),
    )


def test_an_older_driver_counts_what_it_reserves_as_used(ask: Callable[..., GpuReport]) -> None:
    gpu = ask(Device(version_2=stand_in.NVMLError_FunctionNotFound())).gpus[0]
    assert (gpu.memory_used, gpu.memory_reserved, gpu.memory_source) == (70569 * MIB, None, "NVML nvmlDeviceGetMemoryInfo")


def test_not_supported_is_unified_memory_whose_processes_have_sizes(ask: Callable[..., GpuReport]) -> None:
    gpu = ask(Device(bus=b"0000000F:01:00.0", name=b"NVIDIA GB10", total=stand_in.NVMLError_NotSupported(), compute=[Process(19135, 114687 * MIB)])).gpus[0]
    assert (gpu.name, gpu.pci_address, gpu.memory_kind) == ("NVIDIA GB10", "000f:01:00.0", UNIFIED)
    assert (gpu.memory_total, gpu.memory_used, gpu.memory_free) == (None, None, None)
    assert gpu.processes == (GpuProcess(19135, 114687 * MIB),)
    assert gpu.notes == ("nvmlDeviceGetMemoryInfo: Not Supported",)


def test_a_total_of_zero_is_no_number(ask: Callable[..., GpuReport]) -> None:
    gpu = ask(Device(total=0, used=0, reserved=0)).gpus[0]
    assert (gpu.memory_total, gpu.memory_used, gpu.memory_free, gpu.memory_kind) == (None, None, None, UNIFIED)


def test_no_rights_is_unknown_and_not_unified(ask: Callable[..., GpuReport]) -> None:
    refused = stand_in.NVMLError_NoPermission()
    for compute in (refused, []):
        gpu = ask(Device(total=refused, compute=compute)).gpus[0]
        assert (gpu.memory_total, gpu.memory_kind, gpu.processes) == (None, DEDICATED, None)
        assert any("/dev/nvidiactl" in note for note in gpu.notes)


def test_free_above_total_is_not_taken(ask: Callable[..., GpuReport]) -> None:
    gpu = ask(Device(total=16303 * MIB, used=MIB, reserved=0, free=61000 * MIB)).gpus[0]
    assert (gpu.memory_free, gpu.memory_used) == (None, MIB)
    assert "not taken" in gpu.notes[0]


@pytest.mark.parametrize("told", [None, (1 << 64) - 1])
def test_a_size_that_is_not_available_is_none(ask: Callable[..., GpuReport], told: int | None) -> None:
    assert ask(Device(compute=[Process(7, told)])).gpus[0].processes == (GpuProcess(7, None),)


def test_instances_of_mig_are_added_unless_one_is_unknown(ask: Callable[..., GpuReport]) -> None:
    two = [Process(7, MIB, 3, 0), Process(7, 2 * MIB, 5, 0), Process(8, MIB, 3, 0), Process(8, None, 5, 0)]
    assert ask(Device(compute=two)).gpus[0].processes == (GpuProcess(7, 3 * MIB), GpuProcess(8, None))


def test_a_gpu_that_is_lost_leaves_the_others_their_numbers(ask: Callable[..., GpuReport]) -> None:
    lost = Device(handle=stand_in.NVMLError_GpuIsLost())
    report = ask(Device("00000000:19:00.0"), lost, Device("00000000:9B:00.0"))
    assert [(gpu.index, gpu.pci_address) for gpu in report.gpus] == [(0, "0000:19:00.0"), (2, "0000:9b:00.0")]
    assert report.notes == ("the GPU with the driver's index 1 cannot be asked: GPU is lost",)
    assert "GPU is lost" in ask(lost).problem


def test_one_function_that_fails_costs_one_fact(ask: Callable[..., GpuReport]) -> None:
    unknown = stand_in.NVMLError()
    report = ask(Device(bus=unknown, uuid=unknown, name=unknown, capability=unknown), driver=unknown, cuda=unknown)
    gpu = report.gpus[0]
    assert (report.driver_version, report.cuda_version, gpu.uuid, gpu.name, gpu.compute_capability, gpu.pci_address) == (None, None, "", "", None, None)
    assert gpu.memory_total == 81559 * MIB and len(gpu.notes) == 4


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (stand_in.NVMLError_LibraryNotFound(), "libnvidia-ml.so.1 is not on this host"),
        (stand_in.NVMLError_DriverNotLoaded(), "kernel module is not loaded"),
        (stand_in.NVMLError_LibRmVersionMismatch(), "version mismatch"),
        (stand_in.NVMLError(), "Unknown Error"),
    ],
)
def test_nvml_that_does_not_start_is_a_problem(ask: Callable[..., GpuReport], error: Exception, words: str) -> None:
    report = ask(init=error)
    assert words in report.problem and not report.gpus


def test_the_module_of_another_package_is_not_asked(ask: Callable[..., GpuReport]) -> None:
    assert "pynvml is of nvidia-ml-py3 7.352.0; only nvidia-ml-py" in ask(Device(), installed={"nvidia-ml-py3": "7.352.0"}).problem
    assert "of no package that is known here" in ask(Device(), installed={}).problem
    copy = Pynvml(Device())
    copy.__path__ = ["/site-packages/pynvml"]  # type: ignore[attr-defined]
    assert "is of pynvml 11.5.3" in ask(module=copy, installed={"nvidia-ml-py": "12.575.51", "pynvml": "11.5.3"}).problem


def test_an_old_or_broken_module_is_not_asked(ask: Callable[..., GpuReport], monkeypatch: pytest.MonkeyPatch) -> None:
    assert "11.515 or newer" in ask(module=object()).problem

    def broken(name: str) -> None:
        raise SyntaxError("Missing parentheses in call to 'print'")

    monkeypatch.setattr(nvml.importlib, "import_module", broken)
    assert "cannot be imported: SyntaxError: Missing parentheses" in nvml.read().problem


def test_a_deprecated_package_beside_the_right_one_is_named(ask: Callable[..., GpuReport]) -> None:
    report = ask(Device(), installed={"nvidia-ml-py": "13.615.71", "pynvml": "13.0.1"})
    assert report.gpus
    assert report.notes == ("pynvml 13.0.1 is installed beside nvidia-ml-py and brings the same module: uninstall it",)


def test_no_module_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert nvml.read().problem == "the Python module pynvml (package nvidia-ml-py) is not installed here"


# --- both ----------------------------------------------------------------------------------------------------------------


def says(report: GpuReport) -> Callable[[], GpuReport]:
    return lambda: report


def breaks() -> GpuReport:
    raise OSError("cannot open shared object file")


GPU = Gpu("GPU-a", 0, "NVIDIA H100 80GB HBM3", processes=(GpuProcess(7, MIB), GpuProcess(8, None)))


def test_the_second_is_asked_where_the_first_has_a_problem(proc: Callable[..., str]) -> None:
    right = GpuReport("580", "13.0", "nvidia-smi", (GPU,))
    here = proc()
    assert gpus.read([says(GpuReport(problem="no module")), says(right), breaks], here) == right
    assert gpus.read([breaks, says(right)], here) == right


def test_nobody_answers_on_a_host_without_a_driver(proc: Callable[..., str]) -> None:
    report = gpus.read([says(GpuReport(problem="no module")), breaks], proc())
    assert report.problem.startswith("no NVIDIA driver: no module; ")
    assert "OSError: cannot open shared object file" in report.problem
    assert "install NVIDIA's driver" in report.next and report.driver_version is None


def test_a_driver_that_is_loaded_and_cannot_be_asked_is_told_apart(proc: Callable[..., str]) -> None:
    version = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (root@b)\nGCC version:  gcc 12.2.0\n"
    report = gpus.read([says(GpuReport(problem="nvidia-smi is not installed"))], proc(driver=version))
    assert report.problem == "NVIDIA's driver 580.95.05 is loaded and does not answer: nvidia-smi is not installed"
    assert (report.driver_version, "PATH" in report.next) == ("580.95.05", True)


def test_a_mismatch_of_versions_asks_for_a_reboot(proc: Callable[..., str]) -> None:
    assert "reboot the host" in gpus.read([lambda: smi(MISMATCH, rc=18)], proc()).next


def test_this_machine_can_be_asked() -> None:
    report = gpus.read()
    assert bool(report.problem) != bool(report.source)


@pytest.mark.parametrize(
    ("namespace", "listed", "opened", "visible"),
    [
        (HOST, GPU.processes, "/dev/null", True),
        (HOST, (), "", True),
        (CONTAINER, (), "", False),
        (CONTAINER, GPU.processes, "/dev/null", False),
        (CONTAINER, GPU.processes, "/dev/nvidia0", True),
    ],
)
def test_pids_are_believed_where_they_mean_something(proc: Callable[..., str], namespace: str, listed: Any, opened: str, visible: bool) -> None:
    there = dict.fromkeys((7, 8), ("python3", "/", opened)) if opened else {}
    report = GpuReport(source="nvml", gpus=(Gpu("GPU-a", 0, "x", processes=listed),))
    gpu = gpus.read([says(report)], proc(namespace, there)).gpus[0]
    assert gpu.processes == (listed if visible else None)
    assert bool(gpu.notes) == (namespace == CONTAINER)


def test_a_pid_of_outside_is_not_taken_for_a_process_here(proc: Callable[..., str]) -> None:
    there = {7: ("sglang::schedul", "/", "/dev/nvidia0")}
    assert gpus.read([says(GpuReport(source="nvml", gpus=(GPU,)))], proc(CONTAINER, there)).gpus[0].processes is None


@pytest.mark.parametrize(
    ("group", "unit"),
    [
        ("/system.slice/sglang-prefill-m-0.service", "sglang-prefill-m-0.service"),
        ("/sglang.slice/sglang-decode-m-0.service/worker", "sglang-decode-m-0.service"),
        ("/user.slice/user-1000.slice/session-3.scope", "session-3.scope"),
        ("/user.slice/user-1000.slice/user@1000.service/app.slice/train.service", "user@1000.service"),
        ("/system.slice/docker-0123abcd.scope", "docker-0123abcd.scope"),
        ("/", None),
        ("", None),
    ],
)
def test_the_unit_of_a_control_group(group: str, unit: str | None) -> None:
    assert gpus.unit_of(group) == unit


def test_facts_are_by_uuid_with_units(proc: Callable[..., str]) -> None:
    there = {7: ("sglang::schedul", "/system.slice/sglang-prefill-m-0.service", "/dev/nvidia0")}
    other = Gpu("", 1, "NVIDIA H100 80GB HBM3", pci_address="0000:18:00.0", processes=None, notes=("processes: N/A",))
    told = gpus.facts(GpuReport("580.95.05", "13.0", "nvml", (GPU, other)), proc(processes=there))
    assert json.loads(json.dumps(told)) == told
    assert (told["available"], told["reason"], told["next"]) == (True, "", "")
    assert told["order"] == list(told["gpus"]) == ["GPU-a", "0000:18:00.0"]
    assert told["gpus"]["GPU-a"]["processes"] == [
        {"pid": 7, "bytes": MIB, "kind": "compute", "command": "sglang::schedul", "unit": "sglang-prefill-m-0.service"},
        {"pid": 8, "bytes": None, "kind": "compute", "command": "", "unit": None},
    ]
    assert (told["gpus"]["0000:18:00.0"]["processes"], told["gpus"]["0000:18:00.0"]["notes"]) == (None, ["processes: N/A"])


def test_facts_of_a_host_without_gpus_say_why() -> None:
    nothing = gpus.facts(GpuReport("580.95.05", "13.0", "nvidia-smi"))
    assert (nothing["available"], nothing["reason"], nothing["gpus"]) == (False, "NVIDIA's driver shows no GPU", {})
    assert "lspci" in nothing["next"]
    none = gpus.facts(GpuReport(problem="no NVIDIA driver: x", next="install it"))
    assert (none["available"], none["reason"], none["next"]) == (False, "no NVIDIA driver: x", "install it")
