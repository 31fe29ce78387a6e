# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where this lab lives and what its things are called: everything the environment can change."""

from __future__ import annotations

import hashlib
import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .errors import LabError

# An unlikely private subnet: container tools choose theirs from the start of 10.88/16 and 10.89/16.
DEFAULT_SUBNET = "10.89.77.0/24"
# The address of host labN ends in ADDRESS_BASE + N, so that a static inventory stays true.
ADDRESS_BASE = 10
MAX_HOSTS = 40

SOURCE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Settings:
    """One lab on this machine; a second one needs another home and another subnet."""

    home: Path
    subnet: ipaddress.IPv4Network
    nat: bool
    ca_bundle: Path | None
    shared: Path | None = None

    @property
    def cache(self) -> Path:
        """Where images, wheels and models lie: this home, or that of another lab whose caches are used as well."""
        return self.shared or self.home

    @property
    def ident(self) -> str:
        """A short name of this home, part of every name that is machine-wide."""
        return hashlib.sha256(str(self.home).encode()).hexdigest()[:6]

    @property
    def images(self) -> Path:
        """Root file systems as tar files."""
        return self.cache / "images"

    @property
    def storage(self) -> Path:
        """Podman's own storage: images unpacked from the tar files, and the hosts' writable layers."""
        return self.home / "storage"

    @property
    def wheelhouse(self) -> Path:
        """The engine's wheels, one directory per Python tag."""
        return self.cache / "wheelhouse"

    @property
    def models(self) -> Path:
        """Complete model directories."""
        return self.cache / "models"

    @property
    def ssh(self) -> Path:
        """Keys, known hosts and the client configuration."""
        return self.home / "ssh"

    @property
    def guest(self) -> Path:
        """Files that are mounted into the hosts."""
        return self.home / "guest"

    @property
    def run(self) -> Path:
        """State of the running lab; nothing in it is worth keeping after `down`."""
        return self.home / "run"

    @property
    def lock(self) -> Path:
        """Held by every command that changes the lab."""
        return self.home / "lab.lock"

    @property
    def network(self) -> str:
        """The podman network's name."""
        return f"plumbline-lab-{self.ident}"

    @property
    def bridge(self) -> str:
        """The bridge interface's name (15 characters at most)."""
        return f"plab-{self.ident}"

    @property
    def nft_table(self) -> str:
        """The nftables table that lets the hosts out."""
        return f"plumbline_lab_{self.ident}"

    @property
    def cgroup(self) -> str:
        """The parent cgroup of the hosts."""
        return f"/plumbline-lab-{self.ident}"

    @property
    def gateway(self) -> str:
        """The machine's own address in the lab's network."""
        return str(self.subnet.network_address + 1)

    def container(self, host: str) -> str:
        """Return the container's name of a host."""
        return f"plumbline-lab-{self.ident}-{host}"

    def mac(self, number: int) -> str:
        """Return the hardware address of host labN.

        It stays the same over restarts: with a new one, its peers' address caches keep it unreachable for 20 s.
        """
        return f"02:{self.ident[0:2]}:{self.ident[2:4]}:{self.ident[4:6]}:00:{number:02x}"

    def address(self, number: int) -> str:
        """Return the address of host labN."""
        return str(self.subnet.network_address + ADDRESS_BASE + number)


def from_environment(environ: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings; an unusable value is refused here, before anything is done."""
    home = environ.get("PLUMBLINE_LAB_HOME")
    if not home:
        cache = environ.get("XDG_CACHE_HOME") or os.path.join(environ.get("HOME") or "/root", ".cache")
        home = os.path.join(cache, "plumbline-lab")
    return Settings(
        home=Path(home).expanduser().resolve(),
        subnet=_subnet(environ.get("PLUMBLINE_LAB_SUBNET") or DEFAULT_SUBNET),
        nat=environ.get("PLUMBLINE_LAB_NAT", "1") != "0",
        ca_bundle=_ca_bundle(environ),
        shared=Path(environ["PLUMBLINE_LAB_CACHE"]).expanduser().resolve() if environ.get("PLUMBLINE_LAB_CACHE") else None,
    )


def _subnet(text: str) -> ipaddress.IPv4Network:
    try:
        subnet = ipaddress.IPv4Network(text)
    except ValueError as error:
        raise LabError(
            f"PLUMBLINE_LAB_SUBNET={text!r}: {error}",
            f"an IPv4 network like {DEFAULT_SUBNET}",
            "set it to a private network that this machine does not use, or unset it",
        ) from error
    if subnet.num_addresses < ADDRESS_BASE + MAX_HOSTS + 2 or not subnet.is_private:
        raise LabError(
            f"PLUMBLINE_LAB_SUBNET={text!r} is {'too small' if subnet.is_private else 'a public network'}",
            f"a private network with at least {ADDRESS_BASE + MAX_HOSTS + 2} addresses, like {DEFAULT_SUBNET}",
            "choose a private /24 that this machine does not use",
        )
    return subnet


def _ca_bundle(environ: Mapping[str, str]) -> Path | None:
    """Return the trust bundle that this machine's programs were told to use, if any."""
    for name in ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE"):
        value = environ.get(name)
        if value and Path(value).is_file():
            return Path(value).resolve()
    return None
