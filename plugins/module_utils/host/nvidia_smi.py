# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs from ``nvidia-smi -q -x``, with the standard library alone: for hosts without NVML's Python module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

# nvidia-smi is a program of this host that root runs anyway: its output is no foreign document that could attack a parser.
from xml.etree import ElementTree

from . import sysfs
from .command import CommandError, Completed, run
from .gpus import COMPUTE, GRAPHICS, UNIFIED, Gpu, GpuProcess, GpuReport, gathered, in_pci_order, pci_address, with_memory

SOURCE = "nvidia-smi"
SECONDS = 30.0  # without the persistence daemon the driver initialises each GPU first
_MIB = 1 << 20
_QUERY = ("nvidia-smi", "-q", "-x")
#: The XML has no compute capability.
_CAPABILITIES = ("nvidia-smi", "--query-gpu=uuid,compute_cap", "--format=csv,noheader")
#: How the program says that there is no such number; other words (Insufficient Permissions, Unknown Error) are a number that it did not get.
_NO_SUCH_NUMBER = ("n/a", "not supported")
_END = "</nvidia_smi_log>"

Runner = Callable[[Sequence[str]], Completed]


def _run(argv: Sequence[str]) -> Completed:
    return run(argv, timeout=SECONDS)


def read(runner: Runner = _run, sys: str = sysfs.SYS) -> GpuReport:
    """Ask the program; a host without it, or whose driver does not answer, is a report with a problem."""
    try:
        done = runner(_QUERY)
    except CommandError as error:
        return GpuReport(problem=str(error))
    # It may warn around its document and end with a status of its own (14: infoROM of a GPU is corrupted) though it told everything.
    start, end = max(done.stdout.find("<?xml"), 0), done.stdout.rfind(_END)
    if end < 0:
        said = _one_line(done.stdout + " " + done.stderr)
        return GpuReport(problem=f"nvidia-smi ended with status {done.rc}: {said}" if done.rc else f"nvidia-smi -q -x printed no whole document: {said}")
    document = done.stdout[start : end + len(_END)]
    around = _one_line(done.stdout[:start] + " " + done.stdout[end + len(_END) :] + " " + done.stderr, "")
    try:
        log = ElementTree.fromstring(document)
    except ElementTree.ParseError as error:
        return GpuReport(problem=f"nvidia-smi -q -x printed something that is not its XML: {error}")
    notes = (f"nvidia-smi ended with status {done.rc}: {around or 'no word why'}",) if done.rc or around else ()
    elements = list(log.iter("gpu"))
    capabilities = _capabilities(runner) if elements else {}
    found = [_gpu(element, index, capabilities, sys) for index, element in enumerate(elements)]
    return GpuReport(_told(log, "driver_version"), _told(log, "cuda_version"), SOURCE, in_pci_order(found), notes=notes)


def _capabilities(runner: Runner) -> dict[str, str]:
    """UUID -> compute capability; nothing where the driver is too old to be asked for it."""
    try:
        done = runner(_CAPABILITIES)
    except CommandError:
        return {}
    rows = [row.partition(",") for row in done.stdout.splitlines()] if not done.rc else []
    return {uuid.strip(): value.strip() for uuid, _comma, value in rows if value.strip()[:1].isdigit()}


def _gpu(element: ElementTree.Element, index: int, capabilities: dict[str, str], sys: str) -> Gpu:
    uuid = _told(element, "uuid") or ""
    address = pci_address(_text(element, "pci/pci_bus_id") or element.get("id"))
    node, cpus = sysfs.numa_of_pci(address, sys) if address else (None, "")
    gpu = Gpu(
        uuid=uuid,
        index=index,
        name=_text(element, "product_name"),
        compute_capability=capabilities.get(uuid),
        pci_address=address,
        numa_node=node,
        numa_cpus=cpus,
        memory_source=f"{SOURCE} -q -x, fb_memory_usage",
    )
    return _with_processes(_with_memory(gpu, element), element)


def _with_memory(gpu: Gpu, element: ElementTree.Element) -> Gpu:
    """Of the GPU as a whole, also where it is cut into MIG instances, which have an element of this name of their own."""
    total, used, free, reserved = (_bytes(_text(element, f"fb_memory_usage/{name}")) for name in ("total", "used", "free", "reserved"))
    if total is None:
        words = _text(element, "fb_memory_usage/total") or "not told"
        kind = UNIFIED if words.strip("[]").lower() in _NO_SUCH_NUMBER else gpu.memory_kind
        return replace(gpu, memory_kind=kind, memory_source=f"{gpu.memory_source}: {words}", notes=(*gpu.notes, f"memory: {words}"))
    return with_memory(gpu, total, used, free, reserved)


def _with_processes(gpu: Gpu, element: ElementTree.Element) -> Gpu:
    """None where the element says in words that they are not shown, and where it shows none to a user who may not see them (MIG)."""
    listed = element.find("processes")
    words = (listed.text or "").strip() if listed is not None else "not told"
    found = _processes(listed) if listed is not None else ()
    refused = _text(element, "fb_memory_usage/total")
    if not words and not found and "permission" in refused.lower():
        words = refused
    if words in ("", "None"):
        return replace(gpu, processes=found)
    return replace(gpu, processes=None, notes=(*gpu.notes, f"processes: {words}"))


def _processes(listed: ElementTree.Element) -> tuple[GpuProcess, ...]:
    rows = []
    for item in listed.iter("process_info"):
        pid = _text(item, "pid")
        if pid.isdigit():
            # The others are C, C+G, and M+C for a client of an MPS server.
            kind = GRAPHICS if _text(item, "type") == "G" else COMPUTE
            instance = (_text(item, "gpu_instance_id"), _text(item, "compute_instance_id"))
            rows.append((int(pid), instance, _bytes(_text(item, "used_memory")), kind))
    return gathered(rows)


def _bytes(text: str) -> int | None:
    """``81559 MiB`` in bytes; None for ``N/A``, ``[N/A]`` and words."""
    number, _blank, unit = text.partition(" ")
    return int(number) * _MIB if number.isdigit() and unit == "MiB" else None


def _told(element: ElementTree.Element, path: str) -> str | None:
    """A text; None for ``N/A``, ``Not Found`` and the like, which begin neither as a version nor as a UUID."""
    text = _text(element, path)
    return text if text[:1].isdigit() or text.startswith("GPU-") else None


def _text(element: ElementTree.Element, path: str) -> str:
    return (element.findtext(path) or "").strip()


def _one_line(text: str, nothing: str = "no output") -> str:
    """All of it, since the last line alone may be a version (``NVML library version: 550.54``); shortened."""
    return " ".join(text.split())[:300] or nothing
