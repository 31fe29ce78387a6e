# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line of the program on the hosts.

    plumbline.pyz look                one line per instance of this host: its verdict, and why where it is not READY
    plumbline.pyz witness --entry F   what a unit runs as root before its main process (readiness/start_witness.py)
    plumbline.pyz prove --entry F     waits until the instance is READY and writes its proof; each start of a unit calls it beside itself
"""

from __future__ import annotations

import argparse
import glob
import importlib
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

INSTANCES = "/etc/sglang/instances"


class Unwritten(Exception):
    """Standard output takes nothing any more; the text says why."""


def _say(text: str) -> None:
    """A line for people; here there is no module to log it. :raises Unwritten:"""
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except OSError as error:
        raise Unwritten(error.strerror) from None


def version() -> str:
    """Version of the collection and digest of the sources; ``unpacked`` where this does not run from the archive."""
    package = importlib.import_module(__package__.rpartition(".")[0])
    return str(getattr(package, "VERSION", "unpacked"))


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(prog="plumbline", description="What plumbline.sglang checks on this host, without Ansible.")
    made.add_argument("--version", action="version", version=version())
    commands = made.add_subparsers(dest="command", required=True, metavar="COMMAND")
    look = commands.add_parser("look", help="look once at the instances of this host; exit status 0: all are READY")
    look.add_argument("--instances", default=INSTANCES, metavar="DIR", help=f"directory of the plan's entries (default: {INSTANCES})")
    look.add_argument("--json", action="store_true", help="the whole results as JSON")
    look.add_argument("name", nargs="*", help="only these instances")
    witness = commands.add_parser("witness", help="record what is in the page cache before a start; for the unit")
    prove = commands.add_parser("prove", help="wait until an instance is READY, and write its proof; for the unit")
    for command in (witness, prove):
        command.add_argument("--entry", required=True, metavar="FILE", help="the plan's entry of the instance")
    return made


def read_entry(path: str) -> dict[str, Any]:
    """The plan's entry in a file.

    :raises SystemExit: where there is no entry in it, with a message for people.
    """
    from ..readiness.instance_entry import problems

    try:
        with open(path, encoding="utf-8") as file:
            entry = json.load(file)
    except (OSError, ValueError) as error:
        raise SystemExit(f"plumbline: {path} cannot be read: {error}. It is written by a deploy: deploy this host again.") from None
    bad = problems(entry)
    if bad:
        raise SystemExit(f"plumbline: {path} is no entry of a plan: {'; '.join(bad)}. It is written by a deploy: deploy this host again.")
    return dict(entry)


def entries(directory: str, names: Sequence[str]) -> list[dict[str, Any]]:
    """The plan's entries on this host, those of ``names`` where any is given.

    :raises SystemExit: where there are none, with a message for people.
    """
    found = [read_entry(path) for path in sorted(glob.glob(f"{glob.escape(directory)}/*.json"))]
    known = [entry["instance"] for entry in found]
    missing = [name for name in names if name not in known]
    if missing or not found:
        seen = ", ".join(known) or "none"
        raise SystemExit(f"plumbline: instances in {directory}: {seen}; expected {', '.join(missing) or 'at least one'}. They are written by a deploy.")
    return [entry for entry in found if not names or entry["instance"] in names]


def look(directory: str, names: Sequence[str], as_json: bool) -> int:
    """One look at each instance."""
    from .. import report
    from ..host.local import LocalHost
    from ..readiness.check import Request, check

    chosen = entries(directory, names)
    results = check(chosen, LocalHost(), Request(timeout=0))
    if as_json:
        _say(json.dumps(results, indent=1))
    else:
        table = report.rows(chosen, results)
        _say("\n".join(text for text in (report.table_text(table), report.details_text(table)) if text))
    return 0 if all(item["verdict"] == "READY" for item in results) else 1


def prove(path: str) -> int:
    """Wait until an instance is found ready and write the proof of that run, for as long as its unit runs at all.

    Whoever is missed comes back some time: a prefill of this decode, the journal, the workers of this router.
    """
    from ..host.local import LocalHost
    from ..host.systemd import SystemdError
    from ..readiness.check import Request, check
    from ..readiness.waiter import Settings

    entry, host = read_entry(path), LocalHost()
    patient = Settings(peer_patience=float("inf"), blind_patience=float("inf"))
    while True:
        (item,) = check([entry], host, Request(record=True, settings=patient))
        _say(f"{item['instance']}: {item['verdict']}: {item['reason']}")
        if item["verdict"] in ("READY", "FAILED"):
            return 0 if item["verdict"] == "READY" else 1
        try:
            state = host.unit(str(entry["unit"])).active_state
        except SystemdError:
            return 1
        if state not in ("active", "activating", "reloading"):
            return 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    options = parser().parse_args(argv)
    try:
        return _run(options)
    except Unwritten as error:
        sys.stderr.write(f"plumbline: what was found could not be written to standard output: {error}. Give it a reader, or a file with space left.\n")
        # What is left in the buffer would be tried again at the end, and end in a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _run(options: argparse.Namespace) -> int:
    if options.command == "look":
        return look(options.instances, options.name, options.json)
    if options.command == "prove":
        return prove(options.entry)
    # Before every start: only what it needs is loaded.
    from ..readiness import start_witness

    return start_witness.run(options.entry)


if __name__ == "__main__":
    raise SystemExit(main())
