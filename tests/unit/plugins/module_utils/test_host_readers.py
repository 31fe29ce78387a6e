# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading the machine: NUMA nodes, PCI devices, libraries, addresses, long commands."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.host import libraries, sysfs
from ansible_collections.plumbline.sglang.plugins.module_utils.long_command import bytes_written, run_long


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_numa_nodes(tmp_path: Path) -> None:
    base = tmp_path / "devices" / "system" / "node"
    write(base / "online", "0,2\n")
    for number, total in ((0, 1024), (2, 0)):
        write(base / f"node{number}" / "meminfo", f"Node {number} MemTotal:       {total} kB\nNode {number} MemFree:        1 kB\n")
        write(base / f"node{number}" / "cpulist", "0-3\n" if number == 0 else "\n")
    assert sysfs.numa_nodes(str(tmp_path)) == {0: sysfs.NumaNode(0, 1 << 20, "0-3"), 2: sysfs.NumaNode(2, 0, "")}
    with pytest.raises(OSError, match="online"):
        sysfs.numa_nodes(str(tmp_path / "nowhere"))


@pytest.mark.parametrize(("text", "numbers"), [("0-3,8", [0, 1, 2, 3, 8]), ("", []), ("5\n", [5])])
def test_kernel_lists(text: str, numbers: list[int]) -> None:
    assert sysfs.parse_ranges(text) == numbers


@pytest.mark.parametrize(("text", "node"), [("1\n", 1), ("-1\n", None), ("odd", None)])
def test_an_unknown_node_is_none_and_never_minus_one(tmp_path: Path, text: str, node: int | None) -> None:
    write(tmp_path / "bus" / "pci" / "devices" / "0000:17:00.0" / "numa_node", text)
    assert sysfs.pci_numa_node("00000000:17:00.0", str(tmp_path)) == node
    assert sysfs.pci_numa_node("00000000:18:00.0", str(tmp_path)) is None


def test_own_addresses() -> None:
    assert sysfs.is_own_address("127.0.0.1")
    # TEST-NET-1 (RFC 5737) belongs to nobody.
    assert not sysfs.is_own_address("192.0.2.1")


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ('ID=debian\nVERSION_ID="12"\n', "Debian"),
        ('ID=ubuntu\nID_LIKE=debian\nVERSION_ID="22.04"\n', "Debian"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.4"\n', "RedHat"),
        ('ID="rhel"\nID_LIKE="fedora"\n', "RedHat"),
        ("ID=arch\n", ""),
        ("", ""),
    ],
)
def test_the_family_of_a_distribution(text: str, family: str) -> None:
    assert libraries.parse_os_release(text).family == family


def test_libraries_are_really_loaded() -> None:
    assert libraries.can_load("libc.so.6")
    assert not libraries.can_load("libnowhere.so.9")
    assert libraries.missing(["libc.so.6", "libnowhere.so.9"]) == ["libnowhere.so.9"]


def test_every_transfer_library_has_a_package_in_both_families() -> None:
    for name in libraries.TRANSFER_LIBRARIES:
        assert libraries.package_of(name, libraries.DEBIAN)
        assert libraries.package_of(name, libraries.REDHAT)
    assert libraries.package_of("libnowhere.so.9", libraries.DEBIAN) is None


def test_a_long_command_is_heard_line_by_line_and_in_its_silence() -> None:
    script = "import sys, time; print('one'); sys.stdout.flush(); time.sleep(0.3); print('t\\rwo', file=sys.stderr); print('end', end=''); sys.exit(3)"
    heard: list[str] = []
    silences: list[int] = []
    rc, kept = run_long([sys.executable, "-c", script], heard.append, silences.append, every=0.02)
    assert (rc, kept) == (3, heard)
    assert sorted(heard) == ["end", "one", "t", "wo"]
    assert silences


def test_bytes_that_a_process_tree_wrote(tmp_path: Path) -> None:
    for pid, written, children in (("7", 100, "8 9 "), ("8", 20, ""), ("9", 3, "")):
        write(tmp_path / pid / "io", f"rchar: 1\nwchar: {written}\n")
        write(tmp_path / pid / "task" / pid / "children", children)
    assert bytes_written(7, str(tmp_path)) == 123
    assert bytes_written(99, str(tmp_path)) == 0
