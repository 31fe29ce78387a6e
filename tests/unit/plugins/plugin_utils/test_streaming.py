# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Long work is watched: lines as they come, the result when it is there, a lost connection waited for."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure

from ansible_collections.plumbline.sglang.plugins.module_utils.progress import Progress
from ansible_collections.plumbline.sglang.plugins.plugin_utils import streaming
from ansible_collections.plumbline.sglang.plugins.plugin_utils.streaming import Follower, Look, StreamingAction

ALIVE = Look("1 50", 4711, ["100.0 @pid 7 4711", "100.1 building"])


def look(job: Path, progress: Path, next_line: int) -> Look | None:
    command = streaming.look_command(str(job), str(progress), next_line)
    return streaming.parse_look(subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=True).stdout)


def test_a_look_at_real_files(tmp_path: Path) -> None:
    job, progress = tmp_path / "j 1", tmp_path / "it's"
    assert look(job, progress, 1) == Look(None, None, [])
    job.write_text("{}")
    one = Progress(str(progress))
    one.line("first")
    seen = look(job, progress, 1)
    assert seen is not None and seen.job is not None and seen.started is not None
    follower = Follower()
    assert follower.take(seen) == ["first"]
    assert (follower.pid, follower.may_be_over) == (os.getpid(), False)
    one.line("second")
    again = look(job, progress, follower.next_line)
    assert again is not None and follower.take(again) == ["second"]


def test_a_rewritten_job_file_is_seen(tmp_path: Path) -> None:
    job, progress = tmp_path / "j", tmp_path / "p"
    job.write_text("started")
    follower = Follower()
    follower.take(look(job, progress, 1) or ALIVE)
    (tmp_path / "new").write_text("the result")
    os.replace(tmp_path / "new", job)
    follower.take(look(job, progress, 1) or ALIVE)
    assert follower.may_be_over and not follower.gone


def test_a_module_that_ended_before_the_first_look_is_asked_for() -> None:
    """One that refuses its options takes less time than the way to the first look, and names no process."""
    follower = Follower()
    ended = Look("9 300", None, [])
    follower.take(ended)
    assert not follower.may_be_over
    follower.take(ended)
    assert follower.may_be_over and not follower.gone
    follower.take(ended)
    assert not follower.may_be_over, "asked once"
    nowhere = Follower()
    nowhere.take(Look(None, None, []))
    nowhere.take(Look(None, None, []))
    assert not nowhere.may_be_over, "there is no job file yet, and its absence would pass for a result"


def test_what_is_no_answer() -> None:
    assert streaming.parse_look("Welcome to this host\n") is None
    assert streaming.parse_look("") is None
    assert streaming.parse_look("job 1 2\r\ngone\r\n--lines--\r\n5.0 x\r\n") == Look("1 2", None, ["5.0 x"])


def test_lines_are_shown_once_and_without_marks_and_secrets() -> None:
    follower = Follower()
    assert follower.take(ALIVE) == ["building"]
    assert follower.next_line == 3
    assert follower.take(Look("1 50", 4711, ["101.0 from https://u:p@index.example/x", "torn"])) == ["from https://<hidden>@index.example/x"]


@pytest.mark.parametrize("started", [None, 9999])
def test_a_worker_that_is_gone_or_another_process_with_its_number(started: int | None) -> None:
    follower = Follower(patience=2)
    follower.take(ALIVE)
    follower.take(Look("1 50", started, []))
    assert (follower.may_be_over, follower.gone) == (True, False)
    follower.take(Look("1 50", started, []))
    assert follower.gone


class Action(StreamingAction):
    """The base class with a host made of two functions."""

    MODULE = "plumbline.sglang.release"

    def __init__(self, module: Any, shell: Any = None, no_log: bool = False, check_mode: bool = False) -> None:
        self._task = SimpleNamespace(no_log=no_log, check_mode=check_mode, async_val=0)
        self._connection = SimpleNamespace(reset=lambda: self.resets.append(1), _shell=SimpleNamespace(join_path=os.path.join))
        self._vars = {"inventory_hostname": "node1"}
        self._module, self._shell = module, shell
        self.resets: list[int] = []

    def _execute_module(self, **options: Any) -> dict[str, Any]:
        return self._module(self._task.async_val, **options)

    def _low_level_execute_command(self, command: str, **options: Any) -> dict[str, Any]:
        return self._shell(command)

    def _remote_expand_user(self, path: str) -> str:
        return "/root/.ansible_async"

    def get_shell_option(self, option: str, default: Any = None) -> Any:
        return default


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(streaming.display, "display", lines.append)
    monkeypatch.setattr(streaming.time, "sleep", lambda seconds: None)
    return lines


def answers(*texts: str):
    """A shell that gives these looks in turn, and anything for the commands that follow."""
    queue = [{"rc": 0, "stdout": text} for text in texts]
    commands: list[str] = []

    def shell(command: str) -> dict[str, Any]:
        commands.append(command)
        return queue.pop(0) if queue and command.startswith("stat ") else {"rc": 0, "stdout": ""}

    return shell, commands


STARTED = {"ansible_job_id": "j1", "started": True, "finished": False, "results_file": "/root/.ansible_async/j1"}


