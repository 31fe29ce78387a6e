# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPUs of a host and who holds their memory: from NVML where its Python module is there, else from nvidia-smi.

What the driver does not tell is None with a note, and never 0. Memory of the host is never given as memory of a GPU.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Hashable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from . import procfs

COMPUTE = "compute"
GRAPHICS = "graphics"
DEDICATED = "dedicated"
#: The GPU computes in the host's own memory (GB10), so the driver has no numbers for total, used and free.
UNIFIED = "unified"

#: The first PID namespace of a kernel, PROC_PID_INIT_INO of include/linux/proc_ns.h. The driver counts PIDs there.
_FIRST_PID_NAMESPACE = "pid:[4026531836]"
_ADDRESS = re.compile(r"^(?:([0-9a-f]{1,8}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])$")
#: Names of units that hold processes (systemd.unit(5)); a slice holds other units.
_UNITS = (".service", ".scope", ".socket", ".mount", ".swap")


@dataclass(frozen=True)
class GpuProcess:
    """A process that holds memory of a GPU. ``bytes`` is None where the driver does not tell; ``kind`` is compute or graphics."""

    pid: int
    bytes: int | None
    kind: str = COMPUTE


@dataclass(frozen=True)
class Gpu:
    """One GPU.

    ``index`` counts from 0 in PCI order, as CUDA does with ``CUDA_DEVICE_ORDER=PCI_BUS_ID``; without it CUDA puts the fastest first.
    ``pci_address`` is ``0000:17:00.0``, as in sysfs. ``numa_node`` and ``numa_cpus`` (a kernel list, ``0-31``) are sysfs's, None and
    empty where the kernel knows no node. Memory is in bytes, None where there is no such number. ``memory_reserved`` is the driver's
    own share, which ``memory_used`` holds too where it is None. ``memory_source`` names who said it. ``memory_kind`` is unified only where
    the driver says that there are no such numbers. ``processes`` is None where they are not visible, which is not the same as none.
    ``notes`` says what could not be read, and why.
    """

    uuid: str
    index: int
    name: str
    compute_capability: str | None = None
    pci_address: str | None = None
    numa_node: int | None = None
    numa_cpus: str = ""
    memory_total: int | None = None
    memory_used: int | None = None
    memory_free: int | None = None
    memory_source: str = ""
    memory_kind: str = DEDICATED
    processes: tuple[GpuProcess, ...] | None = ()
    notes: tuple[str, ...] = ()
    memory_reserved: int | None = None


@dataclass(frozen=True)
class GpuReport:
    """What the driver says.

    ``source`` is ``nvml`` or ``nvidia-smi``, empty where neither answered; then ``problem`` says why and ``next`` what to do.
    ``cuda_version`` is the newest CUDA that the driver can run.
    """

    driver_version: str | None = None
    cuda_version: str | None = None
    source: str = ""
    gpus: tuple[Gpu, ...] = ()
    problem: str = ""
    notes: tuple[str, ...] = ()
    next: str = ""


Reader = Callable[[], GpuReport]


def read(readers: Iterable[Reader] = (), proc: str = procfs.PROC) -> GpuReport:
    """Ask NVML, else nvidia-smi. Never raises: a host without a driver is a fact."""
    from . import nvidia_smi, nvml

    said = []
    for reader in readers or (nvml.read, nvidia_smi.read):
        try:
            report = reader()
        except Exception as error:  # pylint: disable=broad-except  # a foreign library or program that breaks is a fact too
            report = GpuReport(problem=f"{reader.__module__} broke: {type(error).__name__}: {error}")
        if not report.problem:
            return replace(report, gpus=tuple(_seen(gpu, proc) for gpu in report.gpus))
        said.append(report.problem)
    return _without_answer("; ".join(said), proc)


def _without_answer(said: str, proc: str) -> GpuReport:
    """Nobody answered: tell a host without a driver from one whose driver is loaded and cannot be asked."""
    loaded = kernel_driver(proc)
    if "mismatch" in said.lower():
        step = "the driver was updated under the one that is loaded: reboot the host, or unload and load NVIDIA's kernel modules"
    elif loaded:
        step = "put nvidia-smi on the PATH of root, or nvidia-ml-py into the tools environment; if they are there, see dmesg"
    else:
        step = "if this host has NVIDIA GPUs, install NVIDIA's driver with nvidia-smi; if it is installed, see why it is not loaded (dmesg)"
    head = f"NVIDIA's driver {loaded} is loaded and does not answer" if loaded else "no NVIDIA driver"
    return GpuReport(loaded, problem=f"{head}: {said}", next=step)


def kernel_driver(proc: str = procfs.PROC) -> str | None:
    """Version of NVIDIA's kernel module that is loaded; None where none is."""
    try:
        with open(f"{proc}/driver/nvidia/version", encoding="utf-8", errors="replace") as file:
            found = re.search(r"\b\d+\.\d+(?:\.\d+)?\b", file.readline())
    except OSError:
        return None
    return found.group() if found else "of unknown version"


# --- who holds the memory ------------------------------------------------------------------------------------------------


