# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether what preflight was given are parts of a plan. A check that trips over its own input would look like a sick host. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

#: What the checks read of each element without asking whether it is there.
_RELEASE = ("id", "kind", "path", "python", "requirements")
_MODEL = ("path",)
_INSTANCE = ("instance", "unit", "address")
_PORT = ("port", "address")


def wrong(host: Mapping[str, Any], instances: Iterable[Any], checks: Iterable[str]) -> list[str]:
    """What cannot be checked as it was given, one line each; empty where all of it can.

    :param checks: names of the checks that will run; a part of a host is enough for a part of them.
    """
    lines = []
    if "address" in checks and not isinstance(host.get("address"), str):
        lines.append(f"host.address is {_shown(host.get('address'))}, expected the address of this host")
    if not isinstance(host.get("numa") or {}, Mapping):
        lines.append(f"host.numa is {_shown(host['numa'])}, expected NUMA node to GPU indices")
    lines += _elements("host.releases", host.get("releases"), _RELEASE)
    lines += _elements("host.models", host.get("models"), _MODEL)
    entries = list(instances)
    lines += _elements("instances", entries, _INSTANCE)
    for entry in filter(lambda one: isinstance(one, Mapping), entries):
        lines += _elements(f"ports of {entry.get('instance') or 'an instance'}", entry.get("ports"), _PORT)
        if not isinstance(entry.get("gpus") or [], list):
            lines.append(f"gpus of {entry.get('instance') or 'an instance'} is {_shown(entry['gpus'])}, expected a list of GPU indices")
    return lines


def _elements(what: str, given: Any, keys: Iterable[str]) -> list[str]:
    if given is None:
        return []
    if not isinstance(given, list):
        return [f"{what} is {_shown(given)}, expected a list"]
    lines = []
    for number, one in enumerate(given):
        if not isinstance(one, Mapping):
            lines.append(f"{what}[{number}] is {_shown(one)}, expected an object of the plan")
        else:
            lines += [f"{what}[{number}] has no {key}" for key in keys if one.get(key) in (None, "")]
    return lines


def _shown(value: Any) -> str:
    return "missing" if value is None else f"{str(value)[:40]!r} ({type(value).__name__})"