def test_the_module_runs_asynchronously_and_its_result_is_given(said: list[str]) -> None:
    calls = []

    def module(async_limit: int, **options: Any) -> dict[str, Any]:
        calls.append((async_limit, options["module_name"], options.get("wrap_async", False)))
        if options.get("wrap_async"):
            assert options["module_args"]["progress_file"].startswith("/root/.ansible_async/plumbline-")
            return STARTED
        return {"ansible_job_id": "j1", "finished": True, "started": True, "changed": True, "state": "built"}

    shell, commands = answers(
        "job 1 50\n7 (python) S " + " ".join(["0"] * 18) + " 4711\n--lines--\n100.0 @pid 7 4711\n100.1 building\n",
        "job 2 900\ngone\n--lines--\n103.1 done\n",
    )
    action = Action(module, shell)
    assert action.run_module({"x": 1}) == {"changed": True, "state": "built"}
    assert said == ["node1 | building", "node1 | done"]
    assert calls == [(StreamingAction.TIME_LIMIT, action.MODULE, True), (0, "ansible.legacy.async_status", False)]
    assert action._task.async_val == 0
    assert commands[-1].startswith("rm -f /root/.ansible_async/j1 /root/.ansible_async/plumbline-")


def test_check_mode_runs_the_module_plainly(said: list[str]) -> None:
    seen = []
    action = Action(lambda limit, **options: seen.append(options) or {"changed": True}, check_mode=True)
    assert action.run_module({"x": 1}) == {"changed": True}
    assert [(options["module_args"], options["wrap_async"]) for options in seen] == [({"x": 1}, False)]


def test_a_module_that_could_not_be_started_is_a_failure(said: list[str]) -> None:
    assert Action(lambda limit, **options: {"failed": True, "msg": "no python"}).run_module({}) == {"failed": True, "msg": "no python"}


def test_a_worker_that_was_killed_is_told(said: list[str]) -> None:
    status = {"ansible_job_id": "j1", "finished": False, "started": True}
    shell, _commands = answers(*["job 1 50\ngone\n--lines--\n" + ("100.0 @pid 7 4711\n" if not turn else "") for turn in range(9)])
    result = Action(lambda limit, **options: STARTED if options.get("wrap_async") else status, shell).run_module({})
    assert result["failed"]
    assert "process 7 is gone" in result["msg"] and "journalctl -k" in result["msg"]


def test_a_lost_connection_is_waited_for(said: list[str]) -> None:
    failures = [AnsibleConnectionFailure("ssh: connect to host 10.0.0.1 port 22: Connection refused\nmore")] * 3
    action = Action(None)

    def call() -> dict[str, Any]:
        if failures:
            raise failures.pop()
        return {"rc": 0}

    assert action._retried("/j", call) == {"rc": 0}
    assert len(action.resets) == 3
    assert said[0] == ("node1 | connection lost, the work goes on there; trying again (ssh: connect to host 10.0.0.1 port 22: Connection refused)")
    assert said[1].startswith("node1 | connected again after")


def test_a_connection_that_stays_lost_says_where_the_result_will_be(said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 100_000, 100))
    monkeypatch.setattr(streaming.time, "monotonic", lambda: next(clock))

    def call() -> dict[str, Any]:
        raise AnsibleConnectionFailure("timed out")

    with pytest.raises(AnsibleConnectionFailure, match="its result will be in /root/j1"):
        Action(None)._retried("/root/j1", call)


def test_nothing_is_shown_of_a_task_with_no_log(said: list[str]) -> None:
    Action(None, no_log=True).say("x")
    assert said == []


def test_a_worker_that_never_named_itself_is_lost_after_a_while() -> None:
    now = [0.0]
    follower = Follower(patience=2, clock=lambda: now[0])
    follower.take(Look("1 50", None, []))
    now[0] = follower.NAMELESS_LIMIT
    assert not follower.may_be_over  # one look says little: the connection may have been away
    follower.take(Look("1 50", None, []))
    assert (follower.may_be_over, follower.gone) == (True, True)
    follower.take(ALIVE)
    assert (follower.may_be_over, follower.gone) == (False, False)


def test_a_job_file_that_was_rewritten_is_no_lost_worker() -> None:
    now = [0.0]
    follower = Follower(patience=1, clock=lambda: now[0])
    follower.take(Look("1 50", None, []))
    now[0] = follower.NAMELESS_LIMIT
    follower.take(Look("2 900", None, []))
    assert (follower.may_be_over, follower.gone) == (True, False)


def test_a_worker_killed_before_its_first_line_is_told(said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Follower, "NAMELESS_LIMIT", 0.0)
    status = {"ansible_job_id": "j1", "finished": False, "started": True}
    shell, _commands = answers(*["job 1 50\ngone\n--lines--\n"] * 9)
    result = Action(lambda limit, **options: STARTED if options.get("wrap_async") else status, shell).run_module({})
    assert result["failed"] and "no process named itself" in result["msg"]


def test_silence_is_told_as_work(said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Action, "STATUS_EVERY", -1.0)
    states = [{"finished": False, "started": True}, {"finished": True, "started": True, "changed": False}]
    alive = "job 1 50\n7 (python) S " + " ".join(["0"] * 18) + " 4711\n--lines--\n"
    shell, _commands = answers(alive + "100.0 @pid 7 4711\n", alive)
    Action(lambda limit, **options: STARTED if options.get("wrap_async") else states.pop(0), shell).run_module({})
    assert said == ["node1 | still at work, 0 s, nothing new to show"]
