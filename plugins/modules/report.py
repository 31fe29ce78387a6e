# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: report
short_description: Show the outcome of a deploy per instance, and fail where one is not ready
version_added: 0.1.0
author: plumbline.sglang contributors (@plumbline-sglang)
description:
  - Gathers what M(plumbline.sglang.wait_for_sglang_ready) and M(plumbline.sglang.pd_canary) registered on the hosts of this run and prints one
    line per instance, the last words and the next commands of each that is not ready, and what the canary got back.
  - Runs on the controller, once for all hosts; contacts none.
options:
  verdicts:
    description: The name under which the results of M(plumbline.sglang.wait_for_sglang_ready) were registered on each host.
    type: list
    elements: str
    default: [plumbline_engine_verdicts, plumbline_router_verdicts]
  canaries:
    description: The name under which the results of M(plumbline.sglang.pd_canary) were registered.
    type: str
    default: plumbline_canaries
  roles:
    description: Only instances of these roles; all where none is given.
    type: list
    elements: str
    choices: [prefill, decode, router]
  quiet_when_ready:
    description: Print nothing where every instance that was checked is ready. For a gate in the middle of a play.
    type: bool
    default: false
  complete:
    description:
      - Expect a result of every instance on the hosts of this play. One without is V(INCONCLUSIVE), so that a host which could not be asked is not
        passed over.
    type: bool
    default: false
  file:
    description: A file on the controller to which the outcome is written as JSON, also where the task fails.
    type: path
attributes:
  check_mode:
    support: full
    description: Prints what was observed.
  diff_mode:
    support: none
    description: Changes nothing.
seealso:
  - module: plumbline.sglang.wait_for_sglang_ready
notes:
  - Needs the fact C(plumbline_plan), set by M(plumbline.sglang.plan).
"""

EXAMPLES = r"""
- name: Stop here where an engine is not ready
  plumbline.sglang.report:
    roles: [prefill, decode]
    quiet_when_ready: true
  run_once: true
"""

RETURN = r"""
instances:
  description: One row per instance of the plan.
  returned: success
  type: list
  elements: dict
  contains:
    host:
      description: The inventory name of its host.
      type: str
      returned: always
    instance:
      description: Its name.
      type: str
      returned: always
    unit:
      description: Its systemd unit.
      type: str
      returned: always
    verdict:
      description: V(READY), V(NOT_READY), V(FAILED), V(INCONCLUSIVE), or V(NOT CHECKED) where nothing speaks of it.
      type: str
      returned: always
    reason:
      description: Why, in one sentence.
      type: str
      returned: always
    seconds:
      description: Seconds from the start of the invocation to readiness; null where it is not known.
      type: float
      returned: always
    restarts:
      description: How often systemd has restarted the unit by itself; null where it is not known.
      type: int
      returned: always
    invocation:
      description: The run that the verdict speaks of; empty where it is not known.
      type: str
      returned: always
    signals:
      description: The state of each signal, V(passed), V(pending), V(failed) or V(unknown), by its name.
      type: dict
      returned: always
    resolved:
      description: What the engine resolved for itself, as M(plumbline.sglang.wait_for_sglang_ready) returns it.
      type: dict
      returned: always
    last_lines:
      description: The last lines that this invocation logged.
      type: list
      elements: str
      returned: always
    next:
      description: Commands that lead further.
      type: list
      elements: str
      returned: always
canaries:
  description: The results of the canaries.
  returned: success
  type: list
  elements: dict
text:
  description: What was printed.
  returned: success
  type: str
"""
