# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table: every module, every condition, and what the module must say then. A module that is not in it fails the test.

What Ansible itself says of an option is only looked at for the name of the option.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modules.row import Nothing, Row

#: A module is run in check mode; with an option of the wrong type, without one it needs, with one it does not have; where nobody
#: listens; by a user without rights; where a program or a Python package is missing.
CONDITIONS = ("check mode", "wrong type", "missing", "unknown", "unreachable port", "no rights", "missing program", "missing library")

Cell = Row | Nothing | tuple[Row, ...]

_PREFILL: dict[str, Any] = {
    "instance": "prefill-main-0",
    "unit": "sglang-prefill-main-0.service",
    "role": "prefill",
    "group": "main",
    "host": "gpu1",
    "address": "127.0.0.1",
    # Nobody listens on port 1, and only root could.
    "port": 1,
    "url": "http://127.0.0.1:1",
    "bootstrap_port": 2,
    "served_name": "llama",
    "device": "cpu",
    "peers": {},
    "render": {"digest": "d" * 64},
}
_DECODE = {**_PREFILL, "instance": "decode-main-0", "unit": "sglang-decode-main-0.service", "role": "decode", "bootstrap_port": None}
_ROUTER = {
    **_DECODE,
    "instance": "router-main-0",
    "unit": "sglang-router-main-0.service",
    "role": "router",
    "peers": {"prefill": [_PREFILL], "decode": [_DECODE]},
}
_GROUP = [_PREFILL, _DECODE, _ROUTER]
_KEY = [{"name": "api-key", "path": "<secret>"}]
_ANSWERING = {"address": "127.0.0.1", "port": "<port>", "url": "http://127.0.0.1:<port>"}

_RELEASE = {
    "id": "sglang-0.5.23-000000000000",
    "kind": "engine",
    "package": "sglang",
    "version": "0.5.23",
    "path": "<scratch>/sglang-0.5.23-000000000000",
    "python": "<scratch>/sglang-0.5.23-000000000000/bin/python",
    "interpreter": "auto",
    "requirements": "sglang==0.5.23",
}
_HOST = {"address": "127.0.0.1", "releases": [_RELEASE], "models": [], "numa": {}}
_MODEL = {"name": "llama", "path": "<scratch>/llama"}

_HTTP = Nothing("it speaks HTTP with the standard library, and starts no program")
_NO_LIBRARY = Nothing("the standard library is all it needs")
_NO_PORT = Nothing("it opens no connection")
_ALL_OPTIONAL = Nothing("no option is required")


def _only(option: str, *words: str) -> tuple[str, ...]:
    """What Ansible says of an option: its name, and what it should have been."""
    return (option, *words)


def _unknown(parameters: Mapping[str, Any], one_of: str, **changes: Any) -> Row:
    return Row({**parameters, "colour": "red"}, _only("colour", "Supported parameters include", one_of), **changes)


_READINESS = {"instances": [_PREFILL], "timeout": 0}
#: What runs here as the unit was not rendered by a plan.
_UNRENDERED = {"instances": [{**_PREFILL, "render": {}}], "timeout": 0}
_RUNNING = {"UNIT_PID": "<pid>"}

