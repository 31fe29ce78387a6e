# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Eight probes that people trust, as they write them, each for one server of a PD group: true where it says that all is well."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeAlias

import testinfra.host

Host: TypeAlias = testinfra.host.Host


@dataclass(frozen=True)
class Target:
    """The server that a fault is about, its host, and the router in front of it with its host."""

    host: Host
    entry: Mapping[str, Any]
    router_host: Host
    router: Mapping[str, Any]


def _get(host: Host, entry: Mapping[str, Any], path: str, options: str = "") -> str:
    """Ask with the instance's key, which curl reads from standard input: it stands in no command line and in no log of sudo."""
    key = entry["credentials"][0]["path"]
    config = f"""(printf 'header = "Authorization: Bearer '; tr -d '\\n' < {key}; echo '"')"""
    return host.run(f"{config} | curl -s -m 25 -K - {options} {entry['url']}{path}").stdout


def _is_200(host: Host, entry: Mapping[str, Any], path: str) -> bool:
    return _get(host, entry, path, "-o /dev/null -w %{http_code}") == "200"


def unit_active(target: Target) -> bool:
    return target.host.run(f"systemctl is-active --quiet {target.entry['unit']}").rc == 0


def port_open(target: Target) -> bool:
    return target.host.run(f"timeout 3 bash -c '< /dev/tcp/{target.entry['address']}/{target.entry['port']}'").rc == 0


def ready_line(target: Target) -> bool:
    return target.host.run(f"journalctl --no-pager -q -u {target.entry['unit']} | grep -q 'fired up and ready to roll'").rc == 0


def model_listed(target: Target) -> bool:
    return _is_200(target.host, target.entry, "/v1/models")


def worker_health(target: Target) -> bool:
    return _is_200(target.host, target.entry, "/health")


def router_health(target: Target) -> bool:
    return _is_200(target.router_host, target.router, "/health")


def router_readiness(target: Target) -> bool:
    return _is_200(target.router_host, target.router, "/readiness")


def router_lists_it(target: Target) -> bool:
    workers = json.loads(_get(target.router_host, target.router, "/workers") or "{}").get("workers", [])
    return any(worker["url"].rstrip("/") == target.entry["url"] and worker["is_healthy"] for worker in workers)


#: What people call it -> the probe.
PROBES: Mapping[str, Callable[[Target], bool]] = {
    "systemctl is-active": unit_active,
    "port is open": port_open,
    "grep 'fired up'": ready_line,
    "GET /v1/models": model_listed,
    "GET /health": worker_health,
    "router /health": router_health,
    "router /readiness": router_readiness,
    "router /workers": router_lists_it,
}


def ask_all(target: Target) -> dict[str, bool]:
    """What each probe says now; all at once, since some faults are over after a second."""
    with ThreadPoolExecutor(max_workers=len(PROBES)) as pool:
        answers = {name: pool.submit(probe, target) for name, probe in PROBES.items()}
        return {name: answer.result() for name, answer in answers.items()}


def table(results: Mapping[str, Mapping[str, bool]], ours: Mapping[str, str]) -> str:
    """Probe by fault: ``fooled`` where it says that all is well; the last row is our verdict."""
    faults = list(results)
    head = ["", *faults]
    rows = [[name, *("fooled" if results[fault][name] else "right" for fault in faults)] for name in PROBES]
    rows.append(["fooled of eight", *(str(sum(results[fault].values())) for fault in faults)])
    rows.append(["plumbline", *(ours[fault] for fault in faults)])
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in [head, *rows])
