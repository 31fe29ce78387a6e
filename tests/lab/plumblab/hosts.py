# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The hosts themselves: one container each, with systemd as PID 1."""

from __future__ import annotations

import hashlib
import json
import resource
import time
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from . import guest, images, network, process, ssh
from .console import Heartbeat, say
from .errors import LabError
from .layout import Host
from .podman import Podman
from .settings import MAX_HOSTS, Settings

READY_SECONDS = 90
_SPEC_LABEL = "plumbline.lab.spec"
# A host with nothing stuck in it shuts down in under a second.
_STOP_SECONDS = "10"


@dataclass(frozen=True)
class Seen:
    """A host's container as podman reports it."""

    name: str
    state: str
    pid: int
    spec: str


def seen(settings: Settings, podman: Podman) -> dict[str, Seen]:
    """Return the lab's containers by host name."""
    prefix = settings.container("")
    result = {}
    for item in podman.listing("ps", "--all"):
        name = item["Names"][0]
        if name.startswith(prefix):
            labels = item.get("Labels") or {}
            host = name[len(prefix) :]
            result[host] = Seen(host, str(item["State"]), int(item.get("Pid") or 0), str(labels.get(_SPEC_LABEL, "")))
    return result


def run_arguments(settings: Settings, host: Host) -> list[str]:
    """Return the arguments of `podman run`, without the spec's label."""
    arguments = [
        *("--name", settings.container(host.name), "--hostname", host.name),
        *("--network", settings.network, "--ip", settings.address(host.number), "--mac-address", settings.mac(host.number)),
        *("--systemd=always", "--privileged", "--cgroupns=private", f"--cgroup-parent={settings.cgroup}"),
        *("--pids-limit=-1", "--shm-size=1g", *_ulimits()),
        f"--conmon-pidfile={conmon_pid_file(settings, host.name)}",
    ]
    # All names that a lab can have, so that hosts which come later are known to those that are up.
    for number in range(1, MAX_HOSTS + 1):
        arguments.append(f"--add-host=lab{number}:{settings.address(number)}")
    for here, there in guest.mounts(settings, host.name):
        arguments.append(f"--volume={here}:{there}:ro")
    return [*arguments, images.reference(host.suite, host.flavour), "/sbin/init"]


def spec(settings: Settings, host: Host) -> str:
    """Return a hash of everything that a host is made from."""
    return hashlib.sha256(json.dumps(run_arguments(settings, host)).encode()).hexdigest()[:12]


def ensure(settings: Settings, podman: Podman, wanted: Sequence[Host], recreate: bool) -> list[str]:
    """Have the wanted hosts running and no others; return the names of those that are new."""
    (settings.run / "conmon").mkdir(parents=True, exist_ok=True)
    there = seen(settings, podman)
    names = {host.name for host in wanted}
    for name in sorted(set(there) - names):
        say(f"removing {name}: not in this layout")
        remove(settings, podman, name)
    return [host.name for host in wanted if _start(settings, podman, host, there.get(host.name), recreate)]


def _start(settings: Settings, podman: Podman, host: Host, found: Seen | None, recreate: bool) -> bool:
    """Start one host where it does not run; return whether it was made anew."""
    current = spec(settings, host)
    if found and found.spec != current and not recreate:
        say(f"{host.name} was made from another recipe, and is kept; `lab up --recreate` replaces it")
    if found and found.state == "running" and not recreate:
        return False
    if found and found.state in ("exited", "configured", "stopped") and not recreate:
        say(f"starting {host.name} again (it was {found.state}), with its disk as it was")
        result = podman.attempt("start", settings.container(host.name))
        if result.returncode == 0:
            return False
        say(f"{host.name} did not start again, so it is made anew: {result.stderr.strip()}")
    if found:
        remove(settings, podman, host.name)
    images.ensure(settings, podman, (host.suite, host.flavour))
    say(f"starting {host.name} ({host.suite}, {host.flavour}) at {settings.address(host.number)}")
    podman.capture("run", "--detach", f"--label={_SPEC_LABEL}={current}", *run_arguments(settings, host))
    return True


def make_reachable(settings: Settings, podman: Podman, names: Sequence[str], new: Collection[str]) -> None:
    """Give the hosts their way out, and wait until each is up and lets its user in.

    Only a new host must have no failed unit: later ones are the tests' own doing.
    """
    found = seen(settings, podman)
    network.open_way_out(settings)
    for name in names:
        network.give_route(settings, found[name].pid)
    with Heartbeat(f"waiting for {', '.join(names)}"), ThreadPoolExecutor(max_workers=8) as pool:
        for problem in pool.map(lambda name: _wait(settings, podman, name, name in new), names):
            if problem:
                raise problem


def _wait(settings: Settings, podman: Podman, name: str, new: bool) -> LabError | None:
    """Wait for systemd and for a login; return what is wrong instead of raising, so that no host hides another."""
    deadline = time.monotonic() + READY_SECONDS
    container = settings.container(name)
    state = ""
    while time.monotonic() < deadline:
        state = podman.attempt("exec", container, "systemctl", "is-system-running").stdout.strip()
        if state in ("running", "degraded"):
            break
        time.sleep(0.3)
    if state != "running" and (new or state != "degraded"):
        units = podman.attempt("exec", container, "systemctl", "--failed", "--no-legend", "--plain").stdout.strip()
        return LabError(
            f"{name}: systemd says {state or 'nothing'!r} after {READY_SECONDS} s at most; failed units: {units or 'none'}",
            "'running'",
            f"`lab shell {name} -- journalctl -b`, then mend the image's recipe, or `lab up --recreate`",
        )
    words = ssh.login_works(settings, name, max(1.0, deadline - time.monotonic()))
    if words:
        return LabError(
            f"{name}: no login with `ssh -F {ssh.config_path(settings)} {name}`: {words}",
            "a shell and `sudo -n true` for the user ops",
            f"`lab shell {name} -- journalctl -b -u ssh`; `lab up --recreate` makes the hosts anew",
        )
    return None


def remove(settings: Settings, podman: Podman, name: str) -> None:
    """Stop and remove one host with its disk."""
    podman.capture("rm", "--force", "--volumes", "--time", _STOP_SECONDS, settings.container(name))
    conmon_pid_file(settings, name).unlink(missing_ok=True)


def conmon_pid_file(settings: Settings, name: str) -> Path:
    """Return the file that holds the PID of a host's container monitor."""
    return settings.run / "conmon" / f"{name}.pid"


def live_monitor(settings: Settings) -> int | None:
    """Return the PID of a container monitor of this lab that still runs: its mount namespace is the lab's."""
    for path in sorted((settings.run / "conmon").glob("*.pid")):
        try:
            pid = int(path.read_text())
        except (OSError, ValueError):
            continue
        words = process.command_line(pid)
        # The PID may belong to another program by now.
        if words and words[0].endswith("conmon") and settings.container(path.stem) in words:
            return pid
    return None


def _ulimits() -> list[str]:
    """Return limits that this process may hand on.

    Podman's defaults are above what a machine without CAP_SYS_RESOURCE can give, and then no container starts at all.
    """
    # 32768 is podman's own default for tasks and the most that its helpers hand on.
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    tasks = resource.getrlimit(resource.RLIMIT_NPROC)
    return [f"--ulimit=nofile={min(1024, files[0])}:{files[1]}", f"--ulimit=nproc={min(32768, tasks[0])}:{min(32768, tasks[1])}"]
