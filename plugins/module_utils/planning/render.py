# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan entry -> rendered set: the unit, its environment and its argv as text, with one digest over all of them.

Pure. The unit is the only file that systemd reads; environment and argv are the same facts with one variable or flag
per line, for people, diffs and tools. The digest stands in the unit's environment (``PLUMBLINE_RENDER``), so that what
runs can be compared with what was rendered, by anyone who may read ``/proc/PID/environ``.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

DIGEST_VARIABLE = "PLUMBLINE_RENDER"

# Engines need devices, JIT memory, the sight of other processes and netlink (RDMA, UCX): these stay open. The rest is
# closed as far as a GPU host allows; tried on the real engine. mbind and friends are the NUMA allocators', pidfd_getfd
# is how CUDA shares memory between TP ranks (cuMem file descriptors), and neither is in @system-service.
HARDENING: tuple[str, ...] = (
    "NoNewPrivileges=yes",
    "CapabilityBoundingSet=",
    "ProtectSystem=strict",
    "ProtectHome=read-only",
    "ProtectKernelTunables=yes",
    "ProtectKernelModules=yes",
    "ProtectKernelLogs=yes",
    "ProtectControlGroups=yes",
    "ProtectClock=yes",
    "ProtectHostname=yes",
    "PrivateTmp=yes",
    "LockPersonality=yes",
    "RestrictSUIDSGID=yes",
    "RestrictRealtime=yes",
    "RestrictNamespaces=yes",
    "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
    "SystemCallArchitectures=native",
    "SystemCallFilter=@system-service set_mempolicy mbind get_mempolicy pidfd_open pidfd_getfd",
    "SystemCallErrorNumber=EPERM",
    "RemoveIPC=yes",
    "UMask=0077",
)


def quote(word: str, *, command: bool) -> str:
    """One word as systemd reads it back unchanged (systemd.syntax(7), "Quoting"; systemd.unit(5), specifiers).

    ``command`` is True on an ``Exec`` line, where ``$`` would be expanded as well; in ``Environment=`` it is literal.
    A word that holds a NUL cannot be passed to any program: ValueError.
    """
    if "\0" in word:
        raise ValueError("a word with a NUL character cannot be passed to a program: " + repr(word))
    text = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    if command:
        text = text.replace("$", "$$")
    text = text.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    plain = word and all(char.isalnum() or char in "-_./:,=+@%^~" for char in word) and not word.startswith("@")
    return text if plain else '"' + text + '"'


def command_line(entry: Mapping[str, Any]) -> list[list[str]]:
    """The launcher's command, one list of words for each line of ``ExecStart``; see roles/instance/files/launch.py."""
    release = entry["release"]
    lines = [[release["python"], entry["launcher"], release["package"]]]
    lines += [["--credential", f"{item['name']}={item['path']}"] for item in entry["credentials"]]
    lines.append(["--"])
    return lines + [list(map(str, words)) for words in entry["argv"]]


def witness_line(entry: Mapping[str, Any]) -> list[str]:
    """What an engine's unit runs before its main process: as root (``+``), since the page cache tells an unprivileged reader that
    everything is in it, and without ever keeping the unit from starting (``-``)."""
    if not entry["model"]:
        return []
    words = [entry["release"]["python"], "-I", entry["paths"]["program"], "witness", "--entry", entry["paths"]["config"]]
    return ["ExecStartPre=+-" + " ".join(quote(word, command=True) for word in words)]


def proof_line(entry: Mapping[str, Any]) -> str:
    """What each run is proved by: a process of its own beside the unit, which waits until all witnesses agree and writes that down.

    So a run that systemd started at night has its proof as well. A process inside the unit would be taken for one of the server's.
    """
    words = ["systemd-run", "--quiet", "--no-block", "--collect", f"--unit=sglang-proof-{entry['instance']}", "--nice=10"]
    words += [entry["release"]["python"], "-I", entry["paths"]["program"], "prove", "--entry", entry["paths"]["config"]]
    return "ExecStartPost=+-" + " ".join(quote(word, command=True) for word in words)


def argv_text(argv: Sequence[Sequence[Any]]) -> str:
    """One flag with its values per line, as a person compares two launches."""
    return "".join(" ".join(_shown(str(word)) for word in words) + "\n" for words in argv)


def _shown(word: str) -> str:
    return word if word and not any(char.isspace() or char in "\"'" for char in word) else json.dumps(word, ensure_ascii=False)


def environment_text(environment: Mapping[str, Any]) -> str:
    """One ``NAME=value`` per line, sorted; a value with a line break is shown as JSON."""
    return "".join(f"{name}={value if chr(10) not in str(value) else json.dumps(value)}\n" for name, value in sorted(environment.items()))


def _binding(entry: Mapping[str, Any]) -> list[str]:
    """NUMA by systemd: the engine's own binding is off, since it writes a script to /tmp and needs numactl there."""
    if entry.get("numa_node") is None:
        return []
    return ["NUMAPolicy=bind", f"NUMAMask={entry['numa_node']}", "CPUAffinity=numa"]


