# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: instance_info
short_description: What runs as an SGLang instance, and whether it is what the plan rendered
version_added: 0.1.0
author: plumbline.sglang contributors (@plumbline-sglang)
description:
  - Asks systemd for the unit of each instance and reads the digest of the rendered set (E(PLUMBLINE_RENDER)) from the environment of its main
    process. Changes nothing.
  - A unit that is not installed is a result and not an error, so that check mode works on an empty host.
options:
  instances:
    description: Entries of the plan for this host, as returned by M(plumbline.sglang.plan).
    type: list
    elements: dict
    required: true
attributes:
  check_mode:
    support: full
    description: Reads only.
  diff_mode:
    support: none
    description: Changes nothing.
requirements:
  - systemd on the host
  - root, to see the environment of another user's process
seealso:
  - module: plumbline.sglang.plan
  - module: plumbline.sglang.wait_for_sglang_ready
"""

EXAMPLES = r"""
- name: Which instances of this host do not run what the plan rendered?
  plumbline.sglang.instance_info:
    instances: "{{ ansible_facts.plumbline_plan | plumbline.sglang.entries(inventory_hostname) }}"
  register: running
"""

RETURN = r"""
instances:
  description: One element per entry, in the order given.
  returned: success
  type: list
  elements: dict
  contains:
    instance:
      description: The name of the instance.
      type: str
      returned: always
    unit:
      description: Its systemd unit.
      type: str
      returned: always
    load_state:
      description: systemd's load state, for example V(loaded) or V(not-found).
      type: str
      returned: always
    active_state:
      description: systemd's active state, for example V(active) or V(failed).
      type: str
      returned: always
    sub_state:
      description: systemd's sub state, for example V(running) or V(auto-restart).
      type: str
      returned: always
    invocation:
      description: The InvocationID of the current or last run; empty where it has not run since the host booted.
      type: str
      returned: always
    main_pid:
      description: PID of the main process; 0 where there is none.
      type: int
      returned: always
    running_render:
      description: The digest that the main process carries; empty where there is none.
      type: str
      returned: always
    need_daemon_reload:
      description: Whether systemd has to read its units again before it starts this one.
      type: bool
      returned: always
    needed_state:
      description: What C(ansible.builtin.systemd_service) has to be given so that the rendered set runs.
      type: str
      returned: always
    reason:
      description: Why.
      type: str
      returned: always
"""

import os

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.host import procfs, systemd
from ..module_utils.readiness.running import holes, judge


def main() -> None:
    """Ask for each entry in turn."""
    module = AnsibleModule(argument_spec={"instances": {"type": "list", "elements": "dict", "required": True}}, supports_check_mode=True)
    bad = holes(module.params["instances"])
    if bad:
        module.fail_json(msg=f"nothing was looked at: {'; '.join(bad)}. Expected: entries of the plan (plumbline_plan.instances).")
    found = []
    for entry in module.params["instances"]:
        try:
            state = systemd.show(entry["unit"])
        except systemd.SystemdError as error:
            module.fail_json(
                msg=f"{entry['unit']}: systemd could not be asked: {error}. Instances are systemd services: "
                "this host must be booted with systemd, and the module must run as root (become)."
            )
        environment = None
        if state.main_pid:
            try:
                environment = procfs.environment_of(state.main_pid)
            except OSError as error:
                # A run that shows nothing of its origin would be restarted, which a want of rights is no reason for.
                if isinstance(error, PermissionError) and os.geteuid() != 0:
                    module.fail_json(
                        msg=f"{entry['unit']}: user id {os.geteuid()} may not read the environment of its main process (PID {state.main_pid}), so "
                        "nothing shows what it was started from. Expected: root. Next: run the module as root (become)."
                    )
        found.append({"instance": entry["instance"], "unit": entry["unit"], **judge(state, environment, entry["render"]["digest"])})
    module.exit_json(changed=False, instances=found)


if __name__ == "__main__":
    main()
