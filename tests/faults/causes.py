# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes wrong with a server on a host: each fault is brought about for real, and taken back at the end of its block."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

import testinfra.host

Host: TypeAlias = testinfra.host.Host
Entry: TypeAlias = Mapping[str, Any]

PATIENCE = 240.0
ORPHAN = "plumbline-orphan.service"


def until(what: Callable[[], Any], name: str, patience: float = PATIENCE) -> Any:
    """Ask again and again until the answer is true; what it was."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        answer = what()
        if answer:
            return answer
        time.sleep(0.5)
    raise AssertionError(f"not within {patience:.0f} s: {name}")


def look(host: Host) -> dict[str, Any]:
    """What the program on the host says of its one instance, at this moment."""
    (item,) = json.loads(host.run("/opt/sglang/tools/plumbline.pyz look --json").stdout)
    return dict(item)


def is_ready(host: Host) -> bool:
    """Whether that is READY."""
    return bool(look(host)["verdict"] == "READY")


def show(host: Host, entry: Entry, name: str) -> str:
    """A property of the instance's unit."""
    return host.check_output(f"systemctl show -P {name} {entry['unit']}")


def pids_titled(host: Host, entry: Entry, title: str) -> list[int]:
    """The processes of the unit whose title begins so."""
    group = show(host, entry, "ControlGroup")
    titled = f"case $(tr '\\0' ' ' < /proc/$pid/cmdline) in {title}*) echo $pid;; esac"
    command = f"for pid in $(cat /sys/fs/cgroup{group}/cgroup.procs 2>/dev/null); do {titled}; done"
    return [int(pid) for pid in host.run(command).stdout.split()]


def scheduler(host: Host, entry: Entry) -> int:
    """The one scheduler of the instance."""
    (pid,) = until(lambda: pids_titled(host, entry, "sglang::scheduler"), "a scheduler")
    return pid


def start(host: Host, entry: Entry) -> None:
    """Start the unit, however often it has been started before."""
    host.check_output(f"systemctl reset-failed {entry['unit']} || true; systemctl start {entry['unit']}")


def listens(host: Host, entry: Entry) -> bool:
    """Whether anybody answers at the instance's port."""
    return host.run(f"curl -s -m 3 -o /dev/null {entry['url']}/health").rc == 0


@contextmanager
def stopped(host: Host, entry: Entry) -> Iterator[None]:
    """The unit is stopped by somebody."""
    host.check_output(f"systemctl stop {entry['unit']}")
    try:
        yield
    finally:
        start(host, entry)


@contextmanager
def scheduler_stopped(host: Host, entry: Entry) -> Iterator[int]:
    """The scheduler does nothing any more (SIGSTOP); its PID."""
    pid = scheduler(host, entry)
    host.check_output(f"kill -STOP {pid}")
    try:
        yield pid
    finally:
        host.run(f"kill -CONT {pid}")


@contextmanager
def orphan(host: Host, entry: Entry) -> Iterator[int]:
    """The same engine, of no unit that anybody asks about, on the instance's HTTP port, answering everything; its main PID.

    Its bootstrap and NCCL ports are others, so that the unit which is started beside it gets as far as it can.
    """
    host.check_output(f"systemctl stop {entry['unit']}")
    others = f"s/{entry['bootstrap_port']}/{int(entry['bootstrap_port']) + 500}/; s/--nccl-port [0-9]*/--nccl-port 30999/"
    made = f"sed -e '/^ExecStartPre/d; /^Restart/d; {others}' {entry['paths']['unit']} > /run/systemd/system/{ORPHAN}"
    host.check_output(f"{made}; systemctl daemon-reload; systemctl start {ORPHAN}")
    try:
        until(lambda: listens(host, entry), "the orphan answers")
        yield int(host.check_output(f"systemctl show -P MainPID {ORPHAN}"))
    finally:
        host.check_output(f"systemctl stop {ORPHAN}; rm -f /run/systemd/system/{ORPHAN}; systemctl daemon-reload; systemctl reset-failed || true")
        start(host, entry)


@contextmanager
def other_arguments(host: Host, entry: Entry, edit: str) -> Iterator[None]:
    """The unit's command line is another one: a drop-in with the ``sed`` program ``edit`` over the rendered unit."""
    directory = f"/run/systemd/system/{entry['unit']}.d"
    argv = f"sed -n '/^ExecStart=/,/[^\\\\]$/p' {entry['paths']['unit']} | sed -e '{edit}'"
    host.check_output(f"mkdir -p {directory}; (echo '[Service]'; echo 'ExecStart='; {argv}) > {directory}/fault.conf")
    host.check_output(f"systemctl daemon-reload; systemctl reset-failed {entry['unit']} || true; systemctl restart {entry['unit']}")
    try:
        yield
    finally:
        host.check_output(f"rm -r {directory}; systemctl daemon-reload; systemctl restart {entry['unit']}")


def forget_the_start(host: Host, entry: Entry) -> None:
    """The journal loses what it holds now, as it does in time."""
    host.check_output("journalctl --sync; journalctl --rotate; journalctl --vacuum-time=1ms; rm -f /var/log/journal/*/*@*.journal")
    until(lambda: ready_lines(host, entry) == 0, "the journal has forgotten the ready line", 30)


def ready_lines(host: Host, entry: Entry, invocation: str = "") -> int:
    """How often the unit has said that it is ready, in one invocation where that is given."""
    match = f"_SYSTEMD_INVOCATION_ID={invocation}" if invocation else f"-u {entry['unit']}"
    return host.run(f"journalctl --no-pager -q {match} -g 'fired up and ready to roll'").stdout.count("fired up")
