# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Preflight: each check says yes, says no, and says that it could not look."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.accounts import Account
from ansible_collections.plumbline.sglang.plugins.module_utils.host.command import CommandError, Completed
from ansible_collections.plumbline.sglang.plugins.module_utils.host.gpus import Gpu, GpuReport
from ansible_collections.plumbline.sglang.plugins.module_utils.host.libraries import OsRelease
from ansible_collections.plumbline.sglang.plugins.module_utils.host.procfs import Listener
from ansible_collections.plumbline.sglang.plugins.module_utils.host.sysfs import NumaNode
from ansible_collections.plumbline.sglang.plugins.module_utils.preflight import preflight
from ansible_collections.plumbline.sglang.plugins.module_utils.preflight.types import CLEAN, INCONCLUSIVE, PROBLEM, UNCHECKED, Context, Reader
from ansible_collections.plumbline.sglang.plugins.module_utils.releases.interpreters import Interpreter

GIB = 1 << 30


def gpus(nodes: list[int | None]) -> GpuReport:
    """A driver that shows one H100 per element, at these NUMA nodes."""
    found = (Gpu(f"GPU-{index}", index, "NVIDIA H100 80GB HBM3", numa_node=node) for index, node in enumerate(nodes))
    return GpuReport("580.95.05", "13.0", "nvidia-smi", tuple(found))


