# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of processes and control groups, and the names and states of what lives."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.host import procfs
from ansible_collections.plumbline.sglang.plugins.module_utils.host.local import LocalHost
from ansible_collections.plumbline.sglang.plugins.module_utils.host.watch import CgroupWatch, ExitWatch


@pytest.mark.parametrize("pidfd", [True, False])
def test_the_end_of_a_real_process_is_noticed(pidfd: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not pidfd:
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    with subprocess.Popen(["sleep", "60"]) as child:
        watched = ExitWatch(child.pid)
        assert not watched.ended
        child.kill()
        child.wait()
        assert watched.ended
        watched.close()


def test_a_process_that_was_never_there_has_ended() -> None:
    assert ExitWatch(2**22 + 1).ended


def test_waiting_ends_with_the_process_and_not_with_the_time() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        watched = ExitWatch(child.pid)
        assert not LocalHost().wait([watched], 0.01)
        child.kill()
        child.wait()
        assert watched.fileno() < 0 or LocalHost().wait([watched], 60)
        watched.close()


def test_a_control_group_is_empty_when_its_events_say_so(tmp_path: Path) -> None:
    group = tmp_path / "system.slice" / "x.service"
    group.mkdir(parents=True)
    events = group / "cgroup.events"
    events.write_text("populated 1\nfrozen 0\n")
    watched = CgroupWatch("/system.slice/x.service", str(tmp_path))
    assert watched.fileno() >= 0 and not watched.emptied
    events.write_text("populated 0\nfrozen 0\n")
    assert watched.emptied
    watched.close()


@pytest.mark.parametrize("group", ["", "/", "/system.slice/gone.service"])
def test_a_control_group_that_is_not_there_is_never_waited_on(group: str, tmp_path: Path) -> None:
    watched = CgroupWatch(group, str(tmp_path))
    assert watched.fileno() == -1 and not watched.emptied
    watched.close()


def test_a_stopped_process_is_told_from_one_that_waits() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        os.kill(child.pid, signal.SIGSTOP)
        os.waitpid(child.pid, os.WUNTRACED)
        (stopped,) = procfs.tasks([child.pid])
        os.kill(child.pid, signal.SIGCONT)
        os.waitpid(child.pid, os.WCONTINUED)
        (running,) = procfs.tasks([child.pid])
        child.kill()
    assert (stopped.pid, stopped.name, stopped.state) == (child.pid, "sleep", "T")
    assert running.state != "T"
    assert procfs.tasks([child.pid]) == []


def test_a_name_with_blanks_and_brackets_is_a_name(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_text("7 (sglang::s) R (x) T 1 7 7 0")
    assert procfs.tasks([7], str(tmp_path)) == [procfs.Task(7, "sglang::s) R (x", "T", 1)]
