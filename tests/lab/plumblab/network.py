# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The hosts' network: an internal podman network, and one nftables table of the lab's own that lets them out.

"Internal" keeps podman's network code away from the machine's firewall, so that there is exactly one thing to remove.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
from pathlib import Path
from typing import Any

from . import process
from .console import say
from .errors import LabError
from .files import read_json, write_json
from .podman import Podman
from .settings import Settings

_IP_FORWARD = Path("/proc/sys/net/ipv4/ip_forward")


def ensure(settings: Settings, podman: Podman) -> None:
    """Have the podman network, with the lab's own bridge name."""
    if podman.attempt("network", "exists", settings.network).returncode == 0 and _bridge_of(settings) == settings.bridge:
        return
    _refuse_taken_subnet(settings)
    podman.attempt("network", "rm", "--force", settings.network)
    podman.capture(
        *("network", "create", "--internal", "--disable-dns", f"--subnet={settings.subnet}", f"--gateway={settings.gateway}"),
        *(f"--opt=mtu={_mtu()}", settings.network),
    )
    # Podman 4.3 cannot be told the bridge's name; a name of our own is what a later `down` can be sure of.
    path = _definition(settings)
    definition = read_json(path)
    if not definition or "network_interface" not in definition:
        raise LabError(
            f"{path} holds no definition with `network_interface`",
            "podman 4 or newer with netavark",
            "run `podman info` and look at networkBackend; install netavark",
        )
    write_json(path, {**definition, "network_interface": settings.bridge})


def remember_forwarding(settings: Settings) -> None:
    """Note the machine's own setting before the first host starts: netavark switches forwarding on by itself."""
    value = _IP_FORWARD.read_text().strip()
    if value != "1":
        write_json(_remembered(settings), {"boot_id": process.boot_id(), "ip_forward": value})
        say("net.ipv4.ip_forward will be on while the lab is up (`lab down` puts it back)")


def open_way_out(settings: Settings) -> None:
    """Let the hosts reach what the machine reaches."""
    if not settings.nat:
        return
    _IP_FORWARD.write_text("1")
    # An internal network's bridge does not forward.
    Path(f"/proc/sys/net/ipv4/conf/{settings.bridge}/forwarding").write_text("1")
    # "add" then "delete" makes the replacement work whether the table is there or not.
    rules = f"""add table ip {settings.nft_table}
delete table ip {settings.nft_table}
table ip {settings.nft_table} {{
    chain postrouting {{
        type nat hook postrouting priority srcnat; policy accept;
        ip saddr {settings.subnet} ip daddr != {settings.subnet} masquerade
    }}
}}
"""
    process.capture(["nft", "-f", "-"], stdin=rules)


def is_open(settings: Settings) -> bool:
    """Return whether the hosts' way out is as it should be."""
    if not settings.nat:
        return True
    table = process.attempt(["nft", "list", "table", "ip", settings.nft_table])
    return table.returncode == 0 and _IP_FORWARD.read_text().strip() == "1"


def give_route(settings: Settings, init_pid: int) -> None:
    """Give a host its default route, which an internal network does not."""
    if settings.nat:
        process.capture(["nsenter", f"--net=/proc/{init_pid}/ns/net", "ip", "route", "replace", "default", "via", settings.gateway])


def remove(settings: Settings) -> None:
    """Remove the table and the bridge, and put the machine's setting back."""
    with contextlib.suppress(FileNotFoundError):
        process.attempt(["nft", "delete", "table", "ip", settings.nft_table])
    if Path(f"/sys/class/net/{settings.bridge}").exists():
        process.capture(["ip", "link", "delete", settings.bridge])
    before = read_json(_remembered(settings))
    if before and before.get("boot_id") == process.boot_id() and not _other_labs():
        _IP_FORWARD.write_text(str(before["ip_forward"]))
    _remembered(settings).unlink(missing_ok=True)


def overlapping(subnet: ipaddress.IPv4Network, routes: list[dict[str, Any]]) -> list[str]:
    """Return the machine's routes that overlap a subnet, from `ip -json route`. The default route does not count."""
    found = []
    for route in routes:
        destination = str(route.get("dst", "default"))
        if destination == "default":
            continue
        with contextlib.suppress(ValueError):
            if ipaddress.IPv4Network(destination, strict=False).overlaps(subnet):
                found.append(f"{destination} dev {route.get('dev', '?')}")
    return found


def _refuse_taken_subnet(settings: Settings) -> None:
    routes = json.loads(process.capture(["ip", "-json", "-4", "route", "show", "table", "main"]) or "[]")
    taken = overlapping(settings.subnet, [route for route in routes if route.get("dev") != settings.bridge])
    if taken:
        raise LabError(
            f"the subnet {settings.subnet} overlaps a route of this machine: {'; '.join(taken)}",
            "a subnet that this machine does not use",
            "set PLUMBLINE_LAB_SUBNET to another private /24 (or take the other lab down, if the route is a lab's)",
        )


def _remembered(settings: Settings) -> Path:
    return settings.run / "machine.json"


def _definition(settings: Settings) -> Path:
    return settings.run / "networks" / f"{settings.network}.json"


def _bridge_of(settings: Settings) -> str:
    return str((read_json(_definition(settings)) or {}).get("network_interface", ""))


def _mtu() -> int:
    """Return the MTU of the machine's way out, so that a host's packets fit through it."""
    routes = json.loads(process.capture(["ip", "-json", "-4", "route", "show", "default"]) or "[]")
    for route in routes:
        with contextlib.suppress(OSError, ValueError):
            return int(Path(f"/sys/class/net/{route['dev']}/mtu").read_text())
    return 1500


def _other_labs() -> bool:
    """Return whether another lab's table is there; it needs the forwarding that this one switched on."""
    return "plumbline_lab_" in process.attempt(["nft", "list", "tables"]).stdout
