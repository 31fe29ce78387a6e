# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the lab reads of the machine it runs on."""

from __future__ import annotations

import ipaddress
import os
import subprocess
from pathlib import Path

from plumblab import files, guest, namespace, network, process

V2 = "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
HYBRID = """30 24 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu
32 30 0:28 / /sys/fs/cgroup/unified rw shared:3 - cgroup2 cgroup2 rw
"""


def test_a_pure_cgroup_v2_tree_is_recognised() -> None:
    assert namespace.is_pure_v2("22 1 0:20 / / rw - ext4 /dev/vda rw\n" + V2)
    assert not namespace.is_pure_v2(HYBRID)
    assert not namespace.is_pure_v2("22 1 0:20 / / rw - ext4 /dev/vda rw\n")
    # Something mounted over a v2 tree is what programs see.
    assert not namespace.is_pure_v2(V2 + HYBRID)


def test_a_taken_subnet_is_found() -> None:
    routes = [{"dst": "default", "dev": "eth0"}, {"dst": "10.89.0.0/16", "dev": "podman1"}, {"dst": "192.0.2.7", "dev": "eth0"}]
    assert network.overlapping(ipaddress.IPv4Network("10.89.77.0/24"), routes) == ["10.89.0.0/16 dev podman1"]
    assert network.overlapping(ipaddress.IPv4Network("10.90.77.0/24"), routes) == []


def test_hosts_get_the_callers_index_but_no_path_of_this_machine() -> None:
    environ = {"PIP_INDEX_URL": "https://index.example/simple", "PIP_EXTRA_INDEX_URL": "file:///srv/simple", "PIP_FIND_LINKS": "/srv/wheels"}
    text = guest.pip_configuration(environ, own_trust=True)
    assert "index-url = https://index.example/simple" in text
    assert "cert = /etc/ssl/certs/ca-certificates.crt" in text
    assert "/srv" not in text
    assert "cert" not in guest.pip_configuration({}, own_trust=False)


def test_a_process_is_known_by_pid_and_start_time() -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        begun = process.start_time(child.pid)
        assert begun is not None
        assert namespace.Holder(child.pid, begun).alive()
        assert not namespace.Holder(child.pid, begun + 1).alive()
    finally:
        child.kill()
    # A zombie, not yet waited for, is no live process.
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert process.start_time(child.pid) is None
    child.wait()


def test_a_file_is_written_whole_and_only_when_it_differs(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file"
    assert files.write_text(path, "one", 0o600)
    assert not files.write_text(path, "one", 0o600)
    assert files.write_text(path, "one", 0o644)
    assert files.write_text(path, "two")
    assert path.read_text() == "two"
    assert [item.name for item in path.parent.iterdir()] == ["file"]


def test_a_mirror_holds_the_same_files_in_the_same_directory(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "package").mkdir(parents=True)
    (source / "package" / "a.py").write_text("a")
    files.mirror_tree(source, target)
    inode = target.stat().st_ino
    (source / "package" / "a.py").unlink()
    (source / "b.py").write_text("b")
    files.mirror_tree(source, target)
    assert target.stat().st_ino == inode
    assert [str(path.relative_to(target)) for path in target.rglob("*")] == ["b.py"]


def test_a_mount_of_another_namespace_is_seen(tmp_path: Path) -> None:
    for pid, (kind, point) in {"10": ("mnt:[1]", "/run/netns"), "11": ("mnt:[2]", "/var/other"), "12": ("mnt:[2]", "/not/read/twice")}.items():
        (tmp_path / pid / "ns").mkdir(parents=True)
        (tmp_path / pid / "ns" / "mnt").symlink_to(kind)
        (tmp_path / pid / "mountinfo").write_text(f"1 2 0:3 / {point} rw - tmpfs x rw\n")
    (tmp_path / "13").mkdir()
    seen = namespace.mount_points_of_all(tmp_path)
    assert {"/run/netns"} <= seen and len(seen) == 2
