# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of the plan about releases: is the lock exact, and does it hold what its instances need. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from .findings import Findings
from .instances import Host, Instance
from .locks import Lock, parse

_VARIABLES = {"engine": "sglang_engine_requirements", "router": "sglang_router_requirements"}
_VERSIONS = {"engine": "sglang_engine_version", "router": "sglang_router_version"}
# Transfer backend -> distribution that brings it (srt/disaggregation/{nixl,mooncake}); none is a dependency of sglang.
_LIBRARIES = {"nixl": "nixl", "mooncake": "mooncake", "mooncake_tcp": "mooncake"}
_DISTRIBUTIONS = {"nixl": "nixl", "mooncake": "mooncake-transfer-engine"}
# Lines of a lock that a finding quotes, at most.
_QUOTED = 3


def check(host: Host, kind: str, instances: Sequence[Instance], findings: Findings) -> Lock:
    """Report what is wrong with the host's lock of this kind and return it; an empty one where there is none."""
    variable, lock = _VARIABLES[kind], host.locks[kind]
    package, version = instances[0].package, instances[0].version
    where = [host.name]
    if lock is None:
        path = host.variables[variable]
        findings.error(
            "lock-missing",
            where,
            f"{variable} is not set" if path is None else f"{variable}: no file {path} on the controller",
            f"a lock file with {package}=={version} and every distribution it needs, one exact pin per line",
            f"set {variable} to a path relative to the inventory or the playbook; inventory/locks holds examples",
        )
        return parse("")
    if lock.refused:
        more = f" and {len(lock.refused) - _QUOTED} more" if len(lock.refused) > _QUOTED else ""
        findings.error(
            "lock-pin",
            where,
            f"{variable} holds {'; '.join(_quoted(line) for line in lock.refused[:_QUOTED])}{more}",
            "an exact pin name==version or a wheel on every line, and no options",
            "write the lock anew with a resolver (pip freeze, pip-compile, uv pip compile); index settings belong in pip.conf on the host",
        )
    if lock.repeated:
        findings.error(
            "lock-pin",
            where,
            f"{variable} pins {', '.join(sorted(set(lock.repeated)))} more than once",
            "one pin for each distribution",
            f"remove the extra lines from {host.variables[variable]}",
        )
    if not lock.refused:  # a refused line may be the very pin that is missed
        _contents(host, kind, lock, package, version, findings)
        if kind == "engine":
            _transfer_libraries(host, lock, instances, findings)
    return lock


def _quoted(line: str) -> str:
    """A refused line, without the credentials that an index URL may hold."""
    return repr(line.split("://")[0] + "://…" if "://" in line else line[:60])


def _contents(host: Host, kind: str, lock: Lock, package: str, version: str, findings: Findings) -> None:
    variable = _VARIABLES[kind]
    pinned = lock.pins.get(package)
    if pinned is None:
        findings.error(
            "lock-package",
            [host.name],
            f"{variable} does not pin {package}",
            f"{package}=={version} in {host.variables[variable]}",
            f"add the pin, or point {variable} at the lock of {package}",
        )
    elif pinned != version:
        findings.error(
            "lock-version",
            [host.name],
            f"{variable} pins {package}=={pinned}, and {_VERSIONS[kind]} is {version}",
            "one version",
            f"set {_VERSIONS[kind]} to {pinned!r}, or use the lock of {version}",
        )
    other = {"smg": "sglang-router", "sglang-router": "smg"}.get(package)
    if other in lock.pins:
        findings.error(
            "lock-router",
            [host.name],
            f"{variable} pins both smg and sglang-router",
            f"{package} alone: both install the command smg, and one of them runs under the other's name",
            f"remove {other} from {host.variables[variable]}",
        )


def _transfer_libraries(host: Host, lock: Lock, instances: Sequence[Instance], findings: Findings) -> None:
    for instance in instances:
        backend = str(instance.args.get("disaggregation-transfer-backend", "mooncake"))
        library = _LIBRARIES.get(backend)
        if library and library not in lock.transfer_libraries:
            findings.error(
                "transfer-library",
                [instance.where],
                f"the transfer backend is {backend}, and the lock of its host holds no {_DISTRIBUTIONS[library]}",
                f"{_DISTRIBUTIONS[library]} in the lock: it is no dependency of sglang",
                f"add its exact pin to {host.variables['sglang_engine_requirements']}",
            )
