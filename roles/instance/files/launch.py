# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start an SGLang engine or its router in this process, with keys that no argv, unit or log ever holds.

    launch.py {sglang|smg|sglang-router} [--credential NAME=FILE ...] -- ARGUMENTS OF THE PROGRAM

The engine and the routers take a key only as an argument, which every user of the host can read. Here it is read from a
file (root:service group, 0640) and set on the parsed arguments, so that it is not in the recorded launch command either.
The engine prints all its arguments when it starts (``server_args=`` in sglang/srt/entrypoints/engine.py): every log
record and traceback of this process and of the children that it spawns is redacted before it is written.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
import traceback


def read_credentials(words: list[str]) -> tuple[str, dict[str, str], list[str]]:
    """Split the command line into the program, {attribute of its arguments: key} and its own arguments."""
    own, arguments = words[: words.index("--")], words[words.index("--") + 1 :]
    keys = {}
    for item in own[2::2]:
        name, _equals, path = item.partition("=")
        with open(path, encoding="utf-8") as file:
            keys[name.replace("-", "_")] = file.read().strip()
        if not keys[name.replace("-", "_")]:
            sys.exit(f"launch.py: the credential file {path} is empty: deploy again with the key set in the inventory")
    return own[0], keys, arguments


def redact(secrets: list[str]) -> None:
    """Make every log record and every traceback of this process show *** in the place of a key."""
    if not secrets:
        return

    def clean(text: str) -> str:
        for secret in secrets:
            text = text.replace(secret, "***")
        return text

    class RedactedRecord(logging.LogRecord):
        def getMessage(self) -> str:
            return clean(super().getMessage())

    logging.setLogRecordFactory(RedactedRecord)
    # Tracebacks are no part of a record's message: whoever formats one asks this method.
    format_exception = logging.Formatter.formatException
    logging.Formatter.formatException = lambda self, ei: clean(format_exception(self, ei))  # type: ignore[method-assign]
    sys.excepthook = lambda *info: print(clean("".join(traceback.format_exception(*info))), end="", file=sys.stderr)


def start(program: str, keys: dict[str, str], arguments: list[str]) -> None:
    """Run the program until it ends; a key that it has no attribute for is an error and never dropped."""
    if program == "sglang":
        module = importlib.import_module("sglang.launch_server")
        getattr(module, "load_plugins", lambda: None)()  # absent in the older 0.5 releases
        parse = module.prepare_server_args
        run = getattr(module, "run_server", None) or module.launch_server
    else:
        module = importlib.import_module({"smg": "smg", "sglang-router": "sglang_router"}[program] + ".launch_router")
        parse, run = module.parse_router_args, module.launch_router
    parsed = parse(arguments)
    for name, key in keys.items():
        if not hasattr(parsed, name):
            sys.exit(f"launch.py: {program} has no argument {name!r}, so this key cannot be used: remove it from the inventory")
        setattr(parsed, name, key)
    try:
        run(parsed)
    finally:
        if program == "sglang":
            module.kill_process_tree(os.getpid(), include_parent=False)


# Children are spawned: they import this file again as __mp_main__, with the same sys.argv, and log on their own.
if __name__ in ("__main__", "__mp_main__"):
    PROGRAM, KEYS, ARGUMENTS = read_credentials(sys.argv[1:])
    redact(list(KEYS.values()))
if __name__ == "__main__":
    start(PROGRAM, KEYS, ARGUMENTS)
