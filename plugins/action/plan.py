# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs M(plumbline.sglang.plan) on the controller: reads the inventory and the lock files, and leaves the rest to module_utils."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Callable

from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.module_utils.common.text.converters import to_text
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.plumbline.sglang.plugins.module_utils.planning import table as plan_table
from ansible_collections.plumbline.sglang.plugins.module_utils.planning.findings import ERROR, concerned
from ansible_collections.plumbline.sglang.plugins.module_utils.planning.findings import to_text as finding_text
from ansible_collections.plumbline.sglang.plugins.module_utils.planning.instances import HostInput
from ansible_collections.plumbline.sglang.plugins.module_utils.planning.plan import build_plan, seal
from ansible_collections.plumbline.sglang.plugins.module_utils.planning.render import render
from ansible_collections.plumbline.sglang.plugins.module_utils.planning.schema import BY_NAME, LOCK_VARIABLES, PREFIX

display = Display()

_LAUNCHER = os.path.join(os.path.dirname(__file__), "..", "..", "roles", "instance", "files", "launch.py")


class ActionModule(ActionBase):
    """Once for all hosts: the inventory as a plan, as a fact on each of them."""

    BYPASS_HOST_LOOP = True
    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validated, options = self.validate_argument_spec(
            argument_spec={
                "fail_on": {"type": "str", "choices": ["error", "never"], "default": "error"},
                "show": {"type": "str", "choices": ["none", "table", "json"], "default": "none"},
            }
        )
        task_vars = task_vars or {}
        self._require_run_once(task_vars)

        hosts, locks = self._inventory(task_vars)
        with open(_LAUNCHER, encoding="utf-8") as file:
            plan = build_plan(hosts, locks, file.read())
        for entry in plan["instances"]:
            entry["render"] = render(entry)
        plan = seal(plan)

        errors = [item for item in plan["findings"] if item["level"] == ERROR]
        warnings = [item for item in plan["findings"] if item["level"] != ERROR]
        table = plan_table.to_text(plan)
        result["changed"] = False
        if options["show"] == "none":
            result["warnings"] = [finding_text(item).removeprefix("WARNING ") for item in warnings]
        else:
            display.display(table if options["show"] == "table" else json.dumps(plan, indent=2, sort_keys=True))
        if errors and options["fail_on"] == ERROR:
            text = "\n\n".join(finding_text(item) for item in errors)
            display.display(f"\n{text}\n", color="red", stderr=True)
            where = concerned(errors, plan["hosts"])
            result.update(
                failed=True,
                msg=f"the inventory has {len(errors)} error(s), listed above; no host was touched. Concerned: {', '.join(where)}",
            )
            return result
        result.update(plan=plan, table=table, ansible_facts={"plumbline_plan": plan})
        return result

    def _require_run_once(self, task_vars: Mapping[str, Any]) -> None:
        """Without run_once ansible-core sets the fact on the first host of the play alone, although the task runs once."""
        if not self._task.run_once and len(task_vars.get("ansible_play_hosts", [])) > 1:
            raise AnsibleActionFail(
                "plumbline.sglang.plan runs once for all hosts and sets its fact on each of them: ansible-core does the latter "
                "only for a task with run_once. Add 'run_once: true' to the task."
            )

    def _inventory(self, task_vars: Mapping[str, Any]) -> tuple[dict[str, HostInput], dict[str, str]]:
        """Every host of the inventory with its own variables, whatever --limit says, and the texts of their lock files."""
        hostvars = task_vars["hostvars"]
        hosts: dict[str, HostInput] = {}
        locks: dict[str, str] = {}
        for name in hostvars:
            # raw_get gives the variables of the inventory and of the command line as that host sees them, without hostvars.
            values = {**hostvars.raw_get(name), "hostvars": hostvars, "groups": task_vars["groups"]}
            template = self._templar.copy_with_new_env(available_variables=values).template
            variables, errors = {}, {}
            for variable in sorted(str(key) for key in values if str(key).startswith(PREFIX)):
                try:
                    variables[variable] = _plain(template(values[variable]))
                except AnsibleError as error:
                    secret = variable not in BY_NAME or BY_NAME[variable].secret
                    errors[variable] = "the template fails (its text is not shown)" if secret else to_text(error).strip()
            files = {}
            for variable in LOCK_VARIABLES:
                path = variables.get(variable)
                if isinstance(path, str) and path:
                    found = self._find(path, values)
                    if found is not None:
                        files[variable] = found
                        locks.setdefault(found, _read(found))
            hosts[name] = HostInput(
                name=str(name),
                groups=tuple(str(group) for group in values.get("group_names", [])),
                variables=variables,
                errors=errors,
                ansible_host=_address(values, template),
                files=files,
            )
        return hosts, locks

    def _find(self, path: str, values: Mapping[str, Any]) -> str | None:
        """The file that a path of the inventory means: beside the inventory, beside the playbook, or in a ``files/`` there."""
        if path.startswith(("/", "~")):
            candidates = [os.path.expanduser(path)]
        else:
            bases = [values.get("inventory_dir"), self._loader.get_basedir(), values.get("playbook_dir")]
            candidates = [os.path.join(str(base), *middle, path) for base in bases if base for middle in ((), ("files",))]
        return next((os.path.realpath(item) for item in candidates if os.path.isfile(item)), None)


def _address(values: Mapping[str, Any], template: Callable[[Any], Any]) -> str | None:
    try:
        return str(template(values["ansible_host"])) if "ansible_host" in values else None
    except AnsibleError:
        return None  # it would fail in the play as well; here the inventory name is reported as the address


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise AnsibleActionFail(f"the lock file {path} cannot be read: {error}") from error


def _plain(value: Any) -> Any:
    """The value in Python's own types: what Ansible knows about its origin stays behind."""
    if isinstance(value, Mapping):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, bool) or value is None:
        return value
    for kind in (int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return to_text(value)
