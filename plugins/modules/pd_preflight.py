# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: pd_preflight
short_description: Check a host before anything is put on it
version_added: 0.1.0
author: plumbline.sglang contributors (@plumbline-sglang)
description:
  - Looks at everything that the plan expects of a host and reports all of it together. Changes nothing.
  - Every finding falls into one of four buckets. V(problem) must be mended first. V(clean) was checked and is as it should be. V(inconclusive) does
    not decide, or is put right by the roles that follow. V(unchecked) could not be asked. What could not be asked never counts as clean.
options:
  host:
    description: The plan's view of this host, as in C(plumbline_plan.hosts) (C(address), C(releases), C(models), C(numa)).
    type: dict
    required: true
  instances:
    description: Entries of the plan for this host.
    type: list
    elements: dict
    default: []
  service_user:
    description: User that the instances run as. Models must be readable by it.
    type: str
    default: sglang
  checks:
    description: Names of the checks to run. Empty means all of them.
    type: list
    elements: str
    default: []
    choices: [root, systemd, address, numa, gpus, ports, executable, interpreter, libraries, imports, flags, models, space]
  fail_on_problem:
    description: Fail when there is a problem, with all findings in the message.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
    description: Reads only.
  diff_mode:
    support: none
    description: Changes nothing.
seealso:
  - module: plumbline.sglang.plan
  - module: plumbline.sglang.release
  - module: plumbline.sglang.model_snapshot
"""

EXAMPLES = r"""
- name: Check this host
  plumbline.sglang.pd_preflight:
    host: "{{ ansible_facts.plumbline_plan.hosts[inventory_hostname] }}"
    instances: "{{ ansible_facts.plumbline_plan | plumbline.sglang.entries(inventory_hostname) }}"
    fail_on_problem: true
"""

RETURN = r"""
findings:
  description: Everything that was checked, in the order of the checks.
  returned: when the options are right
  type: list
  elements: dict
  contains:
    check:
      description: Name of the check.
      type: str
      returned: always
      sample: libraries
    bucket:
      description: V(problem), V(inconclusive), V(unchecked) or V(clean).
      type: str
      returned: always
      sample: inconclusive
    seen:
      description: What was seen on the host.
      type: str
      returned: always
      sample: "missing: libibverbs.so.1"
    expected:
      description: What was expected.
      type: str
      returned: always
    next:
      description: What to do next. Empty where nothing is to be done.
      type: str
      returned: always
problems:
  description: How many findings are a V(problem).
  returned: when the options are right
  type: int
  sample: 0
packages:
  description: System packages that are missing and would be put right by installing them, by their names in this distribution.
  returned: when the options are right
  type: list
  elements: str
  sample: [libibverbs1, librdmacm1]
report:
  description: The findings that are not clean, as text for people.
  returned: when the options are right
  type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.plumbline.sglang.plugins.module_utils.preflight.parameters import wrong
from ansible_collections.plumbline.sglang.plugins.module_utils.preflight.preflight import CHECKS, run
from ansible_collections.plumbline.sglang.plugins.module_utils.preflight.types import PROBLEM, Context


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "host": {"type": "dict", "required": True},
            "instances": {"type": "list", "elements": "dict", "default": []},
            "service_user": {"type": "str", "default": "sglang"},
            "checks": {"type": "list", "elements": "str", "default": [], "choices": list(CHECKS)},
            "fail_on_problem": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    params = module.params
    bad = wrong(params["host"], params["instances"], params["checks"] or CHECKS)
    if bad:
        module.fail_json(msg="nothing was checked: " + "; ".join(bad) + ". Take host and instances from the plan.")
    report = run(Context(params["host"], params["instances"], params["service_user"]), params["checks"], CHECKS)
    problems = len(report.of(PROBLEM))
    result = {
        "findings": report.findings,
        "problems": problems,
        "packages": report.packages,
        "report": report.text(params["host"].get("address") or "this host"),
    }
    if problems and params["fail_on_problem"]:
        module.fail_json(msg=result["report"], **result)
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
