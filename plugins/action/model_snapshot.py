# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verifies a model on a host, or copies it there from the controller."""

from __future__ import annotations

import functools
import os
import time
from typing import Any

from ansible.errors import AnsibleActionFail

from ansible_collections.plumbline.sglang.plugins.module_utils.problem import Problem
from ansible_collections.plumbline.sglang.plugins.module_utils.progress import human_bytes
from ansible_collections.plumbline.sglang.plugins.module_utils.releases.manifest import digest_of
from ansible_collections.plumbline.sglang.plugins.module_utils.snapshots.manifest import is_small
from ansible_collections.plumbline.sglang.plugins.module_utils.snapshots.snapshot import examine
from ansible_collections.plumbline.sglang.plugins.plugin_utils.sending import send
from ansible_collections.plumbline.sglang.plugins.plugin_utils.streaming import StreamingAction


class ActionModule(StreamingAction):
    MODULE = "plumbline.sglang.model_snapshot"

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        model = self._task.args.get("model")
        origin = model.get("copy_from") if isinstance(model, dict) else None
        # What the module's own options say against is said by the module.
        if not origin or not isinstance(origin, str) or not isinstance(model.get("name"), str) or not isinstance(model.get("path"), str):
            return super().run(tmp, task_vars)
        super(StreamingAction, self).run(tmp, task_vars)
        self._vars = dict(task_vars or {})
        directory = self._loader.path_dwim(os.path.expanduser(str(origin)))
        source = self._source(model["name"], directory)
        result = self._part("inspect", source)
        if result.get("ask") and not result.get("failed"):
            source = self._hashed(directory, source, result["ask"])
            result = self._part("inspect", source)
        if result.get("failed") or result.get("current") or self._task.check_mode:
            return _without(result, "ask", "current")
        return self._copy(directory, source)

    def _part(self, phase: str, source: list[dict[str, Any]]) -> dict[str, Any]:
        arguments = dict(self._task.args, phase=phase, source=source)
        return self._retried("", lambda: self._execute_module(module_name=self.MODULE, module_args=dict(arguments), task_vars=self._vars))

    def _source(self, name: str, directory: str) -> list[dict[str, Any]]:
        """The files of the source, small ones with their hashes. An incomplete source is refused before any host is touched."""
        if not os.path.isdir(directory):
            raise AnsibleActionFail(f"model {name}: there is no directory {directory} on the controller (model.copy_from). Next: mend the inventory.")
        verdict = examine(directory)
        if verdict.problems:
            raise AnsibleActionFail(
                str(
                    Problem(
                        f"model {name}: {directory} on the controller is not complete",
                        "\n".join(verdict.problems[:20]),
                        "a complete model directory",
                        "finish or repeat the download there, then run again",
                    )
                )
            )
        return [{**file._asdict(), "sha256": digest_of(os.path.join(directory, file.path)) if is_small(file) else None} for file in verdict.files]

    def _hashed(self, directory: str, source: list[dict[str, Any]], paths: list[str]) -> list[dict[str, Any]]:
        """The source with the hashes of these files too: their size is the host's, their modification time is not."""
        told = [time.monotonic()]

        def beat(path: str, done: int) -> None:
            if time.monotonic() - told[0] >= 5.0:
                told[0] = time.monotonic()
                self.say(f"comparing {path}: {human_bytes(done)} read on the controller")

        return [
            dict(file, sha256=digest_of(os.path.join(directory, file["path"]), functools.partial(beat, file["path"]))) if file["path"] in paths else file
            for file in source
        ]

    def _copy(self, directory: str, source: list[dict[str, Any]]) -> dict[str, Any]:
        plan = self._part("prepare", source)
        if plan.get("failed"):
            return plan
        hashes, began = {}, time.monotonic()
        self.say(f"copying {len(plan['transfers'])} files, {human_bytes(plan['bytes'])}, to {plan['stage']}")
        for one in plan["transfers"]:
            remote = self._connection._shell.join_path(plan["stage"], one["path"])
            hashes[one["path"]] = send(os.path.join(directory, one["path"]), remote, one["size"], one["offset"], self._write, self.say, one["path"])
            if one["size"] >= 1 << 20:
                self.say(f"copied {one['path']}, {human_bytes(one['size'])}")
        self.say(f"copied {human_bytes(plan['bytes'])} in {time.monotonic() - began:.0f} s")
        final = [dict(file, sha256=hashes.get(file["path"], file["sha256"])) for file in source]
        result = self.run_module(dict(self._task.args, phase="finish", source=final))
        return {**result, **({"send": sorted(hashes)} if hashes else {})}

    def _write(self, command: str, data: bytes) -> dict[str, Any]:
        return self._retried("", lambda: self._low_level_execute_command(command, in_data=data))


def _without(result: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in result.items() if key not in keys}
