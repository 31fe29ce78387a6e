# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs as an instance now, and whether it has to be started or restarted to be what the plan rendered. Pure.

A changed file says little: the run that changed it may have been killed before the restart. What counts is the digest
that the running main process carries in its environment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..host.systemd import UnitState
from ..planning.render import DIGEST_VARIABLE


def judge(state: UnitState, environment: Mapping[str, str] | None, digest: str) -> dict[str, Any]:
    """Compare a unit with the digest of its rendered set.

    ``environment`` is that of the main process, None where there is none or it could not be read. The result's
    ``needed_state`` is what C(ansible.builtin.systemd_service) has to be given: ``started`` (which leaves a running unit
    alone) or ``restarted``.
    """
    running = (environment or {}).get(DIGEST_VARIABLE, "")
    needed, reason = "restarted", ""
    if state.active_state == "active" and running == digest:
        needed, reason = "started", "the running process carries the digest of this rendered set"
    elif state.active_state == "active" and environment is None:
        reason = "the environment of the running process could not be read, so nothing shows what it was started from"
    elif state.active_state == "active":
        reason = f"the running process was started from {'rendered set ' + running[:12] if running else 'something that was not rendered'}"
    elif state.active_state in ("activating", "reloading", "deactivating"):
        reason = f"the unit is {state.state}: a fresh invocation is needed to judge it"
    else:
        needed, reason = "started", f"the unit is {state.state}"
    return {
        "load_state": state.load_state,
        "active_state": state.active_state,
        "sub_state": state.sub_state,
        "invocation": state.invocation_id,
        "main_pid": state.main_pid,
        "running_render": running,
        "need_daemon_reload": state.need_daemon_reload or state.load_state != "loaded",
        "needed_state": needed,
        "reason": reason,
    }


def holes(entries: Iterable[Mapping[str, Any]]) -> list[str]:
    """What the entries lack, as text; empty where each can be looked at."""
    lines = []
    for number, entry in enumerate(entries):
        name = entry.get("instance") or f"instances[{number}]"
        lines += [f"{name}: {key} is missing" for key in ("instance", "unit") if not isinstance(entry.get(key), str) or not entry[key]]
        render = entry.get("render")
        if not isinstance(render, Mapping) or not isinstance(render.get("digest"), str):
            lines.append(f"{name}: render.digest is missing")
    return lines
