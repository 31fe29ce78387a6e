# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keys and client files for logging in. Made once per lab home, so that known_hosts stays true from `up` to `up`."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable
from pathlib import Path

from . import process
from .files import write_text
from .settings import MAX_HOSTS, Settings

USER = "ops"


def config_path(settings: Settings) -> Path:
    """Return the client configuration, for `ssh -F`."""
    return settings.ssh / "ssh_config"


def key_path(settings: Settings) -> Path:
    """Return the private key of the user ops."""
    return settings.ssh / "id_ed25519"


def host_directory(settings: Settings, name: str) -> Path:
    """Return the directory that a host sees as /etc/plumbline-lab."""
    return settings.guest / "hosts" / name


def ensure(settings: Settings, names: Iterable[str]) -> None:
    """Have the login key, a host key for each host, and the client files for all hosts that have one."""
    settings.ssh.mkdir(parents=True, exist_ok=True)
    settings.ssh.chmod(0o700)
    _keygen(key_path(settings), "ops@plumbline-lab")
    public = (settings.ssh / "id_ed25519.pub").read_text()
    for name in names:
        directory = host_directory(settings, name)
        directory.mkdir(parents=True, exist_ok=True)
        _keygen(directory / "ssh_host_ed25519_key", name)
        write_text(directory / "authorized_keys", public)
    _write_client_files(settings)


def answers(address: str, timeout: float = 1.0) -> bool:
    """Return whether an SSH server introduces itself there."""
    try:
        with socket.create_connection((address, 22), timeout=timeout) as connection:
            connection.settimeout(timeout)
            return connection.recv(8).startswith(b"SSH-")
    except OSError:
        return False


def login_works(settings: Settings, name: str, timeout: float) -> str:
    """Log in and become root through sudo; return '' once that works, else ssh's last words."""
    deadline = time.monotonic() + timeout
    while True:
        result = process.attempt([*command(settings), name, "sudo", "-n", "true"], timeout=30)
        if result.returncode == 0:
            return ""
        if time.monotonic() > deadline:
            return result.stderr.strip() or f"status {result.returncode}"
        time.sleep(0.2)


def command(settings: Settings) -> list[str]:
    """Return the start of an ssh command line."""
    return ["ssh", "-F", str(config_path(settings)), "-o", "BatchMode=yes"]


def _keygen(path: Path, comment: str) -> None:
    if path.exists() and path.with_name(path.name + ".pub").exists():
        return
    staged = path.with_name(f".{path.name}.partial")
    for left in (staged, staged.with_name(staged.name + ".pub")):
        left.unlink(missing_ok=True)
    process.capture(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(staged)])
    # The public half first: a private key that is there means that both are.
    staged.with_name(staged.name + ".pub").replace(path.with_name(path.name + ".pub"))
    staged.replace(path)


def _write_client_files(settings: Settings) -> None:
    known, blocks = [], []
    for number in range(1, MAX_HOSTS + 1):
        name, address = f"lab{number}", settings.address(number)
        public = host_directory(settings, name) / "ssh_host_ed25519_key.pub"
        if not public.exists():
            continue
        kind, value = public.read_text().split()[:2]
        known.append(f"{name},{address} {kind} {value}\n")
        blocks.append(f"Host {name}\n    HostName {address}\n")
    common = f"""Host lab* {".".join(settings.gateway.split(".")[:3])}.*
    User {USER}
    IdentityFile "{key_path(settings)}"
    IdentitiesOnly yes
    UserKnownHostsFile "{settings.ssh / "known_hosts"}"
    StrictHostKeyChecking yes
    ConnectTimeout 30
    LogLevel ERROR
"""
    write_text(settings.ssh / "known_hosts", "".join(known))
    write_text(config_path(settings), "# Made by `lab up`.\n" + "\n".join([*blocks, common]))
