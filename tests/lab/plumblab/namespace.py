# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The one private mount namespace that everything of the lab runs in.

Podman's mounts live and die in it, so the machine's own mounts are never touched and nothing is left when it ends.
Where the machine mounts cgroup v1 or a hybrid, which crun refuses, the namespace gets a pure cgroup v2 tree.
A small process (`sleep`) holds it open; all later commands enter it through that process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import process
from .console import say
from .errors import LabError
from .files import read_json
from .settings import Settings

# Places that podman, netavark and crun write to whatever they are told: network namespaces, address leases, states.
# In the namespace each is a tmpfs of its own, so that nothing is shared with other containers of the machine or left.
_PRIVATE = ("/run/netns", "/run/crun", "/run/containers", "/var/lib/containers")
# Which of them a lab had to make on this machine. All labs share the notes: the last one removes what the first one made.
_MADE = Path("/run/plumbline-lab-made")

# The holder writes down its own PID and start time before it does anything else: a `lab up` that is killed at any
# moment leaves either no holder or one that the next `lab up` can find.
_HOLD = r"""
set -eu
run=$1 kind=$2
shift 2
private=$*
set -- $(cat /proc/$$/stat)
printf '{"pid": %d, "start_time": %d}\n' $$ "${22}" > "$run/holder.json.partial"
mv "$run/holder.json.partial" "$run/holder.json"
if [ "$kind" = remount ]; then
    umount --no-mtab --recursive --lazy /sys/fs/cgroup
    mount --no-mtab -t cgroup2 none /sys/fs/cgroup
fi
if [ "$kind" != adopt ]; then
    for directory in $private; do
        mount --no-mtab -t tmpfs -o mode=0755 plumbline-lab "$directory"
    done
fi
printf ready > "$run/holder.ready.partial"
mv "$run/holder.ready.partial" "$run/holder.ready"
exec sleep infinity
"""


@dataclass(frozen=True)
class Holder:
    """The process that keeps the namespace open."""

    pid: int
    start_time: int

    def alive(self) -> bool:
        """Return whether this very process still runs."""
        return process.start_time(self.pid) == self.start_time


def current(settings: Settings) -> Holder | None:
    """Return the running holder whose namespace is ready to be entered."""
    holder = _recorded(settings)
    return holder if holder and holder.alive() and (settings.run / "holder.ready").exists() else None


def ensure(settings: Settings, adopt: int | None = None) -> Holder:
    """Return the holder, starting it where it does not run; `adopt` is a process whose namespace is to be kept open."""
    holder = current(settings)
    if holder:
        return holder
    end(settings)
    settings.run.mkdir(parents=True, exist_ok=True)
    _make_mount_points()
    if adopt:
        kind, enter = "adopt", ["nsenter", f"--mount=/proc/{adopt}/ns/mnt"]
    else:
        kind = "as-is" if is_pure_v2(Path("/proc/self/mountinfo").read_text()) else "remount"
        enter = ["unshare", "--mount", "--propagation", "private"]
        say(f"opening a private mount namespace ({'cgroup v2 as it is' if kind == 'as-is' else 'with a pure cgroup v2 tree'})")
    log = settings.run / "holder.log"
    with log.open("w") as stream:
        child = subprocess.Popen(
            [*enter, "sh", "-c", _HOLD, "plumbline-lab-holder", str(settings.run), kind, *_PRIVATE],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            cwd="/",
            start_new_session=True,
        )
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and child.poll() is None:
        holder = current(settings)
        if holder:
            return holder
        time.sleep(0.02)
    raise LabError(
        f"the mount namespace did not become ready: {log.read_text().strip() or 'no message'}",
        "unshare and mount to succeed, which takes root with CAP_SYS_ADMIN",
        "run as root outside any container, or in a privileged one",
    )


def end(settings: Settings) -> None:
    """End the holder; the kernel then drops the namespace and its mounts with the last process in it."""
    holder = _recorded(settings)
    if holder and holder.alive():
        os.kill(holder.pid, signal.SIGKILL)
        deadline = time.monotonic() + 5
        while holder.alive() and time.monotonic() < deadline:
            time.sleep(0.02)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(holder.pid, os.WNOHANG)
    for name in ("holder.json", "holder.ready", "holder.log"):
        with contextlib.suppress(FileNotFoundError):
            (settings.run / name).unlink()
    _remove_mount_points()


def inside(holder: Holder, command: Sequence[str], directory: str = "/") -> list[str]:
    """Return the command line that runs a command in the namespace."""
    # `cd` comes after the entry: a directory opened before would still be the one of the machine's own mounts.
    script = 'cd "$1" && shift && exec "$@"'
    return ["nsenter", f"--mount=/proc/{holder.pid}/ns/mnt", "sh", "-c", script, "sh", directory, *command]


def is_pure_v2(mountinfo: str) -> bool:
    """Tell from /proc/self/mountinfo whether /sys/fs/cgroup is a cgroup v2 mount with nothing mounted below."""
    kinds = {}
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        kinds[left.split()[4]] = right.split()[0]
    below = [path for path in kinds if path.startswith("/sys/fs/cgroup/")]
    return kinds.get("/sys/fs/cgroup") == "cgroup2" and not below


def _make_mount_points() -> None:
    """Make the directories that the machine lacks, noting each one first: only those are removed again."""
    for place in (Path(name) for name in _PRIVATE):
        if not place.exists():
            _MADE.mkdir(mode=0o755, exist_ok=True)
            _note(place).touch()
            place.mkdir(mode=0o755)


def _remove_mount_points() -> None:
    """Remove what a lab made, unless another one still uses it: that one's `down` does it then.

    Removing a directory takes away whatever is mounted on it in other mount namespaces, a second lab's too.
    """
    used = mount_points_of_all()
    for place in (Path(name) for name in _PRIVATE):
        if _note(place).exists() and str(place) not in used:
            # One that something else has used since is no longer the lab's to remove.
            with contextlib.suppress(OSError):
                place.rmdir()
            with contextlib.suppress(OSError):
                _note(place).unlink()
    with contextlib.suppress(OSError):
        _MADE.rmdir()


def _note(place: Path) -> Path:
    return _MADE / str(place).strip("/").replace("/", "-")


def mount_points_of_all(proc: Path = Path("/proc")) -> set[str]:
    """Return every mount point of every mount namespace that a process is in."""
    found: dict[str, set[str]] = {}
    for directory in proc.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            namespace = str((directory / "ns" / "mnt").readlink())
            if namespace not in found:
                found[namespace] = {line.split()[4] for line in (directory / "mountinfo").read_text().splitlines()}
    return set().union(*found.values())


def _recorded(settings: Settings) -> Holder | None:
    value = read_json(settings.run / "holder.json")
    if not value:
        return None
    try:
        return Holder(int(value["pid"]), int(value["start_time"]))
    except (KeyError, TypeError, ValueError):
        return None
