# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs from NVML, through ``pynvml``, the module of the package nvidia-ml-py.

The packages ``pynvml`` and ``nvidia-ml-py3`` bring a module of the same name: versions of the first before 12 are an old copy, later
ones only warn and pass on to nvidia-ml-py, the second is older still. Which of them a file came from is told by what it can do and
by what is installed. Only nvidia-ml-py is asked.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from importlib import metadata
from typing import Any

from . import sysfs
from .gpus import COMPUTE, DEDICATED, GRAPHICS, UNIFIED, Gpu, GpuProcess, GpuReport, gathered, in_pci_order, pci_address, with_memory

MODULE = "pynvml"
PACKAGE = "nvidia-ml-py"
SOURCE = "nvml"

_OTHERS = ("pynvml", "nvidia-ml-py3")
_COMPUTE_LIST = "nvmlDeviceGetComputeRunningProcesses"
#: They add to the compute list: clients of an MPS server, of which that names the server only, and what draws.
_OTHER_LISTS = (("nvmlDeviceGetMPSComputeRunningProcesses", COMPUTE), ("nvmlDeviceGetGraphicsRunningProcesses", GRAPHICS))
#: NVML's own words say little (nvml.h, nvmlReturn_t).
_MEANINGS = {
    "NVMLError_LibraryNotFound": "libnvidia-ml.so.1 is not on this host",
    "NVMLError_DriverNotLoaded": "NVIDIA's kernel module is not loaded",
    "NVMLError_LibRmVersionMismatch": "driver/library version mismatch",
    "NVMLError_NoPermission": "this user may not use /dev/nvidiactl",
}
#: nvmlProcessInfo_t, where the driver does not tell; nvidia-ml-py makes it None.
_NOT_AVAILABLE = (1 << 64) - 1


class NvmlError(Exception):
    """pynvml cannot be used here; the text says why."""


def load() -> tuple[Any, tuple[str, ...]]:
    """The module, and what is to be said of other packages that bring one.

    :raises NvmlError: where it is missing, broken, or not that of nvidia-ml-py.
    """
    try:
        with warnings.catch_warnings():
            # The package pynvml warns at each import; it is named below instead.
            warnings.simplefilter("ignore")
            nvml = importlib.import_module(MODULE)
    except ImportError:
        raise NvmlError(f"the Python module {MODULE} (package {PACKAGE}) is not installed here") from None
    except Exception as error:  # pylint: disable=broad-except  # a file for Python 2 is a SyntaxError, and so on
        raise NvmlError(f"the Python module {MODULE} cannot be imported: {type(error).__name__}: {error}") from None
    others = [f"{name} {version}" for name in _OTHERS if (version := _installed(name))]
    # nvidia-ml-py is a single file; a directory of this name comes from another package and hides it.
    if _installed(PACKAGE) is None or hasattr(nvml, "__path__") or not hasattr(nvml, "nvmlMemory_v2"):
        whose = f"of {' and '.join(others)}" if others else "of no package that is known here"
        raise NvmlError(f"the Python module {MODULE} is {whose}; only {PACKAGE} (11.515 or newer) is asked, uninstall the other and install it")
    return nvml, tuple(f"{name} is installed beside {PACKAGE} and brings the same module: uninstall it" for name in others)