TABLE: Mapping[str, Mapping[str, Cell]] = {
    "gpu_facts": {
        "check mode": Row({}, ("no NVIDIA driver",), fails=False, check=True, path="none", where=("ansible_facts", "plumbline_gpus", "reason")),
        "wrong type": Nothing("its only option is a path, and every value is a text"),
        "missing": _ALL_OPTIONAL,
        "unknown": _unknown({}, "tools_python"),
        "unreachable port": _NO_PORT,
        "no rights": Row({}, ("no NVIDIA driver",), fails=False, unprivileged=True, path="none", where=("ansible_facts", "plumbline_gpus", "reason")),
        "missing program": (
            Row({}, ("nvidia-smi is not installed",), fails=False, path="none", where=("ansible_facts", "plumbline_gpus", "reason")),
            Row({}, ("install",), fails=False, path="none", where=("ansible_facts", "plumbline_gpus", "next")),
        ),
        "missing library": Row({}, ("pynvml", "nvidia-ml-py"), fails=False, path="none", where=("ansible_facts", "plumbline_gpus", "reason")),
    },
    "host_program": {
        "check mode": Row({"dest": "<scratch>/plumbline.pyz"}, ("True",), fails=False, check=True, action=True, where=("changed",)),
        "wrong type": Row({"dest": ["<scratch>/none/plumbline.pyz"]}, ("does not exist",), action=True),
        "missing": Row({}, _only("dest", "required"), action=True),
        "unknown": _unknown({"dest": "<scratch>/plumbline.pyz"}, "dest", action=True),
        "unreachable port": _NO_PORT,
        "no rights": Row({"dest": "<locked>/plumbline.pyz"}, ("<locked>/plumbline.pyz", "Permission denied"), unprivileged=True, action=True),
        "missing program": Nothing("it starts none"),
        "missing library": _NO_LIBRARY,
    },
    "instance_info": {
        "check mode": Row({"instances": [_PREFILL]}, ("not-found",), fails=False, check=True, path="systemd", where=("instances",)),
        "wrong type": (
            Row({"instances": "prefill"}, _only("instances", "dict")),
            Row({"instances": [{**_PREFILL, "render": "d"}]}, ("prefill-main-0: render.digest is missing", "entries of the plan")),
        ),
        "missing": (
            Row({}, _only("instances", "required")),
            Row({"instances": [{}]}, ("unit is missing", "entries of the plan")),
        ),
        "unknown": _unknown({"instances": [_PREFILL]}, "instances"),
        "unreachable port": _NO_PORT,
        "no rights": Row({"instances": [_PREFILL]}, ("may not read", "become"), unprivileged=True, path="systemd", environment=_RUNNING),
        "missing program": Row({"instances": [_PREFILL]}, ("systemctl is not installed", "booted with systemd"), path="none"),
        "missing library": _NO_LIBRARY,
    },
    "model_snapshot": {
        "check mode": Row({"model": _MODEL}, ("no such directory", "put the model there"), check=True),
        "wrong type": (
            Row({"model": "llama"}, ("dict",)),
            Row({"model": {**_MODEL, "path": "models/llama"}}, ("the path models/llama", "absolute")),
            Row({"model": {"name": "llama", "path": "/srv/llama", "copy_from": "/nowhere"}}, ("no directory /nowhere", "mend"), action=True),
        ),
        "missing": (
            Row({"model": {"name": "llama"}}, _only("path", "required")),
            Row({"model": {"copy_from": "/nowhere"}}, _only("name", "required"), action=True),
        ),
        "unknown": _unknown({"model": _MODEL}, "full_check"),
        "unreachable port": _NO_PORT,
        "no rights": (
            Row({"model": {**_MODEL, "path": "<locked>/llama"}}, ("Permission denied", "as root (become)"), unprivileged=True),
            Row({"model": _MODEL, "phase": "prepare", "manifest_directory": "<locked>/manifests"}, ("Permission denied", "become"), unprivileged=True),
        ),
        "missing program": Nothing("it starts none"),
        "missing library": _NO_LIBRARY,
    },
    "pd_canary": {
        "check mode": Row({"instances": _GROUP}, ("would cross prefill-main-0", "router-main-0"), fails=False, check=True),
        "wrong type": (
            Row({"instances": _GROUP, "words": "many"}, _only("words", "int")),
            Row({"instances": ["prefill-main-0"]}, _only("instances", "dict")),
            Row({"instances": _GROUP, "words": 0}, ("words is 0", "expected 1 or more")),
        ),
        "missing": (
            Row({}, _only("instances", "required")),
            Row({"instances": [{}]}, ("unit is missing",)),
            Row({"instances": [_PREFILL]}, ("no decode of PD group 'main'", "give all entries of the group")),
        ),
        "unknown": _unknown({"instances": _GROUP}, "through_routers"),
        "unreachable port": Row({"instances": _GROUP}, ("connection refused", "systemctl status sglang-prefill-main-0.service")),
        "no rights": Row(
            {"instances": [{**entry, "credentials": _KEY} for entry in _GROUP]},
            ("<secret> cannot be read: Permission denied", "as root"),
            unprivileged=True,
        ),
        "missing program": _HTTP,
        "missing library": _NO_LIBRARY,
    },
    "pd_preflight": {
        "check mode": Row({"host": _HOST, "checks": ["address"]}, ("checked and clean: 1",), fails=False, check=True, where=("report",)),
        "wrong type": (
            Row({"host": "gpu1"}, _only("host", "dict")),
            Row({"host": _HOST, "checks": ["colour"]}, _only("checks", "must be one or more of", "flags", "root")),
            Row({"host": {**_HOST, "releases": 4}}, ("host.releases is '4'", "expected a list", "from the plan")),
            Row({"host": _HOST, "instances": [{**_PREFILL, "ports": "all"}]}, ("ports of prefill-main-0 is 'all'", "expected a list")),
        ),
        "missing": (
            Row({}, _only("host", "required")),
            Row({"host": {}}, ("host.address is missing", "expected the address of this host")),
            Row({"host": {**_HOST, "models": [{}]}, "instances": [{}]}, ("host.models[0] has no path", "instances[0] has no unit")),
        ),
        "unknown": _unknown({"host": _HOST}, "service_user"),
        "unreachable port": Nothing("it looks which ports are taken, and connects to none"),
        "no rights": Row({"host": _HOST, "checks": ["root"], "fail_on_problem": True}, ("user id", "ansible_become: true"), unprivileged=True),
        "missing program": (
            Row(
                {"host": _HOST, "instances": [{**_PREFILL, "device": "cuda", "gpus": [0]}], "checks": ["gpus"], "fail_on_problem": True},
                ("nvidia-smi is not installed", "install"),
                path="none",
            ),
            Row({"host": _HOST, "checks": ["systemd"]}, ("systemd", "next:"), fails=False, path="none", where=("report",)),
        ),
        "missing library": Row(
            {"host": _HOST, "instances": [{**_PREFILL, "device": "cuda", "gpus": [0]}], "checks": ["gpus"], "fail_on_problem": True},
            ("pynvml", "nvidia-ml-py", "install"),
            path="none",
        ),
    },
    "plan": {
        "check mode": Row({}, ("prefill-",), fails=False, check=True, action=True, inventory="<checkout>/inventory/single_host", where=("table",)),
        "wrong type": Row({"fail_on": "nothing"}, _only("fail_on", "must be one of", "never"), action=True),
        # The options are all optional; what it needs is an inventory.
        "missing": Row({}, ("1 error(s)", "listed above"), action=True),
        "unknown": _unknown({}, "fail_on", action=True),
        "unreachable port": Row(
            {}, ("prefill-",), fails=False, action=True, inventory="<checkout>/inventory/single_host", where=("table",), variables={"ansible_port": 1}
        ),
        "no rights": Row(
            {},
            ("<secret> cannot be read", "Permission denied"),
            unprivileged=True,
            action=True,
            inventory="<checkout>/inventory/single_host",
            variables={"sglang_engine_requirements": "<secret>"},
        ),
        "missing program": Nothing("it runs on the controller and starts none"),
        "missing library": _NO_LIBRARY,
    },
    "release": {
        "check mode": Row({"release": _RELEASE}, ("not installed",), fails=False, check=True, where=("reason",)),
        "wrong type": (
            Row({"release": {**_RELEASE, "kind": "car"}}, _only("kind", "must be one of")),
            Row({"release": {**_RELEASE, "requirements": "sglang>=0.5"}}, ("no exact pin: sglang>=0.5", "one name==version per line"), check=True),
            Row({"release": {**_RELEASE, "path": "/opt/other"}}, ("the path /opt/other", "ends in the release's id"), check=True),
        ),
        "missing": (
            Row({"release": {"id": "x"}}, _only("requirements", "required")),
            Row({"release": {"id": "x"}}, _only("requirements", "required"), action=True),
        ),
        "unknown": _unknown({"release": _RELEASE}, "full_check"),
        "unreachable port": Row(
            {"release": _RELEASE},
            ("the package index cannot be reached", "an index that answers this host", "PIP_INDEX_URL"),
            environment={"PIP_INDEX_URL": "http://127.0.0.1:1/simple", "PIP_RETRIES": "1", "PIP_CONFIG_FILE": "/dev/null"},
        ),
        "no rights": Row(
            {"release": {**_RELEASE, "path": "<locked>/releases/sglang-0.5.23-000000000000"}}, ("Permission denied", "as root (become)"), unprivileged=True
        ),
        "missing program": Row({"release": {**_RELEASE, "interpreter": "/nowhere/python3"}}, ("/nowhere/python3", "install one")),
        "missing library": Nothing("the release's own interpreter brings venv and pip; a missing one is a missing program"),
    },
    "report": {
        "check mode": Row({}, ("plumbline_plan is missing", "plumbline.sglang.plan"), check=True, action=True),
        "wrong type": Row({"roles": ["cook"]}, _only("roles", "prefill"), action=True),
        "missing": Row({}, ("plumbline_plan is missing", "Run plumbline.sglang.plan"), action=True),
        "unknown": _unknown({}, "quiet_when_ready", action=True),
        "unreachable port": Nothing("it runs on the controller and contacts no host"),
        "no rights": Nothing("it reads what hosts registered; the file that it writes is the plan's directory's owner's"),
        "missing program": Nothing("it runs on the controller and starts none"),
        "missing library": _NO_LIBRARY,
    },
    "router_check": {
        "check mode": Row({"router": _ROUTER}, ("connection refused", "systemctl status"), fails=False, check=True),
        "wrong type": (
            Row({"router": "router-main-0"}, _only("router", "dict")),
            Row({"url": "gpu1", "prefill_workers": ["gpu1"]}, ("url is 'gpu1'", "expected http://address:port")),
            Row({"router": {**_ROUTER, "peers": 4}}, ("peers is int", "expected an object")),
            Row({"router": _PREFILL}, ("with role 'prefill'", "expected a router's entry")),
        ),
        "missing": (
            Row({}, _only("router", "required", "url")),
            Row({"router": {}}, ("unit is missing",)),
            Row({"url": "http://127.0.0.1:1"}, ("no worker is given", "prefill_workers")),
        ),
        "unknown": _unknown({"router": _ROUTER}, "metrics_url"),
        "unreachable port": Row({"router": _ROUTER}, ("connection refused", "systemctl status sglang-router-main-0.service")),
        "no rights": Row({"router": {**_ROUTER, **_ANSWERING, "credentials": _KEY}}, ("<secret> cannot be read: Permission denied", "root"), unprivileged=True),
        "missing program": _HTTP,
        "missing library": _NO_LIBRARY,
    },
    "served_model_check": {
        "check mode": Row({"instances": _GROUP}, ("connection refused", "systemctl status"), fails=False, check=True),
        "wrong type": (
            Row({"instances": "prefill-main-0"}, _only("instances", "dict")),
            Row({"served_name": "llama", "workers": [{"url": "gpu1", "role": "prefill"}]}, ("'gpu1'", "expected http://address:port")),
            Row({"instances": _GROUP, "completion_timeout": 0}, ("completion_timeout is 0", "expected 1 to 600")),
        ),
        "missing": (
            Row({}, _only("instances", "required", "workers")),
            Row({"instances": [{}]}, ("unit is missing",)),
            Row({"instances": []}, ("nothing to ask is given", "workers")),
        ),
        "unknown": _unknown({"instances": _GROUP}, "completion_timeout"),
        "unreachable port": Row({"instances": _GROUP}, ("connection refused", "systemctl status sglang-prefill-main-0.service")),
        "no rights": Row(
            {"instances": [{**entry, "credentials": _KEY} for entry in _GROUP]},
            ("<secret> cannot be read: Permission denied", "as root"),
            unprivileged=True,
        ),
        "missing program": _HTTP,
        "missing library": _NO_LIBRARY,
    },
    "wait_for_sglang_ready": {
        "check mode": Row(_READINESS, ("would wait", "the unit is not installed", "run the prefill role"), fails=False, check=True, path="systemd"),
        "wrong type": (
            Row({"instances": "prefill-main-0"}, _only("instances", "dict")),
            Row({"unit": "x", "role": "cook", "port": 1}, _only("role", "must be one of", "prefill")),
            Row({"instances": [{**_PREFILL, "port": "high"}]}, ("port is 'high'", "expected a number from 1 to 65535")),
        ),
        "missing": (
            Row({}, _only("instances", "required", "unit")),
            Row({"unit": "x"}, _only("role", "required", "port")),
            Row({"unit": "x"}, _only("role", "required", "port"), action=True),
            Row({"instances": [{}]}, ("unit is missing",)),
        ),
        "unknown": _unknown(_READINESS, "credential_path"),
        "unreachable port": Row(_UNRENDERED, ("nothing listens on port 1", "connection refused"), path="systemd", environment=_RUNNING),
        "no rights": Row(_READINESS, ("cannot be read: Permission denied", "root"), unprivileged=True, path="systemd", environment=_RUNNING),
        "missing program": (
            Row(_READINESS, ("systemctl is not installed",), path="none"),
            Row(_UNRENDERED, ("journalctl",), path="systemctl alone", environment=_RUNNING),
        ),
        "missing library": Nothing("NVML is asked for a server that says it is ready; gpu_facts reads it with the same code"),
    },
}


def rows(module: str, condition: str) -> list[Row]:
    """The rows of one cell; none where the condition cannot be met."""
    cell = TABLE.get(module, {}).get(condition)
    if isinstance(cell, Row):
        return [cell]
    return list(cell) if isinstance(cell, tuple) else []


def everywhere() -> list[tuple[str, str, Row]]:
    """Every row with its module and condition."""
    return [(module, condition, row) for module in TABLE for condition in CONDITIONS for row in rows(module, condition)]
