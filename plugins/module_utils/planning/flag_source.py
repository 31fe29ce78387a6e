# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The flags that an engine or router has, read from its source without importing it (an import needs torch and takes seconds).

SGLang declares most flags as annotated fields (``name: A[type, Arg(...)]`` in arg_groups/fields, read by arg_utils.py
``add_cli_args_from_dataclass``) and the rest, like the routers and the older releases, by ``add_argument``. Pure.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

BARE = "bare"  # the flag alone
VALUE = "value"  # the flag with one or more values

Flags = dict[str, str]


def read(sources: Iterable[str]) -> Flags:
    """Every flag of these source texts, without the leading dashes, as ``{name: BARE or VALUE}``."""
    result: Flags = {}
    for source in sources:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.AnnAssign):
                result.update(_field(node))
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
                result.update(_call(node))
    return result


def _call(node: ast.Call) -> Flags:
    names = [text for text in map(_literal, node.args) if text.startswith("--")]
    action = next((ast.unparse(item.value) for item in node.keywords if item.arg == "action"), "")
    return _flags(names, action, bare=action.strip("'\"") in ("store_true", "store_false"))


def _literal(node: ast.expr) -> str:
    """A string, also one whose beginning is filled in when it runs: the routers prefix their flags with a variable."""
    if isinstance(node, ast.JoinedStr):
        return "".join(_literal(part) for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _field(node: ast.AnnAssign) -> Flags:
    annotation = node.annotation
    if not (isinstance(annotation, ast.Subscript) and isinstance(annotation.value, ast.Name) and annotation.value.id == "A"):
        return {}
    if not (isinstance(annotation.slice, ast.Tuple) and isinstance(node.target, ast.Name)):
        return {}
    kind, meta = annotation.slice.elts[0], annotation.slice.elts[1]
    options = {item.arg: item.value for item in meta.keywords} if isinstance(meta, ast.Call) else {}
    if "no_cli" in options and ast.unparse(options["no_cli"]) == "True":
        return {}
    names = [_literal(options["cli_name"]) if "cli_name" in options else "--" + node.target.id.replace("_", "-")]
    if isinstance(options.get("aliases"), ast.List):
        names += list(_literals(options["aliases"]))
    action = ast.unparse(options["action"]) if "action" in options else ""
    return _flags(names, action, bare=not action and ast.unparse(kind) in ("bool", "Optional[bool]"))


def _literals(node: ast.expr) -> Iterator[str]:
    return (_literal(item) for item in node.elts) if isinstance(node, ast.List) else iter(())


def _flags(names: Iterable[str], action: str, *, bare: bool) -> Flags:
    optional = action.endswith("BooleanOptionalAction")
    bare = bare or optional or action.endswith("StoreTrueAction")
    result = {name[2:]: BARE if bare else VALUE for name in names}
    if optional:
        result.update({f"no-{name[2:]}": BARE for name in names})
    return result
