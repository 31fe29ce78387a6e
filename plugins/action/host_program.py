# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packs the program on the controller and leaves the rest to ansible.builtin.copy, as ansible.builtin.template does."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.plumbline.sglang.plugins.module_utils.program import archive

display = Display()

_COLLECTION = os.path.join(os.path.dirname(__file__), "..", "..")


class ActionModule(ActionBase):
    """The archive is the same for all hosts; it is made for each, since that takes less than a tenth of a second."""

    TRANSFERS_FILES = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        super().run(tmp, task_vars)
        _validated, options = self.validate_argument_spec(argument_spec={"dest": {"type": "path", "required": True}})
        with tempfile.TemporaryDirectory() as directory:
            source = os.path.join(directory, archive.FILE)
            with open(source, "wb") as file:
                file.write(archive.build(os.path.join(_COLLECTION, "plugins", "module_utils"), _version()))
            copy = self._task.copy()
            copy.args = {"src": source, "dest": options["dest"], "owner": "root", "group": "root", "mode": "0755"}
            action = self._shared_loader_obj.action_loader.get(
                "ansible.legacy.copy",
                task=copy,
                connection=self._connection,
                play_context=self._play_context,
                loader=self._loader,
                templar=self._templar,
                shared_loader_obj=self._shared_loader_obj,
            )
            copy.diff = False  # a zip archive says nothing to people
            result: dict[str, Any] = action.run(task_vars=task_vars)
        return result


def _version() -> str:
    """The collection's version: in galaxy.yml of a checkout, in MANIFEST.json of what was installed."""
    for name, mark in (("galaxy.yml", "version: "), ("MANIFEST.json", '"version": "')):
        path = os.path.join(_COLLECTION, name)
        if os.path.isfile(path):
            with open(path, encoding="utf-8") as file:
                found = next((line.partition(mark)[2].strip(' ",\n') for line in file if mark in line), "")
            if found:
                return found
    return "unknown"
