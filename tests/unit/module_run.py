# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module's whole run in this process, as Ansible would start it: its options in, the JSON that it prints out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args


def answer_of(module: Any, options: Mapping[str, Any], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What ``module.main()`` answers to these options. None of the modules that are tested so ever changes anything."""
    with patch_module_args(dict(options)), pytest.raises(SystemExit):
        module.main()
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert not answer.get("changed")
    return answer
