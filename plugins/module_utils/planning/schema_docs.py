# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The schema of user variables -> ``docs/variables.md``. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from .schema import SCOPE_ALL, SCOPE_GROUP, SCOPE_HOST, VARIABLES, Option

_INTRO = """# Variables

<!-- Made by docs/build_variables.py from plugins/module_utils/planning/schema.py: change it there. -->

Every variable a user may set. They belong in the inventory (`group_vars`, `host_vars`) or in `--extra-vars`; variables of plays, tasks
and roles are not read. An unknown `sglang_*` name is an error, and so is an unknown key inside `sglang_groups` or an instance.

*Scope*: **{all}** — one value on every host; **{group}** — hosts of one PD group must agree; **{host}** — may differ from host to host.

Arguments and environment come in layers; the last one wins, `null` removes:
defaults of the role < `sglang_args` < `sglang_<role>_args` < `args` of the PD group < `<role>_args` of the PD group < `args` of the instance
(environment alike). `sglang_args`, `sglang_env`, and `args` and `env` of a PD group are for prefill and decode servers; a router takes its own
layers alone.

What the plan decides itself may not stand in arguments or environment (addresses, ports, GPUs, model path, served name, role, keys); it
says which variable to use instead.
"""
_KINDS = {
    "args": "mapping (flags)",
    "controller_file": "file on the controller",
    "controller_path": "absolute path on the controller",
    "env": "mapping (environment)",
    "instances": "list of mappings",
    "integers": "list of integers",
    "interpreter": "`auto` or absolute path on the host",
    "named": "mapping of name to mapping",
    "numa": "mapping of NUMA node to list of GPUs",
    "options": "mapping",
    "path": "absolute path on the host",
    "port": "port (1–65535)",
    "seconds": "integer (seconds)",
    "version": "string (version)",
}


def to_markdown() -> str:
    """The whole document."""
    parts = [_INTRO.format(all=SCOPE_ALL, group=SCOPE_GROUP, host=SCOPE_HOST)]
    parts.append(_table(VARIABLES, scope=True))
    for option in VARIABLES:
        parts.extend(_nested(option, option.name))
    return "\n".join(parts)


def _nested(option: Option, path: str) -> Iterable[str]:
    if not option.options:
        return
    what = {"instances": "Each item of", "named": "Each entry of"}.get(option.kind, "Keys of")
    yield f"## {what} `{path}`\n"
    yield _table(option.options, scope=False)
    for item in option.options:
        yield from _nested(item, f"{path}.<name>.{item.name}" if option.kind == "named" else f"{path}.{item.name}")


def _table(options: Iterable[Option], *, scope: bool) -> str:
    head = ["Name", "Type", "Default", *(["Scope"] if scope else []), "Meaning"]
    rows = [head, ["---"] * len(head)]
    for option in options:
        kind = _KINDS.get(option.kind, option.kind)
        if option.choices:
            kind += ": " + ", ".join(f"`{choice}`" for choice in option.choices)
        meaning = _code(option.description) + (" **Secret**: never in argv, files that others read, output or the plan." if option.secret else "")
        rows.append([f"`{option.name}`", kind, _default(option), *([option.scope] if scope else []), meaning])
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows) + "\n"


def _default(option: Option) -> str:
    if option.default_text:
        return _code(option.default_text)
    if option.default is not None:
        return f"`{json.dumps(option.default) if not isinstance(option.default, str) else option.default}`"
    return {"args": "none", "env": "none", "numa": "none", "named": "none", "options": "see below"}.get(option.kind, "not set")


def _code(text: str) -> str:
    return re.sub(r"C\(([^()]*)\)", r"`\1`", text)