def _installed(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def read(sys: str = sysfs.SYS) -> GpuReport:
    """Ask NVML; where its module, its library or the driver is missing, that is the report's problem."""
    try:
        nvml, notes = load()
        nvml.nvmlInit()
    except NvmlError as error:
        return GpuReport(problem=str(error))
    except nvml.NVMLError as error:
        return GpuReport(problem=f"NVML: {_words(error)}")
    try:
        found = list(_gpus(nvml, sys))
        lost = tuple(item for item in found if isinstance(item, str))
        if lost and len(lost) == len(found):
            return GpuReport(problem=f"NVML: {'; '.join(lost)}")
        return GpuReport(_driver(nvml), _cuda(nvml), SOURCE, in_pci_order(item for item in found if isinstance(item, Gpu)), notes=notes + lost)
    except nvml.NVMLError as error:
        return GpuReport(problem=f"NVML does not list the GPUs: {_words(error)}")
    finally:
        with suppress(nvml.NVMLError):
            nvml.nvmlShutdown()


def _gpus(nvml: Any, sys: str) -> Iterator[Gpu | str]:
    """Each GPU, or why it cannot be asked: one that fell off the bus must not hide the others."""
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
        except nvml.NVMLError as error:
            yield f"the GPU with the driver's index {index} cannot be asked: {_words(error)}"
        else:
            yield _Device(nvml, handle).gpu(index, sys)


class _Device:
    """One GPU; what NVML does not tell becomes None, with a note why."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle
        self._notes: list[str] = []

    def _ask(self, function: str, *arguments: Any) -> Any:
        try:
            return getattr(self._nvml, function)(self._handle, *arguments)
        except AttributeError:
            self._notes.append(f"{function}: not in this version of {PACKAGE}")
        except self._nvml.NVMLError as error:
            self._notes.append(f"{function}: {_words(error)}")
        return None

    def gpu(self, index: int, sys: str) -> Gpu:
        """Everything that NVML tells of it."""
        pci = self._ask("nvmlDeviceGetPciInfo")
        address = pci_address(_decoded(pci.busId)) if pci is not None else None
        node, cpus = sysfs.numa_of_pci(address, sys) if address else (None, "")
        capability = self._ask("nvmlDeviceGetCudaComputeCapability")
        gpu = Gpu(
            uuid=str(_decoded(self._ask("nvmlDeviceGetUUID")) or ""),
            index=index,
            name=str(_decoded(self._ask("nvmlDeviceGetName")) or ""),
            compute_capability=f"{capability[0]}.{capability[1]}" if capability else None,
            pci_address=address,
            numa_node=node,
            numa_cpus=cpus,
            processes=self._processes(),
            notes=tuple(self._notes),
        )
        return self._with_memory(gpu)

    def _with_memory(self, gpu: Gpu) -> Gpu:
        """Version 2 counts what the driver reserves apart; version 1, for drivers before 510, counts it as used."""
        said, refused = "", False
        for name, arguments in (("nvmlDeviceGetMemoryInfo_v2", (self._nvml.nvmlMemory_v2,)), ("nvmlDeviceGetMemoryInfo", ())):
            try:
                memory = self._nvml.nvmlDeviceGetMemoryInfo(self._handle, *arguments)
            except self._nvml.NVMLError as error:
                said = f"{name}: {_words(error)}"
                refused = type(error).__name__ == "NVMLError_NoPermission"
                if type(error).__name__ == "NVMLError_NotSupported":
                    gpu = replace(gpu, memory_kind=UNIFIED)
                continue
            gpu = replace(gpu, memory_source=f"NVML {name}", memory_kind=DEDICATED)
            reserved = getattr(memory, "reserved", None)
            return with_memory(gpu, int(memory.total), int(memory.used), int(memory.free), None if reserved is None else int(reserved))
        if refused and not gpu.processes:
            gpu = replace(gpu, processes=None)  # none are shown to a user who may not see them (MIG)
        return replace(gpu, memory_source=f"NVML {said}", notes=(*gpu.notes, said))

    def _processes(self) -> tuple[GpuProcess, ...] | None:
        """None where the compute list cannot be had, as with MIG and without rights; the others add to it."""
        compute = self._ask(_COMPUTE_LIST)
        if compute is None:
            return None
        rows = [_row(item, COMPUTE) for item in compute]
        for function, kind in _OTHER_LISTS:
            with suppress(AttributeError, self._nvml.NVMLError):
                rows += [_row(item, kind) for item in getattr(self._nvml, function)(self._handle)]
        return gathered(rows)


def _row(process: Any, kind: str) -> tuple[int, Any, int | None, str]:
    instance = (getattr(process, "gpuInstanceId", None), getattr(process, "computeInstanceId", None))
    return int(process.pid), instance, _size(process.usedGpuMemory), kind


def _size(told: Any) -> int | None:
    return None if told is None or int(told) == _NOT_AVAILABLE else int(told)


def _driver(nvml: Any) -> str | None:
    with suppress(nvml.NVMLError):
        return str(_decoded(nvml.nvmlSystemGetDriverVersion()))
    return None


def _cuda(nvml: Any) -> str | None:
    """``12.4`` from NVML's 12040."""
    with suppress(nvml.NVMLError):
        version = int(nvml.nvmlSystemGetCudaDriverVersion_v2())
        return f"{version // 1000}.{version % 1000 // 10}"
    return None


def _decoded(value: Any) -> Any:
    """Older versions give bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _words(error: Exception) -> str:
    name = type(error).__name__
    return _MEANINGS.get(name) or str(error) or name