def gathered(rows: Iterable[tuple[int, Hashable, int | None, str]]) -> tuple[GpuProcess, ...]:
    """Rows (PID, MIG instance, bytes, kind) -> one process per PID, in order of PID.

    A process that computes and draws is listed twice with the same figure, which counts once; one that uses several MIG instances
    has a figure in each, which are added.
    """
    sizes: dict[int, dict[Hashable, list[int | None]]] = {}
    kinds: dict[int, set[str]] = {}
    for pid, instance, size, kind in rows:
        sizes.setdefault(pid, {}).setdefault(instance, []).append(size)
        kinds.setdefault(pid, set()).add(kind)
    found = []
    for pid, instances in sorted(sizes.items()):
        largest = [max((size for size in told if size is not None), default=None) for told in instances.values()]
        known = [size for size in largest if size is not None]
        found.append(GpuProcess(pid, sum(known) if len(known) == len(largest) else None, COMPUTE if COMPUTE in kinds[pid] else GRAPHICS))
    return tuple(found)


def _seen(gpu: Gpu, proc: str) -> Gpu:
    """The GPU with its processes as far as their PIDs mean something here.

    The driver counts PIDs outside of containers, or leaves out what a container may not see (nvidia-docker#179, #1483). So in a PID
    namespace of its own an empty list proves nothing, and a PID is believed only of a process that has the GPU open.
    """
    try:
        first = os.readlink(f"{proc}/self/ns/pid") == _FIRST_PID_NAMESPACE
    except OSError:
        first = False
    if first or gpu.processes is None:
        return gpu
    if gpu.processes and all(_has_gpu_open(item.pid, proc) for item in gpu.processes):
        return replace(gpu, notes=(*gpu.notes, "processes: those outside of this container are not visible"))
    return replace(gpu, processes=None, notes=(*gpu.notes, "processes: not visible in a container with a PID namespace of its own"))


def _has_gpu_open(pid: int, proc: str) -> bool:
    try:
        return any(os.readlink(f"{proc}/{pid}/fd/{name}").startswith("/dev/nvidia") for name in os.listdir(f"{proc}/{pid}/fd"))
    except OSError:
        return False


def unit_of(control_group: str) -> str | None:
    """The unit of the system's manager that a control group belongs to: the first part of its path that is no slice; None for none."""
    return next((part for part in control_group.split("/") if part.endswith(_UNITS)), None)


# --- what both readers need ----------------------------------------------------------------------------------------------


def pci_address(text: str | None) -> str | None:
    """``0000:17:00.0`` from ``00000000:17:00.0``, as sysfs spells it; None for anything else (``[N/A]``)."""
    match = _ADDRESS.match((text or "").strip().lower())
    return f"{int(match.group(1) or '0', 16):04x}:{match.group(2)}" if match else None


def in_pci_order(found: Iterable[Gpu]) -> tuple[Gpu, ...]:
    """The GPUs by PCI address, numbered by it; those without an address keep the driver's order, which is the same.

    Numbers that the driver left out (a GPU that is lost) stay free, so that the others keep theirs.
    """
    gpus = list(found)
    numbers = sorted(gpu.index for gpu in gpus)
    if all(gpu.pci_address for gpu in gpus):
        gpus.sort(key=lambda gpu: [int(part, 16) for part in re.split("[:.]", gpu.pci_address or "")])
    else:
        gpus.sort(key=lambda gpu: gpu.index)
    return tuple(replace(gpu, index=number) for gpu, number in zip(gpus, numbers))


def with_memory(gpu: Gpu, total: int | None, used: int | None, free: int | None, reserved: int | None) -> Gpu:
    """The GPU with these numbers (bytes), as far as they can be true: no part is larger than the whole.

    A total of 0 is a driver that has no number. Runtimes were seen to give the host's free memory as the card's.
    """
    if not total:
        return replace(gpu, memory_kind=UNIFIED if total == 0 else gpu.memory_kind)
    parts = {"used": used, "free": free, "reserved": reserved}
    wrong = [f"{name} memory is told as {size} bytes of {total}: not taken" for name, size in parts.items() if size is not None and size > total]

    def sane(size: int | None) -> int | None:
        return None if size is None or size > total else size

    notes = (*gpu.notes, *wrong)
    return replace(gpu, memory_total=total, memory_used=sane(used), memory_free=sane(free), memory_reserved=sane(reserved), notes=notes)


# --- as facts ------------------------------------------------------------------------------------------------------------


def facts(report: GpuReport, proc: str = procfs.PROC) -> dict[str, Any]:
    """The report as plain data: the GPUs by their UUID, with the command and the unit of each process."""
    found = {gpu.uuid or gpu.pci_address or str(gpu.index): gpu for gpu in report.gpus}
    nothing = "" if report.gpus or report.problem else "NVIDIA's driver shows no GPU"
    return {
        "available": bool(report.gpus),
        "reason": report.problem or nothing,
        "next": report.next or (nothing and "see whether lspci and dmesg show the GPUs"),
        "source": report.source,
        "driver_version": report.driver_version,
        "cuda_version": report.cuda_version,
        "gpus": {key: _gpu_facts(gpu, proc) for key, gpu in found.items()},
        "order": list(found),
        "notes": list(report.notes),
    }


def _gpu_facts(gpu: Gpu, proc: str) -> dict[str, Any]:
    processes = None if gpu.processes is None else [_process_facts(item, proc) for item in gpu.processes]
    return {**asdict(gpu), "notes": list(gpu.notes), "processes": processes}


def _process_facts(process: GpuProcess, proc: str) -> dict[str, Any]:
    # Not the name that nvidia-smi gives: that is a whole command line, which may hold a secret.
    command = procfs.command_of(process.pid, proc)
    return {**asdict(process), "command": command, "unit": unit_of(procfs.cgroup_of(process.pid, proc))}