def unit_text(entry: Mapping[str, Any], digest: str) -> str:
    """The whole unit file of one instance; ``digest`` is that of the rendered set it belongs to."""
    environment = {**entry["environment"], DIGEST_VARIABLE: digest}
    start = " \\\n    ".join(" ".join(quote(word, command=True) for word in line) for line in command_line(entry))
    lines = [
        "# Managed by plumbline.sglang: the next deploy undoes a change made here. Change the inventory instead.",
        f"# Rendered set {digest}",
        # A new key in the same file is a new rendered set: the running server still holds the old one.
        *(f"# Credential {item['name']}, fingerprint {item['fingerprint']}" for item in entry["credentials"]),
        # A router reads a worker's served name once: where it changes, the router has to start anew as well.
        *([f"# Serves {entry['served_name']}"] if entry["role"] == "router" else []),
        "[Unit]",
        f"Description=SGLang {entry['role']} {entry['name']} of PD group {entry['group']}",
        "Wants=network-online.target",
        "After=network-online.target nvidia-persistenced.service",
        "StartLimitIntervalSec=900",
        "StartLimitBurst=5",
        "",
        "[Service]",
        # SGLang never calls sd_notify: "active" says that exec worked, and readiness is proved by other means.
        "Type=exec",
        f"User={entry['user']}",
        f"Group={entry['user_group']}",
        f"WorkingDirectory={quote(entry['paths']['cache'], command=False)}",
        *witness_line(entry),
        f"ExecStart={start}",
        proof_line(entry),
        *(f"Environment={_assignment(name, value)}" for name, value in sorted(environment.items())),
        # The schedulers have no SIGTERM handler: only the main process is asked, the rest is killed at the end.
        "KillMode=mixed",
        f"TimeoutStopSec={entry['stop_timeout_seconds']}",
        "SuccessExitStatus=143",
        "Restart=on-failure",
        # GPU memory and ports of the run before need a moment; 2 is a refused argument, 3 a port that is taken.
        "RestartSec=10",
        "RestartPreventExitStatus=2 3",
        "StandardOutput=journal",
        "StandardError=journal",
        f"SyslogIdentifier={entry['instance']}",
        "LogRateLimitIntervalSec=0",
        "LimitMEMLOCK=infinity",
        "LimitNOFILE=1048576",
        "LimitSTACK=67108864:infinity",
        "LimitCORE=0",
        "TasksMax=infinity",
        *_binding(entry),
        f"ReadWritePaths={quote(entry['paths']['cache'], command=False)}",
        *HARDENING,
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    ]
    return "\n".join(lines) + "\n"


def _assignment(name: str, value: Any) -> str:
    text = quote(f"{name}={value}", command=False)
    return text if text.startswith('"') else f'"{text}"'


def directories(entry: Mapping[str, Any], digest: str) -> list[dict[str, str]]:
    """Every directory the instance needs, parents first: ``{"path", "owner", "group", "mode"}``.

    Root owns all of them but the cache, so that the service can alter nothing that decides what it runs.
    """
    paths, user, group = entry["paths"], entry["user"], entry["user_group"]
    instances = posixpath.dirname(paths["config"])
    credentials = sorted({posixpath.dirname(item["path"]) for item in entry["credentials"]})
    state = posixpath.dirname(paths["renders"])
    open_to_all = [posixpath.dirname(instances), instances, posixpath.dirname(entry["launcher"]), posixpath.dirname(paths["program"])]
    open_to_all += [posixpath.dirname(state), state, paths["renders"], f"{paths['renders']}/{digest}", paths["state"]]
    secret = sorted({posixpath.dirname(path) for path in credentials} | set(credentials))
    return [
        *({"path": path, "owner": "root", "group": "root", "mode": "0755"} for path in open_to_all),
        *({"path": path, "owner": "root", "group": group, "mode": "0750"} for path in secret),
        {"path": paths["cache"], "owner": user, "group": group, "mode": "0750"},
    ]


def render(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The rendered set of one plan entry.

    ``{"digest": 64 hex digits, "files": {"unit": text, "environment": text, "argv": text}, "staged": [{"path", "content"}],
    "directories": [...]}``. The digest covers the unit as it would be with an empty digest, which holds argv and
    environment whole; ``staged`` says where the three texts lie before the unit is switched to them.
    """
    digest = hashlib.sha256(unit_text(entry, "").encode()).hexdigest()
    files = {
        "unit": unit_text(entry, digest),
        "environment": environment_text({**entry["environment"], DIGEST_VARIABLE: digest}),
        "argv": argv_text(entry["argv"]),
    }
    names = {"unit": entry["unit"], "environment": "environment", "argv": "argv"}
    return {
        "digest": digest,
        "files": files,
        "staged": [{"path": f"{entry['paths']['renders']}/{digest}/{names[name]}", "content": text} for name, text in files.items()],
        "directories": directories(entry, digest),
    }
