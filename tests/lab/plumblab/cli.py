# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command line of the lab."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence

from . import laboratory, layout, models, namespace, ssh, wheelhouse
from . import settings as lab_settings
from .console import say
from .errors import LabError
from .podman import Podman
from .settings import Settings


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    # What follows `--` is for the hosts, whatever it looks like.
    rest: list[str] = []
    if "--" in words:
        at = words.index("--")
        words, rest = words[:at], words[at + 1 :]
    options = _parser().parse_args(words)
    try:
        return int(options.run(lab_settings.from_environment(), options, rest) or 0)
    except LabError as error:
        say(f"lab: {error}")
        return 1
    except KeyboardInterrupt:
        say("lab: interrupted; what was finished is kept, the same command goes on from there")
        return 130


def _up(settings: Settings, options: argparse.Namespace, _rest: list[str]) -> None:
    wanted = layout.load(options.layout) if options.layout else layout.plain(options.hosts) if options.hosts else None
    laboratory.up(settings, wanted, options.recreate)


def _down(settings: Settings, options: argparse.Namespace, _rest: list[str]) -> None:
    laboratory.down(settings, options.cache)


def _status(settings: Settings, options: argparse.Namespace, _rest: list[str]) -> int:
    rows = laboratory.status(settings)
    if options.json:
        print(json.dumps(rows, indent=2))
    elif not rows:
        print(f"no lab in {settings.home}")
    for row in [] if options.json else rows:
        notes = "" if row["current"] else "  (made from another recipe)"
        login = "ssh answers" if row["ssh"] else "no ssh"
        print(f"{row['host']:6} {row['address']:14} {row['suite']:9} {row['flavour']:5} {row['state']:9} {login}{notes}")
    return 0 if rows and all(row["ssh"] and row["state"] == "running" for row in rows) else 3


def _shell(settings: Settings, options: argparse.Namespace, rest: list[str]) -> int:
    podman = Podman(settings, laboratory.running(settings))
    names = [host.name for host in laboratory.recorded_layout(settings) or []]
    if options.host not in names:
        raise LabError(f"no host {options.host!r} in this lab", f"one of: {', '.join(names)}", "see `lab status`")
    terminal = ["--tty"] if sys.stdin.isatty() and sys.stdout.isatty() else []
    command = rest or ["bash", "--login"]
    return podman.interactive(["exec", "--interactive", *terminal, "--workdir", "/root", settings.container(options.host), *command])


def _exec(settings: Settings, _options: argparse.Namespace, rest: list[str]) -> int:
    if not rest:
        raise LabError("`lab exec` without a command", "lab exec -- COMMAND …", "give the command after `--`")
    command = namespace.inside(laboratory.running(settings), rest, os.getcwd())
    return subprocess.run(command, check=False).returncode


def _wheelhouse(settings: Settings, options: argparse.Namespace, _rest: list[str]) -> None:
    print(wheelhouse.ensure(settings, options.python_tag, options.verify))


def _models(settings: Settings, options: argparse.Namespace, _rest: list[str]) -> None:
    unknown = sorted(set(options.names) - set(models.MODELS))
    if unknown:
        raise LabError(f"no model {', '.join(unknown)}", f"one of: {', '.join(models.MODELS)}", "correct the name")
    for place in models.ensure(settings, options.names or list(models.MODELS)):
        print(place)


def _inventory(settings: Settings, options: argparse.Namespace, _rest: list[str]) -> None:
    value = {
        "home": str(settings.home),
        "ssh_config": str(ssh.config_path(settings)),
        "known_hosts": str(settings.ssh / "known_hosts"),
        "ssh_key": str(ssh.key_path(settings)),
        "user": ssh.USER,
        "wheelhouse": str(settings.wheelhouse),
        "models": str(settings.models),
        "images": str(settings.images),
        "run": str(settings.run),
        "subnet": str(settings.subnet),
        "hosts": {host.name: settings.address(host.number) for host in laboratory.recorded_layout(settings) or layout.load("default")},
    }
    if options.json:
        print(json.dumps(value, indent=2))
        return
    for name, item in value.items():
        print(f"{name:12} {'  '.join(f'{key}={word}' for key, word in item.items()) if isinstance(item, dict) else item}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lab", description="Systemd hosts, engine wheels and small models for the tests, on one machine.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    up = commands.add_parser("up", help="have the hosts running (three by default)")
    which = up.add_mutually_exclusive_group()
    which.add_argument("--hosts", type=int, metavar="N", help="lab1 … labN, all Debian 12")
    which.add_argument("--layout", metavar="FILE|NAME", help=f"a layout file, or one of: {', '.join(layout.shipped())}")
    up.add_argument("--recreate", action="store_true", help="make every host anew, its disk included")
    up.set_defaults(run=_up)

    down = commands.add_parser("down", help="remove hosts, network, rules, processes and mounts")
    down.add_argument("--cache", action="store_true", help="remove the caches too: images, wheelhouse, models, keys")
    down.set_defaults(run=_down)

    status = commands.add_parser("status", help="how each host is; status 0 when all answer")
    status.add_argument("--json", action="store_true")
    status.set_defaults(run=_status)

    shell = commands.add_parser("shell", help="a root shell in a host, or one command: lab shell HOST -- CMD")
    shell.add_argument("host")
    shell.set_defaults(run=_shell)

    execute = commands.add_parser("exec", help="run a command in the lab's mount namespace: lab exec -- CMD")
    execute.set_defaults(run=_exec)

    wheels = commands.add_parser("wheelhouse", help="fetch the engine's and the routers' wheels")
    wheels.add_argument("--python-tag", default=wheelhouse.DEFAULT_TAG, help="for which Python (default: %(default)s)")
    wheels.add_argument("--verify", action="store_true", help="read every wheel and compare its SHA-256")
    wheels.set_defaults(run=_wheelhouse)

    small = commands.add_parser("models", help="write the small models")
    small.add_argument("names", nargs="*", metavar="NAME", help=f"which (default: all of {', '.join(models.MODELS)})")
    small.set_defaults(run=_models)

    inventory = commands.add_parser("inventory", help="where things are")
    inventory.add_argument("--json", action="store_true")
    inventory.set_defaults(run=_inventory)
    return parser
