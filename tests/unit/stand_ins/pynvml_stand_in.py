# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stands in for ``pynvml`` where there is no GPU. Never installed: a test puts an object of it in the place of the module.

It answers as nvidia-ml-py 13.615 does: names of functions, classes of errors, words of errors, None for sizes that the driver does not tell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MIB = 1 << 20
#: nvmlProcessInfo_t.gpuInstanceId where MIG is off.
NO_INSTANCE = 0xFFFFFFFF


class NVMLError(Exception):
    """An answer that is not NVML_SUCCESS."""

    words = "Unknown Error"

    def __str__(self) -> str:
        return self.words


class NVMLError_NotSupported(NVMLError):
    words = "Not Supported"


class NVMLError_NoPermission(NVMLError):
    words = "Insufficient Permissions"


class NVMLError_FunctionNotFound(NVMLError):
    words = "Function Not Found"


class NVMLError_GpuIsLost(NVMLError):
    words = "GPU is lost"


class NVMLError_LibraryNotFound(NVMLError):
    words = "NVML Shared Library Not Found"


class NVMLError_DriverNotLoaded(NVMLError):
    words = "Driver Not Loaded"


class NVMLError_LibRmVersionMismatch(NVMLError):
    words = "RM has detected an NVML/RM version mismatch."


@dataclass
class Pci:
    busId: str


@dataclass
class Memory:
    """c_nvmlMemory_t: what the driver reserves is used."""

    total: int
    used: int
    free: int


@dataclass
class MemoryV2(Memory):
    """c_nvmlMemory_v2_t."""

    reserved: int


@dataclass
class Process:
    pid: int
    usedGpuMemory: int | None
    gpuInstanceId: int = NO_INSTANCE
    computeInstanceId: int = NO_INSTANCE


@dataclass
class Device:
    """One GPU. An attribute that holds an error is raised when it is asked for. Sizes in bytes."""

    bus: Any = "00000000:17:00.0"
    uuid: Any = "GPU-aaaa"
    name: Any = "NVIDIA H100 80GB HBM3"
    capability: Any = (9, 0)
    total: Any = 81559 * MIB
    used: int = 70000 * MIB
    reserved: int = 569 * MIB
    free: int | None = None
    version_2: Any = True
    compute: Any = field(default_factory=list)
    graphics: Any = field(default_factory=list)
    mps: Any = field(default_factory=NVMLError_NotSupported)
    handle: Any = None


def given(value: Any) -> Any:
    """The value, or the error it is."""
    if isinstance(value, Exception):
        raise value
    return value


class Pynvml:
    """The module."""

    nvmlMemory_v2 = 0x02000028
    NVMLError = NVMLError

    def __init__(self, *devices: Device, init: Exception | None = None, driver: Any = "580.95.05", cuda: Any = 13000) -> None:
        self._devices, self._init, self._driver, self._cuda = devices, init, driver, cuda
        self.open = 0

    def nvmlInit(self) -> None:
        given(self._init)
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlSystemGetDriverVersion(self) -> Any:
        return given(self._driver)

    def nvmlSystemGetCudaDriverVersion_v2(self) -> Any:
        return given(self._cuda)

    def nvmlDeviceGetCount(self) -> int:
        return len(self._devices)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Device:
        given(self._devices[index].handle)
        return self._devices[index]

    def nvmlDeviceGetPciInfo(self, device: Device) -> Pci:
        return Pci(given(device.bus))

    def nvmlDeviceGetMemoryInfo(self, device: Device, version: int | None = None) -> Memory:
        total = given(device.total)
        free = total - device.used - device.reserved if device.free is None else device.free
        if not version:
            return Memory(total, device.used + device.reserved, free)
        given(device.version_2)
        return MemoryV2(total, device.used, free, device.reserved)


def _asks(attribute: str) -> Callable[[Pynvml, Device], Any]:
    return lambda _module, device: given(getattr(device, attribute))


for _function, _attribute in {
    "nvmlDeviceGetUUID": "uuid",
    "nvmlDeviceGetName": "name",
    "nvmlDeviceGetCudaComputeCapability": "capability",
    "nvmlDeviceGetComputeRunningProcesses": "compute",
    "nvmlDeviceGetGraphicsRunningProcesses": "graphics",
    "nvmlDeviceGetMPSComputeRunningProcesses": "mps",
}.items():
    setattr(Pynvml, _function, _asks(_attribute))