class Host(Reader):
    """A healthy host with eight GPUs on two NUMA nodes. Tests change what they are about."""

    def __init__(self, **changes: Any) -> None:
        self.facts: dict[str, Any] = {
            "init": "systemd",
            "systemd": "systemd 252 (252.38-1~deb12u1)\n+PAM",
            "os": OsRelease("debian", "12", "Debian GNU/Linux 12 (bookworm)", "Debian"),
            "libraries": {"libibverbs.so.1", "librdmacm.so.1", "libnuma.so.1", "libcurl.so.4", "libgomp.so.1"},
            "interpreters": {"/usr/bin/python3.11": Interpreter("/usr/bin/python3.11", (3, 11, 2), "x86_64", True)},
            "nodes": {0: NumaNode(0, 512 * GIB, "0-31"), 1: NumaNode(1, 512 * GIB, "32-63")},
            "gpus": gpus([index // 4 for index in range(8)]),
            "listeners": {},
            "owners": {},
            "unit_pids": {},
            "addresses": {"10.0.0.1"},
            "noexec": False,
            "free": 900 * GIB,
            "entries": {"/srv/models/m": ["config.json", "model.safetensors"]},
            "closed": [],
            **changes,
        }

    def answer(self, name: str) -> Any:
        value = self.facts[name]
        if isinstance(value, Exception):
            raise value
        return value

    def command(self, argv):
        return Completed(0, self.answer("systemd"), "")

    def user_id(self):
        return self.facts.get("user_id", 0)

    def init(self):
        return self.answer("init")

    def os_release(self):
        return self.answer("os")

    def can_load(self, library):
        return library in self.answer("libraries")

    def interpreter(self, path):
        return self.answer("interpreters").get(path)

    def numa_nodes(self):
        return self.answer("nodes")

    def gpus(self):
        return self.answer("gpus")

    def listeners(self, port):
        return self.answer("listeners").get(port, [])

    def owners(self, inode):
        return self.answer("owners").get(inode, set())

    def unit_pids(self, unit):
        return self.answer("unit_pids").get(unit, set())

    def describe_process(self, pid):
        return f"python (pid {pid}, /user.slice)"

    def is_own_address(self, address):
        return address in self.answer("addresses")

    def may_execute(self, path):
        return not self.answer("noexec")

    def free_bytes(self, path):
        return self.answer("free")

    def entries(self, path):
        return self.answer("entries").get(path)

    def account(self, name):
        return Account(name, 990, 990, True)

    def unreadable(self, paths, user):
        closed = self.answer("closed")
        return None if closed is None else [path for path in paths if path in closed]


RELEASE = {
    "id": "sglang-1-abc",
    "kind": "engine",
    "package": "sglang",
    "version": "0.5.23",
    "path": "/nowhere/sglang-1-abc",
    "python": "/nowhere/sglang-1-abc/bin/python",
    "interpreter": "auto",
    "requirements": "torch==2.13.0\n",
    "wheelhouse": None,
    "import_check": ["sglang", "mooncake.engine"],
}
ENTRY = {
    "instance": "prefill-m-0",
    "unit": "sglang-prefill-m-0.service",
    "address": "10.0.0.1",
    "device": "cuda",
    "gpus": [0, 1, 2, 3],
    "numa_node": 0,
    "ports": [{"port": 30000, "address": "10.0.0.1", "purpose": "http", "owner": "flag --port"}],
}


def look(check: str, entry: dict[str, Any] | None = None, release: dict[str, Any] | None = None, model: dict[str, Any] | None = None, **changes: Any):
    host = {
        "address": "10.0.0.1",
        "releases": [{**RELEASE, **(release or {})}],
        "models": [{"name": "m", "path": "/srv/models/m", "copy_from": None, **(model or {})}],
    }
    return preflight.run(Context(host, [{**ENTRY, **(entry or {})}], read=Host(**changes)), [check])


def bucket_of(report: preflight.Report) -> str:
    assert len(report.findings) == 1, report.findings
    return report.findings[0]["bucket"]


@pytest.mark.parametrize("check", ["systemd", "address", "numa", "gpus", "ports", "executable", "interpreter", "libraries", "models"])
def test_a_healthy_host_is_clean(check: str) -> None:
    assert bucket_of(look(check)) == CLEAN


@pytest.mark.parametrize(
    ("check", "changes", "bucket", "words"),
    [
        ("systemd", {"init": "tini"}, PROBLEM, "PID 1 is tini"),
        ("systemd", {"systemd": "systemd 245 (245.4)"}, PROBLEM, "systemd 245"),
        ("systemd", {"systemd": CommandError("systemctl is not installed on this host")}, UNCHECKED, "systemctl is not installed"),
        ("address", {"addresses": {"192.168.0.7"}}, PROBLEM, "no interface of this host has 10.0.0.1"),
        ("address", {"addresses": OSError(-2, "Name or service not known")}, PROBLEM, "does not resolve"),
        ("numa", {"nodes": {1: NumaNode(1, GIB, "0-3")}}, PROBLEM, "no node 0; there are: 1"),
        ("numa", {"nodes": {0: NumaNode(0, 0, "0-3")}}, PROBLEM, "node 0 has no memory"),
        ("numa", {"nodes": {0: NumaNode(0, GIB, "")}}, PROBLEM, "node 0 has no processors"),
        ("numa", {"nodes": FileNotFoundError("/sys")}, UNCHECKED, "no NUMA nodes"),
        ("gpus", {"gpus": GpuReport(problem="no NVIDIA driver: nvidia-smi is not installed", next="install it")}, PROBLEM, "nvidia-smi is not installed"),
        ("gpus", {"gpus": gpus([0, 0, 1, 0])}, PROBLEM, "GPU 2 (NVIDIA H100 80GB HBM3): node 1"),
        ("gpus", {"gpus": gpus([None] * 4)}, INCONCLUSIVE, "node unknown"),
        ("executable", {"noexec": True}, INCONCLUSIVE, "noexec"),
        ("interpreter", {"interpreters": {}}, PROBLEM, "no interpreter"),
        ("libraries", {"libraries": set(), "os": OsRelease("alpine", "3", "Alpine Linux", "")}, PROBLEM, "Alpine Linux"),
        ("models", {"entries": {}}, PROBLEM, "there is no directory /srv/models/m"),
        ("models", {"entries": {"/srv/models/m": ["README.md"]}}, PROBLEM, "no config.json"),
        ("models", {"closed": ["/srv/models/m/model.safetensors"]}, PROBLEM, "sglang cannot read /srv/models/m/model.safetensors"),
        ("models", {"closed": None}, UNCHECKED, "this needs root"),
        ("models", {"entries": OSError(5, "Input/output error")}, UNCHECKED, "Input/output error"),
    ],
)
def test_each_check_says_no(check: str, changes: dict[str, Any], bucket: str, words: str) -> None:
    report = look(check, **changes)
    assert bucket_of(report) == bucket
    assert words in report.findings[0]["seen"]
    assert report.findings[0]["next"]


def test_absent_gpus_are_named_together() -> None:
    report = look("gpus", gpus=gpus([0]))
    assert "no GPU 1, 2, 3; there are: 0" in report.of(PROBLEM)[0]["seen"]


def test_nothing_is_asked_of_an_instance_without_gpu_and_node() -> None:
    entry = {"device": "cpu", "gpus": [], "numa_node": None}
    assert look("gpus", entry=entry, gpus=GpuReport(problem="x")).findings == []
    assert look("numa", entry=entry, nodes=OSError("x")).findings == []


SOCKET = {30000: [Listener("0.0.0.0", 30000, 77)]}


@pytest.mark.parametrize(
    ("changes", "bucket", "words"),
    [
        ({"listeners": SOCKET, "owners": {77: {5}}, "unit_pids": {ENTRY["unit"]: {4, 5}}}, CLEAN, "held by sglang-prefill-m-0.service itself"),
        ({"listeners": SOCKET, "owners": {77: {9}}, "unit_pids": {ENTRY["unit"]: {4, 5}}}, PROBLEM, "python (pid 9, /user.slice)"),
        ({"listeners": SOCKET, "owners": {77: {9}}}, PROBLEM, "0.0.0.0:30000"),
        ({"listeners": SOCKET}, PROBLEM, "not visible"),
        ({"listeners": {30000: [Listener("127.0.0.1", 30000, 77)]}, "owners": {77: {9}}}, CLEAN, "is free"),
        ({"listeners": PermissionError(13, "Permission denied")}, UNCHECKED, "cannot be read"),
    ],
)
def test_a_port_is_free_or_held_by_its_own_unit(changes: dict[str, Any], bucket: str, words: str) -> None:
    report = look("ports", **changes)
    assert bucket_of(report) == bucket
    assert words in report.findings[0]["seen"]


def test_missing_libraries_are_what_the_build_role_installs() -> None:
    report = look("libraries", libraries={"libnuma.so.1", "libcurl.so.4", "libgomp.so.1"})
    assert bucket_of(report) == INCONCLUSIVE
    assert report.packages == ["libibverbs1", "librdmacm1"]
    redhat = look("libraries", libraries=set(), os=OsRelease("rocky", "9.4", "Rocky Linux 9.4", "RedHat"))
    assert redhat.packages == ["libibverbs", "librdmacm", "numactl-libs", "libcurl", "libgomp"]


def test_a_router_needs_no_transfer_library() -> None:
    assert look("libraries", release={"kind": "router"}, libraries=set()).findings == []


def test_python_without_venv_is_what_the_build_role_installs() -> None:
    without = {"/usr/bin/python3.11": Interpreter("/usr/bin/python3.11", (3, 11, 2), "x86_64", False)}
    report = look("interpreter", interpreters=without)
    assert (bucket_of(report), report.packages) == (INCONCLUSIVE, ["python3.11-venv"])
    assert bucket_of(look("interpreter", interpreters=without, os=OsRelease("x", "", "X", ""))) == PROBLEM


def test_a_wheelhouse_without_the_wheels_is_a_problem(tmp_path: Path) -> None:
    report = look("interpreter", release={"wheelhouse": str(tmp_path)})
    assert bucket_of(report) == PROBLEM
    assert "torch==2.13.0" in report.findings[0]["seen"]


def test_a_model_that_will_be_copied_is_no_problem() -> None:
    assert bucket_of(look("models", model={"copy_from": "/models/m"}, entries={})) == INCONCLUSIVE


def test_little_room_for_an_engine_of_unknown_size_does_not_decide() -> None:
    assert bucket_of(look("space", free=GIB)) == INCONCLUSIVE
    assert look("space").findings == []


def test_imports_of_a_release_that_is_not_there_are_not_called_clean() -> None:
    assert bucket_of(look("imports")) == UNCHECKED


def test_a_check_that_breaks_is_a_finding() -> None:
    report = preflight.run(Context({"address": "x"}, []), ["bad"], {"bad": lambda context: [1 / 0]})
    assert bucket_of(report) == UNCHECKED
    assert "ZeroDivisionError" in report.findings[0]["seen"]


def test_a_user_that_is_not_root_is_a_problem() -> None:
    assert bucket_of(look("root")) == CLEAN
    report = look("root", user_id=1000)
    assert bucket_of(report) == PROBLEM
    assert "ansible_become" in report.findings[0]["next"]


def test_flags_of_a_release_that_is_not_installed_are_said_to_be_unchecked_there(tmp_path: Path) -> None:
    report = look("flags")
    assert bucket_of(report) == UNCHECKED
    assert "bundled catalogue of sglang 0.5.23" in report.findings[0]["seen"]
    (tmp_path / "release.json").write_text("{}")
    assert look("flags", release={"path": str(tmp_path)}).findings == []


def test_the_report_leads_with_counts_and_problems() -> None:
    context = Context({"address": "10.0.0.1", "releases": [], "models": []}, [ENTRY], read=Host(init="tini", noexec=True))
    rows = preflight.run(context, ["executable", "systemd", "ports"]).text("node1").splitlines()
    assert rows[0] == "preflight of node1. problems: 1, inconclusive: 1, could not be checked: 0, checked and clean: 1"
    assert rows[1] == "PROBLEM systemd"
    assert "INCONCLUSIVE executable" in rows


def test_all_checks_run_when_none_is_named() -> None:
    context = Context({"address": "10.0.0.1", "releases": [RELEASE], "models": []}, [ENTRY], read=Host())
    assert {finding["check"] for finding in preflight.run(context).findings} >= set(preflight.CHECKS) - {"space", "models"}
