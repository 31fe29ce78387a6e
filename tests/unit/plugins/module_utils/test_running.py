# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When an instance has to be started, restarted or left alone."""

from __future__ import annotations

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.host.systemd import UnitState
from ansible_collections.plumbline.sglang.plugins.module_utils.readiness.running import judge

DIGEST, OTHER = "a" * 64, "b" * 64


def a_unit(active: str, sub: str = "running") -> UnitState:
    return UnitState("x.service", load_state="loaded", active_state=active, sub_state=sub, invocation_id="i" * 32, main_pid=7)


@pytest.mark.parametrize(
    ("active", "sub", "environment", "needed", "reason"),
    [
        ("active", "running", {"PLUMBLINE_RENDER": DIGEST}, "started", "carries the digest"),
        ("active", "running", {"PLUMBLINE_RENDER": OTHER}, "restarted", "rendered set " + OTHER[:12]),
        ("active", "running", {}, "restarted", "not rendered"),
        ("active", "running", None, "restarted", "could not be read"),
        ("inactive", "dead", None, "started", "inactive/dead"),
        ("failed", "failed", None, "started", "failed/failed"),
        ("activating", "auto-restart", None, "restarted", "activating/auto-restart"),
    ],
)
def test_what_is_needed(active: str, sub: str, environment: dict[str, str] | None, needed: str, reason: str) -> None:
    result = judge(a_unit(active, sub), environment, DIGEST)
    assert result["needed_state"] == needed
    assert reason in result["reason"]


def test_a_unit_that_is_not_installed_wants_a_reload_and_a_start() -> None:
    result = judge(UnitState("x.service"), None, DIGEST)
    assert (result["load_state"], result["needed_state"], result["need_daemon_reload"]) == ("not-found", "started", True)
