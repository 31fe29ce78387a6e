# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every port an instance opens, the derived and internal ones too: the base of the port rules and of the firewall's view.

Sources: server_args.py ``PortArgs.init_new`` (DP attention), srt/distributed/bootstrap.py (torch.distributed),
srt/disaggregation/common/conn.py (bootstrap). Ports that the kernel chooses (KV transfer) cannot be planned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .launch import integer, parallel

ANY_ADDRESS = "0.0.0.0"
LOOPBACK = "127.0.0.1"
# The first of the block is only the base, the others are sockets; all are checked free for 30 s at the start.
_DP_ATTENTION_DELTA = 233
_DP_ATTENTION_COUNT = 7
_MESH_PORT = 39527
# Below it the kernel hands out no port to outgoing connections (net.ipv4.ip_local_port_range, default).
EPHEMERAL = range(32768, 61000)

Port = dict[str, Any]


def _port(port: int, address: str, purpose: str, owner: str) -> Port:
    return {"port": port, "address": address, "purpose": purpose, "owner": owner}


def instance_ports(instance: Any) -> list[Port]:
    """The ports of one resolved instance, each ``{"port", "address", "purpose", "owner"}``; address 0.0.0.0 is all of them."""
    result = [_port(instance.port, instance.address, "http", "flag --port")]
    return result + (_router_ports(instance) if instance.role == "router" else _engine_ports(instance))


def _engine_ports(instance: Any) -> list[Port]:
    args: Mapping[str, Any] = instance.args
    result = []
    opens_bootstrap = instance.role == "prefill" or bool(args.get("enable-pd-role-switch"))
    if opens_bootstrap and instance.bootstrap_port is not None:
        result.append(_port(instance.bootstrap_port, instance.address, "bootstrap", "flag --disaggregation-bootstrap-port"))
    if instance.dist_port is not None:
        result.append(_port(instance.dist_port, ANY_ADDRESS, "distributed", "flag --nccl-port"))
    if parallel(args, instance.gpus).attn_dp > 1:
        base = instance.port + _DP_ATTENTION_DELTA
        if base > 65535:
            base = instance.port - _DP_ATTENTION_DELTA
        for number in range(base, base + _DP_ATTENTION_COUNT):
            result.append(_port(number, LOOPBACK, "dp-attention", f"flag --port {number - instance.port:+d}"))
    if args.get("grpc-port") is not None:
        result.append(_port(integer(args["grpc-port"], 0), instance.address, "grpc", "flag --grpc-port"))
    return result


def _router_ports(instance: Any) -> list[Port]:
    result = [_port(instance.metrics_port, instance.address, "metrics", "flag --prometheus-port")]
    if instance.args.get("enable-mesh"):
        result.append(_port(integer(instance.args.get("mesh-port"), _MESH_PORT), ANY_ADDRESS, "mesh", "flag --mesh-port"))
    return result
