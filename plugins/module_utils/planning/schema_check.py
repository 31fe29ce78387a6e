# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ``sglang_*`` variables of one host against the schema: checked values with defaults, and every finding at once.

A value that is refused is reported and then replaced by its default, so that the rest of the plan can still be checked.
Pure; imports nothing from ansible.
"""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Iterable, Mapping
from typing import Any, Callable

from .findings import Findings, shown
from .schema import BY_NAME, PREFIX, Option

NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*\Z")
_INTEGER_PATTERN = re.compile(r"-?\d+\Z")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_BOOLEANS = {"true": True, "yes": True, "false": False, "no": False}
_REFUSED = object()


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that ``name`` was probably meant to be, or None."""
    bare = {_bare(item): item for item in known}
    matches = difflib.get_close_matches(_bare(name), list(bare), n=1, cutoff=0.6)
    return bare[matches[0]] if matches else None


def _bare(name: str) -> str:
    """Without the prefix that all variables share: it would make everything look alike."""
    return name[len(PREFIX) :] if name.startswith(PREFIX) else name


class Checker:
    """Checks values of one host; ``where`` is what findings name."""

    def __init__(self, findings: Findings, where: str) -> None:
        self._findings = findings
        self._where = [where]

    def variables(self, variables: Mapping[str, Any], errors: Mapping[str, str]) -> dict[str, Any]:
        """Every known variable with its checked value or its default.

        ``errors`` holds the variables whose template failed, with the reason; they get their default.
        """
        for name, reason in sorted(errors.items()):
            self._wrong("template", f"{name} cannot be templated: {reason}", "a value that templates on this host", f"mend {name}")
        for name in sorted(set(variables) - set(BY_NAME)):
            self._unknown(name, "", BY_NAME)
        checked = {}
        for name, option in BY_NAME.items():
            checked[name] = self.value(option, variables.get(name), name, given=name in variables)
        return checked

    def value(self, option: Option, value: Any, path: str, given: bool = True) -> Any:
        """The checked value of one option, its default where it is absent or refused. ``path`` is how findings name it."""
        if not given or (value is None and not option.nullable and option.default is None):
            return self._default(option, path)
        if value is None:
            if option.nullable:
                return None
            self._mistyped(option, value, path, "a value; leave it out for the default " + shown(option.default))
            return self._default(option, path)
        result = _KINDS[option.kind](self, option, value, path)
        if result is _REFUSED:
            return self._default(option, path)
        if option.choices and result not in option.choices:
            expected = "one of " + ", ".join(option.choices)
            hint = nearest(str(result), option.choices)
            self._wrong("choice", f"{path} is {shown(result)}", expected, f"set {path} to {hint or option.choices[0]}")
            return self._default(option, path)
        return result

    def _default(self, option: Option, path: str) -> Any:
        if option.kind == "options":
            return self._options(option, {}, path)
        if option.kind in ("args", "env", "numa", "named"):
            return {}
        return option.default

    def _wrong(self, rule: str, seen: str, expected: str, next_step: str) -> Any:
        self._findings.error(rule, self._where, seen, expected, next_step)
        return _REFUSED

    def _mistyped(self, option: Option, value: Any, path: str, expected: str) -> Any:
        # What stands where a mapping or a list belongs may hold anything, a key too: only its type is shown.
        hidden = option.secret or option.kind in ("args", "env", "instances", "named", "options") or isinstance(value, (Mapping, list))
        seen = f"{path} is of type {type(value).__name__}" if hidden else f"{path} is {shown(value)} ({_type(value)})"
        return self._wrong("type", seen, expected, f"correct {path}")

    def _unknown(self, name: str, path: str, known: Iterable[str]) -> None:
        hint = nearest(name, known)
        place = f" in {path}" if path else ""
        kind = "key" if path else "variable"
        every = "one of " + ", ".join(sorted(known)) if path else "a variable of docs/variables.md"
        expected = f"{hint!r}, the nearest known name" if hint else every
        next_step = f"rename {name}{place} to {hint}" if hint else f"remove {name}{place}"
        self._findings.error(f"unknown-{kind}", self._where, f"unknown {kind} {name!r}{place}", expected, next_step)

    def _string(self, option: Option, value: Any, path: str) -> Any:
        if not isinstance(value, str) or not value or value != value.strip() or "\n" in value:
            return self._mistyped(option, value, path, "a string that is not empty, without line breaks or blanks around it")
        return value

    def _name(self, option: Option, value: Any, path: str) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str) or not NAME_PATTERN.match(value):
            return self._mistyped(option, value, path, "letters, digits, '_', '.', '-', beginning with a letter or digit")
        return value

    def _version(self, option: Option, value: Any, path: str) -> Any:
        if not isinstance(value, str) or not re.match(r"\d[A-Za-z0-9.!+_-]*\Z", value):
            return self._mistyped(option, value, path, "a version as a quoted string, such as '0.5.23'")
        return value

    def _integer(self, option: Option, value: Any, path: str) -> Any:
        if isinstance(value, str) and _INTEGER_PATTERN.match(value):
            value = int(value)  # what --extra-vars name=value gives
        if not isinstance(value, int) or isinstance(value, bool):
            return self._mistyped(option, value, path, "an integer")
        return value

    def _boolean(self, option: Option, value: Any, path: str) -> Any:
        if isinstance(value, str) and value.lower() in _BOOLEANS:
            value = _BOOLEANS[value.lower()]  # what --extra-vars name=value gives
        if not isinstance(value, bool):
            return self._mistyped(option, value, path, "true or false")
        return value

    def _port(self, option: Option, value: Any, path: str) -> Any:
        number = self._integer(option, value, path)
        if number is not _REFUSED and not 1 <= number <= 65535:
            return self._mistyped(option, value, path, "a port from 1 to 65535")
        return number

    def _seconds(self, option: Option, value: Any, path: str) -> Any:
        number = self._integer(option, value, path)
        if number is not _REFUSED and number < 1:
            return self._mistyped(option, value, path, "a number of seconds, at least 1")
        return number

    def _path(self, option: Option, value: Any, path: str) -> Any:
        if not isinstance(value, str) or not value.startswith("/") or "\n" in value:
            return self._mistyped(option, value, path, "an absolute path")
        return posixpath.normpath(value)

    def _interpreter(self, option: Option, value: Any, path: str) -> Any:
        return value if value == "auto" else self._path(option, value, path)

    def _integers(self, option: Option, value: Any, path: str) -> Any:
        if not isinstance(value, list) or not all(isinstance(item, int) and not isinstance(item, bool) and item >= 0 for item in value):
            return self._mistyped(option, value, path, "a list of integers from 0, such as [0, 1, 2, 3]")
        if len(set(value)) != len(value):
            return self._mistyped(option, value, path, "each number once")
        return list(value)

    def _numa(self, option: Option, value: Any, path: str) -> Any:
        if not isinstance(value, Mapping):
            return self._mistyped(option, value, path, "a mapping of NUMA node to GPU indices, such as {0: [0, 1], 1: [2, 3]}")
        result = {}
        for node, gpus in value.items():
            if not re.match(r"\d+\Z", str(node)):
                self._wrong(
                    "numa-unknown",
                    f"NUMA node {shown(node)} in {path}",
                    "a node number from 0; -1 is the kernel's word for 'unknown'",
                    f"declare the GPUs of {path} under a real node, or under 0 on a host with one node",
                )
                continue
            checked = self._integers(option, gpus, f"{path}[{node}]")
            if checked is not _REFUSED:
                result[str(node)] = checked
        return result

    def _options(self, option: Option, value: Any, path: str) -> Any:
        if not isinstance(value, Mapping):
            return self._mistyped(option, value, path, "a mapping")
        known = {item.name: item for item in option.options}
        for name in value:
            if str(name) not in known:
                self._unknown(str(name), path, known)
        return {name: self.value(item, value.get(name), f"{path}.{name}", given=name in value) for name, item in known.items()}

    def _named(self, option: Option, value: Any, path: str) -> Any:
        if not isinstance(value, Mapping):
            return self._mistyped(option, value, path, "a mapping of name to settings")
        result = {}
        for name, item in value.items():
            if self._name(option, name, f"the name {name!r} in {path}") is not _REFUSED:
                checked = self._options(option, item, f"{path}.{name}")
                if checked is not _REFUSED:
                    result[str(name)] = checked
        return result

    def _instances(self, option: Option, value: Any, path: str) -> Any:
        if not isinstance(value, list):
            return self._mistyped(option, value, path, "a list of instances")
        checked = [self._options(option, item, f"{path}[{index}]") for index, item in enumerate(value)]
        return [item for item in checked if item is not _REFUSED]

    def _args(self, option: Option, value: Any, path: str) -> Any:
        if not isinstance(value, Mapping):
            return self._mistyped(option, value, path, "a mapping of flag to value, such as {mem-fraction-static: 0.8}")
        return {str(key): item for key, item in value.items()}

    def _env(self, option: Option, value: Any, path: str) -> Any:
        if not isinstance(value, Mapping):
            return self._mistyped(option, value, path, "a mapping of name to value")
        result = {}
        for name, item in value.items():
            if not isinstance(name, str) or not _ENV_NAME.match(name):
                self._wrong("env-name", f"{path} has the name {shown(name)}", "letters, digits and '_'", f"rename it in {path}")
            elif isinstance(item, (Mapping, list)) or (isinstance(item, str) and "\0" in item):
                self._wrong("type", f"{path}.{name} is a {_type(item)}", "a string or number", f"quote the value of {name} in {path}")
            else:
                result[name] = item
        return result


def _type(value: Any) -> str:
    names = {"str": "string", "dict": "mapping", "int": "integer", "bool": "boolean", "NoneType": "null"}
    return names.get(type(value).__name__, type(value).__name__)


_Check = Callable[[Checker, Option, Any, str], Any]
_KINDS: Mapping[str, _Check] = {
    "string": Checker._string,
    "name": Checker._name,
    "version": Checker._version,
    "boolean": Checker._boolean,
    "integer": Checker._integer,
    "port": Checker._port,
    "seconds": Checker._seconds,
    "path": Checker._path,
    "interpreter": Checker._interpreter,
    "controller_path": Checker._path,
    "controller_file": Checker._string,
    "integers": Checker._integers,
    "numa": Checker._numa,
    "options": Checker._options,
    "named": Checker._named,
    "instances": Checker._instances,
    "args": Checker._args,
    "env": Checker._env,
}
