#!/usr/bin/env python3
# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that every role says the same in its argument specs, its defaults and its tasks, and its callers too.

Ansible validates what a caller passes against C(meta/argument_specs.yml), but it neither notices a default that differs
from the documented one, nor an argument that a caller misspells, nor a variable that no spec declares. This does.

Usage: check_specs.py [CHECKOUT]. Prints one line per finding; the exit status is 1 if there are any.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jinja2
import jinja2.nodes
import yaml

COLLECTION = "plumbline.sglang"

REQUIRED_FILES = ("README.md", "defaults/main.yml", "meta/argument_specs.yml", "meta/main.yml", "tasks/main.yml")

# Names that Ansible itself gives to every template.
ANSIBLE_NAMES = {
    "group_names",
    "groups",
    "hostvars",
    "inventory_dir",
    "inventory_file",
    "inventory_hostname",
    "inventory_hostname_short",
    "item",
    "lookup",
    "now",
    "omit",
    "play_hosts",
    "playbook_dir",
    "q",
    "query",
    "role_name",
    "role_path",
    "undef",
}
ANSIBLE_PREFIXES = ("ansible_", "plumbline_")

# Keywords and arguments whose text is an expression without braces.
EXPRESSIONS = frozenset(("when", "that", "until", "changed_when", "failed_when"))

ROLE_CALLS = frozenset(("ansible.builtin.include_role", "ansible.builtin.import_role"))

_ENVIRONMENT = jinja2.Environment(extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"])


class _Loader(yaml.SafeLoader):
    """Reads YAML; values with Ansible's own tags are of no interest here and read as null."""


_Loader.add_multi_constructor("!", lambda loader, suffix, node: None)


@dataclass
class Role:
    """One role, read."""

    name: str
    path: Path
    defaults: dict[str, Any] = field(default_factory=dict)
    options: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Options of all entry points together, by name."""

    def source(self, path: Path) -> str:
        """Return the name under which a file of the role is reported."""
        return str(path.relative_to(self.path.parents[1]))

    def documents(self, directory: str) -> Iterator[tuple[Path, Any]]:
        """Yield the YAML files of one of the role's directories with their contents."""
        for path in sorted((self.path / directory).rglob("*.yml")):
            yield path, load(path)


def load(path: Path) -> Any:
    """Return the contents of a YAML file."""
    # A loader derived from SafeLoader, which makes plain values only.
    return yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)


def read_role(path: Path) -> Role:
    """Read a role's defaults and options; what is missing reads as empty and is reported by check_files."""
    role = Role(name=path.name, path=path)
    if (path / "defaults/main.yml").is_file():
        role.defaults = load(path / "defaults/main.yml") or {}
    if (path / "meta/argument_specs.yml").is_file():
        specs = (load(path / "meta/argument_specs.yml") or {}).get("argument_specs", {})
        for entry_point in specs.values():
            role.options.update(entry_point.get("options") or {})
    return role


def check(checkout: Path) -> list[str]:
    """Return the findings for all roles and playbooks of a checkout, sorted."""
    roles = {path.name: read_role(path) for path in sorted((checkout / "roles").iterdir()) if path.is_dir()}
    findings: list[str] = []
    for role in roles.values():
        findings += check_files(role)
        findings += check_defaults(role)
        findings += check_names(role)
        for path, tasks in role.documents("tasks"):
            findings += check_calls(role.source(path), tasks, roles)
    for path in sorted((checkout / "playbooks").glob("*.yml")):
        findings += check_calls(str(path.relative_to(checkout)), load(path), roles)
    findings += check_action_group(checkout)
    return sorted(findings)


def check_action_group(checkout: Path) -> Iterator[str]:
    """Yield a finding for each module that module_defaults cannot reach through the group C(all), and for names without a module."""
    listed = set(load(checkout / "meta/runtime.yml").get("action_groups", {}).get("all", ()))
    modules = {path.stem for path in (checkout / "plugins/modules").glob("*.py")}
    for name in modules - listed:
        yield f"meta/runtime.yml: {name}: a module that the action group 'all' does not list; add it"
    for name in listed - modules:
        yield f"meta/runtime.yml: {name}: listed in the action group 'all', but there is no such module; remove it"


def check_files(role: Role) -> Iterator[str]:
    """Yield a finding for each file that every role must have."""
    for name in REQUIRED_FILES:
        if not (role.path / name).is_file():
            yield f"roles/{role.name}/{name}: missing; every role has one, add it"


def check_defaults(role: Role) -> Iterator[str]:
    """Yield a finding for each option whose default is not the same in both places, and for names without the role's prefix."""
    where = f"roles/{role.name}/defaults/main.yml"
    for name, option in role.options.items():
        if not name.startswith(f"{role.name}_"):
            yield f"roles/{role.name}/meta/argument_specs.yml: {name}: lacks the prefix {role.name}_; rename it"
        if option.get("required", False):
            if name in role.defaults:
                yield f"{where}: {name}: is required by meta/argument_specs.yml; remove the default or the 'required'"
        elif name not in role.defaults:
            yield f"{where}: {name}: missing; add it with the spec's default, {option.get('default')!r}"
        elif not same(role.defaults[name], option.get("default")):
            yield (
                f"{where}: {name}: is {role.defaults[name]!r} here and {option.get('default')!r} in meta/argument_specs.yml; "
                "make them equal"
            )
    for name in role.defaults.keys() - role.options.keys():
        yield f"{where}: {name}: not declared; add it to the options in meta/argument_specs.yml, or move a constant to vars/"


