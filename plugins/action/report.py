# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs M(plumbline.sglang.report) on the controller; the text itself is made by module_utils/report.py."""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.plumbline.sglang.plugins.module_utils import report

display = Display()


class ActionModule(ActionBase):
    """Once for all hosts: what they registered, as one table."""

    BYPASS_HOST_LOOP = True
    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validated, options = self.validate_argument_spec(
            argument_spec={
                "verdicts": {"type": "list", "elements": "str", "default": ["plumbline_engine_verdicts", "plumbline_router_verdicts"]},
                "canaries": {"type": "str", "default": "plumbline_canaries"},
                "roles": {"type": "list", "elements": "str", "choices": ["prefill", "decode", "router"]},
                "quiet_when_ready": {"type": "bool", "default": False},
                "complete": {"type": "bool", "default": False},
                "file": {"type": "path"},
            }
        )
        task_vars = task_vars or {}
        hostvars = task_vars["hostvars"]
        plan = (task_vars.get("ansible_facts") or {}).get("plumbline_plan")
        if not plan:
            raise AnsibleActionFail("the fact plumbline_plan is missing. Run plumbline.sglang.plan (run_once: true) before plumbline.sglang.report")
        entries = [entry for entry in plan["instances"] if not options["roles"] or entry["role"] in options["roles"]]
        verdicts, canaries = [], []
        for host in plan["hosts"]:
            known = hostvars.get(host, {})
            for name in options["verdicts"]:
                verdicts += [{**item, "host": host} for item in known.get(name, {}).get("instances", [])]
            if options["canaries"] in known:
                registered = known[options["canaries"]]
                found = registered.get("results", [registered])
                canaries += [item for item in found if "reply" in item]
        table = report.rows(entries, verdicts, task_vars.get("ansible_play_hosts_all", []) if options["complete"] else [])
        failed = report.failed(table)
        text = "\n".join(part for part in (report.table_text(table), report.details_text(table), *map(report.canary_text, canaries)) if part)
        if failed or not options["quiet_when_ready"]:
            display.display("\n" + text + "\n")
        if options["file"]:
            self._write(options["file"], {"plan": plan["digest"], "ready": not failed, "instances": table, "canaries": canaries})
        if failed:
            # Nothing but the message: the callback would print every other key below it, and the end is where people look.
            return {"changed": False, "failed": True, "msg": report.failure_text(table)}
        result.update(changed=False, instances=table, canaries=canaries, text=text)
        return result

    def _write(self, path: str, content: dict[str, Any]) -> None:
        """The same as data, on the controller: whole or not at all."""
        target = self._loader.path_dwim(path)
        try:
            with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=os.path.dirname(target), delete=False) as file:
                json.dump(content, file, indent=1)
            os.replace(file.name, target)
        except OSError as error:
            raise AnsibleActionFail(f"the report cannot be written to {target}: {error.strerror}. Give a file in a directory that exists.") from None
