# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the hosts see of the machine: the wheelhouse, the CPU stand-ins, its trust in certificates. Nothing else."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from . import ssh
from .files import mirror_tree, write_text
from .settings import SOURCE, Settings

_STAND_INS = ("cpu_stand_ins", "cpu_stand_ins_nixl")
_TRUST = "/etc/ssl/certs/ca-certificates.crt"
# pip's own settings that mean the same on a host; paths of this machine do not.
_PIP_INDEX = {"PIP_INDEX_URL": "index-url", "PIP_EXTRA_INDEX_URL": "extra-index-url", "PIP_TRUSTED_HOST": "trusted-host"}

Mount = tuple[Path, str]


def ensure(settings: Settings) -> None:
    """Write what is mounted into every host. Copies, so that a host never depends on a checkout."""
    settings.wheelhouse.mkdir(parents=True, exist_ok=True)
    for name in _STAND_INS:
        mirror_tree(SOURCE / name, settings.guest / name)
    write_text(settings.guest / "pip.conf", pip_configuration(os.environ, settings.ca_bundle is not None))


def mounts(settings: Settings, host: str) -> list[Mount]:
    """Return (here, there) of every mount of a host; all of them read-only."""
    result: list[Mount] = [
        (settings.wheelhouse, "/srv/wheelhouse"),
        (ssh.host_directory(settings, host), "/etc/plumbline-lab"),
        (settings.guest / "pip.conf", "/etc/pip.conf"),
    ]
    result += [(settings.guest / name, f"/opt/lab/{name}") for name in _STAND_INS]
    if settings.ca_bundle:
        result.append((settings.ca_bundle, _TRUST))
    return result


def pip_configuration(environ: Mapping[str, str], own_trust: bool) -> str:
    """Return the hosts' pip.conf: the caller's indexes, and the machine's trust bundle where it names one."""
    lines = ["# Made by `lab up` from the caller's own pip settings.", "[global]", "disable-pip-version-check = true"]
    if own_trust:
        lines.append(f"cert = {_TRUST}")
    for name, option in _PIP_INDEX.items():
        value = environ.get(name, "")
        if value and "file:" not in value and not value.startswith("/"):
            lines.append(f"{option} = {value}")
    return "\n".join(lines) + "\n"