def same(first: object, second: object) -> bool:
    """Tell whether two values are equal and of one type, so that true is not 1."""
    return type(first) is type(second) and first == second


def check_names(role: Role) -> Iterator[str]:
    """Yield a finding for each variable that is used and declared nowhere, and for each option that nothing uses."""
    known = set(role.options) | set(role.defaults)
    used: dict[str, str] = {}
    for directory in ("tasks", "handlers", "vars", "defaults"):
        for path, document in role.documents(directory):
            known |= set(definitions(document))
            if directory == "vars" and isinstance(document, dict):
                known |= set(document)
            for name in names_in(document):
                used.setdefault(name, role.source(path))
    for path in sorted((role.path / "templates").rglob("*.j2")):
        for name in template_names(path.read_text(encoding="utf-8")):
            used.setdefault(name, role.source(path))
    for name, where in used.items():
        if name not in known and name not in ANSIBLE_NAMES and not name.startswith(ANSIBLE_PREFIXES):
            yield (
                f"{where}: {name}: used and declared nowhere in the role; declare it as an option {role.name}_… in "
                "meta/argument_specs.yml and defaults/main.yml, or take it from the plan"
            )
    for name in role.options.keys() - used.keys():
        yield f"roles/{role.name}/meta/argument_specs.yml: {name}: nothing in the role uses it; use it or remove it"


def definitions(node: object) -> Iterator[str]:
    """Yield the names that tasks define: registered, set as facts, given as vars, loop variables."""
    if isinstance(node, list):
        for item in node:
            yield from definitions(item)
    elif isinstance(node, dict):
        if isinstance(node.get("register"), str):
            yield node["register"]
        for key in ("vars", "ansible.builtin.set_fact"):
            if isinstance(node.get(key), dict):
                yield from node[key]
        loop = node.get("loop_control")
        if isinstance(loop, dict):
            yield from (loop[key] for key in ("loop_var", "index_var") if key in loop)
        for value in node.values():
            yield from definitions(value)


def names_in(node: object, key: object = None) -> Iterator[str]:
    """Yield the variable names in all templates and expressions below a YAML node; I(key) is the node's own key."""
    if isinstance(node, dict):
        for name, value in node.items():
            yield from names_in(value, name)
    elif isinstance(node, list):
        for item in node:
            yield from names_in(item, key)
    elif isinstance(node, str):
        if key in EXPRESSIONS and "{{" not in node:
            yield from template_names("{{ (" + node + ") }}")
        elif "{{" in node or "{%" in node:
            yield from template_names(node)


def template_names(text: str) -> set[str]:
    """Return the names that a template reads, less those that it sets itself and Jinja's own functions."""
    names = list(_ENVIRONMENT.parse(text).find_all(jinja2.nodes.Name))
    read = {name.name for name in names if name.ctx == "load"}
    return read - {name.name for name in names if name.ctx != "load"} - _ENVIRONMENT.globals.keys()


def check_calls(where: str, node: object, roles: dict[str, Role]) -> Iterator[str]:
    """Yield a finding for each argument passed to a role of the collection that its specs do not declare, or that is left out."""
    for name, arguments in calls(node):
        role = roles.get(name.removeprefix(f"{COLLECTION}."))
        if role is None:
            yield f"{where}: {name}: no such role; the roles are {', '.join(sorted(roles))}"
            continue
        own = [argument for argument in arguments if argument.startswith(f"{role.name}_")]
        for argument in own:
            if argument not in role.options:
                yield f"{where}: {argument}: passed to the role {role.name}, which declares no such option"
        for option, spec in role.options.items():
            if spec.get("required", False) and option not in own:
                yield f"{where}: {option}: required by the role {role.name} and not passed where it is called"


def calls(node: object) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield the roles that tasks and plays call, with the names of the variables given to them."""
    if isinstance(node, list):
        for item in node:
            yield from calls(item)
    elif isinstance(node, dict):
        for key in ROLE_CALLS & node.keys():
            yield node[key]["name"], tuple(node.get("vars") or ())
        for role in node.get("roles") or ():
            entry = role if isinstance(role, dict) else {"role": role}
            yield entry["role"], (*(entry.get("vars") or ()), *(node.get("vars") or ()))
        for key in ("tasks", "pre_tasks", "post_tasks", "block", "rescue", "always"):
            yield from calls(node.get(key))


def main(arguments: list[str]) -> int:
    """Check the checkout that is named, or the one that this file lies in; return the exit status."""
    checkout = Path(arguments[0]) if arguments else Path(__file__).resolve().parents[2]
    findings = check(checkout)
    print("\n".join(findings) if findings else "specs, defaults and tasks of all roles agree")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
