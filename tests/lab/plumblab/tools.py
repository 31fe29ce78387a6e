# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The programs that the lab calls: found, installed with apt-get, or named with the way to install them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from .console import say
from .errors import LabError

# Program (or file) → Debian package.
PROGRAMS: dict[str, str] = {
    "mmdebstrap": "mmdebstrap",
    "podman": "podman",
    "crun": "crun",
    "conmon": "conmon",
    "ip": "iproute2",
    "nft": "nftables",
    # Netavark 1.4 (Debian 12) will not start without it, although it sets no rule for an internal network.
    "iptables": "iptables",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "unshare": "util-linux",
}
# Podman finds netavark in any of these; it is on nobody's PATH.
_NETAVARK = ("/usr/lib/podman/netavark", "/usr/libexec/podman/netavark", "/usr/local/libexec/podman/netavark", "/usr/bin/netavark")
_SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


def missing() -> list[str]:
    """Return the packages whose programs are not there."""
    path = os.environ.get("PATH", "") + ":" + _SYSTEM_PATH
    packages = {package for program, package in PROGRAMS.items() if not shutil.which(program, path=path)}
    if not any(Path(place).exists() for place in _NETAVARK):
        packages.add("netavark")
    return sorted(packages)


def ensure() -> None:
    """Have every program, installing what is missing where that is possible."""
    if os.geteuid() != 0:
        raise LabError(
            f"running as user id {os.geteuid()}",
            "root: the hosts need their own mounts, network and system manager",
            "run the same command with sudo (the lab's files then belong to root's cache directory)",
        )
    packages = missing()
    if packages:
        install(packages)
    still = missing()
    if still:
        raise LabError(f"missing after the installation: {', '.join(still)}", "the programs in PATH", "install them by hand, then run `lab up` again")


def install(packages: list[str]) -> None:
    """Install Debian packages, showing what is done; elsewhere say what is needed."""
    if not shutil.which("apt-get") or os.geteuid() != 0:
        raise LabError(
            f"missing: {', '.join(packages)} (Debian's names)",
            "these programs, or root on a Debian-like machine where the lab installs them",
            "install them with the system's package manager, then run the same command again",
        )
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["apt-get", "-q", "update"],
        ["apt-get", "-q", "-o", "Dpkg::Use-Pty=0", "install", "--yes", "--no-install-recommends", *packages],
    ):
        say("+ " + " ".join(command))
        # apt-get shows its own progress; standard output is kept for results.
        status = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=2, check=False).returncode
        if status != 0:
            raise LabError(f"`{' '.join(command)}` ended with status {status}", "status 0", "mend what apt-get says above, then run it again")
