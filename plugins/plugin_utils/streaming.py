# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action plugins whose module works for minutes and says how far it is.

The module is started with Ansible's own async wrapper, so the work belongs to the host and outlives a lost
connection. Here it is only watched: one shell command per look reads the new lines of the progress file and
whether the job file has been rewritten, which is how the wrapper hands over a result.
"""

from __future__ import annotations

import contextlib
import secrets
import shlex
import time
from typing import Any, Callable, NamedTuple

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.plumbline.sglang.plugins.module_utils.progress import MARK, parse_line, parse_start_time, redact

display = Display()

_ASYNC_KEYS = ("ansible_job_id", "started", "finished", "results_file")
_SPLIT = "--lines--"


class Look(NamedTuple):
    """What one look at a running job saw."""

    job: str | None  # identity of the job file; None: not there
    started: int | None  # start time of the worker in clock ticks; None: no such process
    lines: list[str]  # raw new lines of the progress file


def look_command(job_file: str, progress_file: str, next_line: int) -> str:
    """Shell text of one look. Lines and not bytes are counted: a terminal on the way may add carriage returns."""
    progress = shlex.quote(progress_file)
    parts = [
        f"stat -c 'job %i %s' {shlex.quote(job_file)} 2>/dev/null || echo job",
        # The worker's own first line names it, see module_utils/progress.py.
        f"p=$(sed -n '1s/^[^ ]* {MARK}pid \\([0-9]*\\) .*/\\1/p' {progress} 2>/dev/null)",
        "cat /proc/${p:-none}/stat 2>/dev/null || echo gone",
        f"echo {_SPLIT}",
        f"tail -n +{next_line} {progress} 2>/dev/null || true",
    ]
    return "; ".join(parts)


def parse_look(stdout: str) -> Look | None:
    """The answer to ``look_command``; None where it is not one (a banner, a torn answer)."""
    head, found, tail = stdout.replace("\r\n", "\n").partition(_SPLIT + "\n")
    rows = [row for row in head.splitlines() if row.strip()]
    job = next((row for row in rows if row == "job" or row.startswith("job ")), None)
    if not found or job is None:
        return None
    return Look(job[4:] or None, parse_start_time(rows[-1]), [row for row in tail.split("\n") if row])


class Follower:
    """Turns looks into lines to show and the two questions that matter: is there a result, is the worker gone.

    :param patience: looks without the worker's process after which it counts as gone (its result may be on the way).
    :param clock: seconds; injected by tests.
    """

    #: Seconds within which a worker names itself. One that does not, and whose job file stays as it was, was killed before.
    NAMELESS_LIMIT = 120.0
    #: Looks without a name after which the result is asked for once.
    NAMELESS_LOOKS = 2

    def __init__(self, patience: int = 4, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = clock()
        self._nameless = 0
        self.next_line = 1
        self.pid: int | None = None
        self._born = 0
        self._job: str | None = None
        self._rewritten = False
        self._missing = 0
        self._patience = patience

    @property
    def may_be_over(self) -> bool:
        """The job file was rewritten, or the worker is not there: ask for the result.

        A module that refuses its options ends without a name, perhaps before the first look, so that the job file is not seen to change.
        """
        refused = self.pid is None and self._job is not None and self._nameless == self.NAMELESS_LOOKS
        return self._rewritten or self._missing > 0 or self._never_came or refused

    @property
    def gone(self) -> bool:
        return self._missing >= self._patience or self._never_came

    @property
    def _never_came(self) -> bool:
        # Looks are counted too: the time may have passed with the connection away.
        return self.pid is None and not self._rewritten and self._nameless >= self._patience and self._clock() - self._since >= self.NAMELESS_LIMIT

    def take(self, look: Look) -> list[str]:
        """Account for one look and give the lines to show."""
        shown = []
        for raw in look.lines:
            line = parse_line(raw)
            if line is None:
                continue
            if line.text.startswith(MARK + "pid "):
                numbers = line.text.split()[1:]
                self.pid, self._born = int(numbers[0]), int(numbers[1])
            elif not line.text.startswith(MARK):
                shown.append(redact(line.text))
        self.next_line += len(look.lines)
        if self._job is None:
            self._job = look.job
        self._rewritten = look.job != self._job
        if self.pid is not None:
            alive = look.started is not None and self._born in (0, look.started)
            self._missing = 0 if alive else self._missing + 1
        else:
            self._nameless += 1
        return shown


class StreamingAction(ActionBase):
    """Base class: a subclass names its module in ``MODULE`` and is done.

    ``TIME_LIMIT`` bounds the work on the host, ``LOST_LIMIT`` how long the host may be out of reach, both in seconds.
    """

    MODULE = ""
    TIME_LIMIT = 6 * 3600
    LOST_LIMIT = 15 * 60
    LOOK_EVERY = 3.0
    STATUS_EVERY = 60.0

    _supports_check_mode = True
    _supports_async = True
    _requires_connection = True

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        super().run(tmp, task_vars)
        self._vars = dict(task_vars or {})
        return self.run_module(dict(self._task.args))

    def run_module(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run the module with these options: plainly in check mode or under the task's own ``async``, else streamed."""
        if self._task.check_mode or self._task.async_val:
            return self._execute_module(module_name=self.MODULE, module_args=arguments, task_vars=self._vars, wrap_async=bool(self._task.async_val))
        job_directory = self._remote_expand_user(self.get_shell_option("async_dir", default="~/.ansible_async"))
        name = f"plumbline-{secrets.token_hex(8)}.progress"
        progress_file = arguments.get("progress_file") or self._connection._shell.join_path(job_directory, name)
        job = self._start(dict(arguments, progress_file=progress_file))
        if job.get("failed") or not job.get("ansible_job_id"):
            return job
        job_file = job.get("results_file") or self._connection._shell.join_path(job_directory, job["ansible_job_id"])
        result = self._follow(job["ansible_job_id"], job_file, progress_file, job_directory)
        self._remote(f"rm -f {shlex.quote(job_file)} {shlex.quote(progress_file)}")
        return {key: value for key, value in result.items() if key not in _ASYNC_KEYS}

    def say(self, text: str) -> None:
        """Show one line now, from whichever process runs this task."""
        if not self._task.no_log:
            display.display("{} | {}".format(self._vars.get("inventory_hostname", "host"), redact(text)))

    def _start(self, arguments: dict[str, Any]) -> dict[str, Any]:
        # The wrapper takes its time limit from the task, which the task executor must find unchanged afterwards.
        self._task.async_val = self.TIME_LIMIT
        try:
            return self._execute_module(module_name=self.MODULE, module_args=arguments, task_vars=self._vars, wrap_async=True)
        finally:
            self._task.async_val = 0

    def _follow(self, job_id: str, job_file: str, progress_file: str, job_directory: str) -> dict[str, Any]:
        follower, pause, began = Follower(), 0.3, time.monotonic()
        asked, shown, end = began, began, began + self.TIME_LIMIT + 120
        while True:
            time.sleep(pause)
            pause = min(self.LOOK_EVERY, pause * 2)
            answer = self._remote(look_command(job_file, progress_file, follower.next_line), job_file)
            look = parse_look(answer.get("stdout", ""))
            for text in follower.take(look) if look else ():
                self.say(text)
                shown = time.monotonic()
            overdue = time.monotonic() - asked > self.STATUS_EVERY
            if look is None or follower.may_be_over or overdue:
                asked = time.monotonic()
                result = self._status(job_id, job_directory, job_file)
                if result.get("finished") or (result.get("failed") and result.get("_ansible_parsed", True)):
                    return result
                if follower.gone or time.monotonic() > end:
                    return self._lost_worker(follower.pid)
            if time.monotonic() - shown > self.STATUS_EVERY:
                shown = time.monotonic()
                self.say(f"still at work, {shown - began:.0f} s, nothing new to show")

    def _status(self, job_id: str, job_directory: str, job_file: str) -> dict[str, Any]:
        return self._retried(
            job_file,
            lambda: self._execute_module(
                module_name="ansible.legacy.async_status",
                module_args={"jid": job_id, "mode": "status", "_async_dir": job_directory},
                task_vars=self._vars,
            ),
        )

    def _remote(self, command: str, job_file: str = "") -> dict[str, Any]:
        return self._retried(job_file, lambda: self._low_level_execute_command(command))

    def _retried(self, job_file: str, call: Any) -> dict[str, Any]:
        """Call again while the host is out of reach; the work goes on there meanwhile."""
        lost_at, pause = None, 2.0
        while True:
            try:
                answer = call()
            except (AnsibleConnectionFailure, EOFError, BrokenPipeError) as error:
                now = time.monotonic()
                if lost_at is None:
                    lost_at = now
                    self.say("connection lost{}; trying again ({})".format(", the work goes on there" if job_file else "", _first_line(error)))
                if now - lost_at > self.LOST_LIMIT:
                    there = f" The work on the host was not stopped; its result will be in {job_file} there." if job_file else ""
                    raise AnsibleConnectionFailure(
                        f"no connection for {now - lost_at:.0f} s.{there} Next: see to the connection and run the play again: it takes up what was done."
                    ) from error
                self._reset_connection()
                time.sleep(pause)
                pause = min(15.0, pause * 1.5)
                continue
            if lost_at is not None:
                self.say(f"connected again after {time.monotonic() - lost_at:.0f} s")
            return answer

    def _reset_connection(self) -> None:
        with contextlib.suppress(AttributeError, AnsibleError, OSError):
            self._connection.reset()

    def _lost_worker(self, pid: int | None) -> dict[str, Any]:
        seen = f"process {pid} is gone" if pid is not None else f"no process named itself within {Follower.NAMELESS_LIMIT:.0f} s"
        return {
            "failed": True,
            "msg": (
                f"{self.MODULE} ended on the host without a result ({seen}). Expected: a result, whatever it is. "
                "Seen when the host restarted, the kernel ran out of memory or someone stopped the process. "
                "Next: look at the host's kernel log (journalctl -k), then run the play again: it takes up what was done."
            ),
        }


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:160] if lines else type(error).__name__
