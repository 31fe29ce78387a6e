# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: served_model_check
short_description: Check that SGLang servers and routers serve a model under the name asked for
version_added: 0.1.0
author: plumbline.sglang contributors (@plumbline-sglang)
description:
  - Asks each server at C(/v1/models), C(/v1/models/<name>) and C(/model_info), and each router at C(/v1/models) and for the model of each worker at
    C(/workers). All are asked at once.
  - Where every name is right, sends one short completion and reads the name in its reply. Alone that would prove nothing, since the engine echoes
    whatever name was asked for.
  - Names of LoRA adapters may stand beside the name in C(/v1/models).
  - Run it on a host that reaches the servers and has the key file, for example the router's.
options:
  served_name:
    description:
      - The name asked for. It holds no colon; the engine takes what is behind one for a LoRA adapter.
      - Without it, the name in each entry of O(instances). Needed with O(workers) and O(routers).
    type: str
  instances:
    description:
      - Entries of the plan (C(plumbline_plan.instances)), servers and routers, on whatever host. Those of one PD group are compared with each other.
      - Ranks above 0 of a server over several nodes are not asked.
    type: list
    elements: dict
  workers:
    description: Servers, where no plan is at hand. They are compared with each other as one PD group.
    type: list
    elements: dict
    suboptions:
      url:
        description: The address, as C(http://address:port).
        type: str
        required: true
      role:
        description: The role.
        type: str
        choices: [prefill, decode, regular]
        required: true
      name:
        description: The name to report it under. Without it, the address.
        type: str
  routers:
    description: Routers, where no plan is at hand.
    type: list
    elements: dict
    suboptions:
      url:
        description: The address, as C(http://address:port).
        type: str
        required: true
      name:
        description: The name to report it under. Without it, the address.
        type: str
  credential_path:
    description:
      - A file on the host that holds the API key. The key is read there and never returned.
      - Without it, the file that each entry of O(instances) names.
    type: path
  completion:
    description:
      - Send one completion of four tokens, once every name is right.
      - It goes through the first router, else to the first regular server that says itself that it is one. A prefill or a decode never gets one.
      - One that fails counts against the breakers of the router's workers, which may then stay open for about a minute. So it is tried once.
    type: bool
    default: true
  completion_timeout:
    description: Seconds for the completion, 1 to 600.
    type: int
    default: 30
  on_mismatch:
    description: Fail, or return what was found, where something is not right.
    type: str
    choices: [fail, return]
    default: fail
attributes:
  check_mode:
    support: full
    description: Asks for the names, sends no completion, and does not fail where something is not right.
  diff_mode:
    support: none
    description: Changes nothing.
notes:
  - Changes nothing, and is never C(changed).
seealso:
  - module: plumbline.sglang.router_check
  - module: plumbline.sglang.pd_canary
  - module: plumbline.sglang.wait_for_sglang_ready
"""

EXAMPLES = r"""
- name: Every server and router of the plan serves what the plan says
  plumbline.sglang.served_model_check:
    instances: "{{ ansible_facts.plumbline_plan.instances }}"
  run_once: true

- name: A pair and its router without a plan
  plumbline.sglang.served_model_check:
    served_name: llama
    workers:
      - url: http://192.0.2.11:30000
        role: prefill
      - url: http://192.0.2.12:30000
        role: decode
    routers:
      - url: http://192.0.2.10:30001
    credential_path: /etc/sglang/credentials/main/api-key

- name: Look at one server, without a completion
  plumbline.sglang.served_model_check:
    served_name: llama
    workers:
      - url: http://127.0.0.1:30000
        role: regular
    completion: false
    on_mismatch: return
  register: named
"""

RETURN = r"""
ok:
  description: Whether everything answered, and with the name asked for.
  returned: always
  type: bool
would_fail:
  description: In check mode, whether a real run would fail here. False otherwise.
  returned: always
  type: bool
endpoints:
  description: One element for each surface of each server and router, in the order asked.
  returned: always
  type: list
  elements: dict
  contains:
    instance:
      description: The name of the server or router. For V(two_names), the PD group.
      type: str
      returned: always
    host:
      description: The inventory name of its host; empty without a plan.
      type: str
      returned: always
    url:
      description: Its address.
      type: str
      returned: always
    role:
      description: V(prefill), V(decode), V(regular) or V(router).
      type: str
      returned: always
    surface:
      description: V(/v1/models), V(/v1/models/<name>), V(/model_info), V(/workers), V(completion), or V(group) for a PD group as a whole.
      type: str
      returned: always
    worker:
      description: For V(/workers), the worker that the router speaks of. Empty otherwise.
      type: str
      returned: always
    state:
      description:
        - V(ok), the name asked for.
        - V(path_as_name), a path. The server has no served name of its own.
        - V(other_name), another name.
        - V(two_names), the servers of one PD group serve different names.
        - V(kept_old_name), the router names a worker otherwise than the worker itself.
        - V(wrong_key), alive and answered 401 or 403.
        - V(key_unreadable), the key file could not be read, so nothing was asked.
        - V(nothing_there), connection refused.
        - V(no_answer), no usable answer.
        - V(not_told), this release does not have that surface. It counts as neither right nor wrong.
        - After V(wrong_key), V(key_unreadable), V(nothing_there) or V(no_answer) the server's other surfaces are not asked.
      type: str
      returned: always
    observed:
      description: What was seen.
      type: str
      returned: always
    expected:
      description: The name asked for.
      type: str
      returned: always
    next:
      description: What to do; empty where it is right.
      type: str
      returned: always
completion:
  description: The completion.
  returned: always
  type: dict
  contains:
    sent:
      description: Whether one was sent.
      type: bool
      returned: always
    sent_to:
      description: The name of the router or server that it was sent to; empty where none was.
      type: str
      returned: always
    why_not:
      description: Why none was sent; empty where one was.
      type: str
      returned: always
msg:
  description: All of it in one text.
  returned: always
  type: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.plumbline.sglang.plugins.module_utils.host.local import LocalHost
from ansible_collections.plumbline.sglang.plugins.module_utils.readiness.name_check import check, endpoints_of


def spec() -> dict[str, Any]:
    """The module's options."""
    url = {"type": "str", "required": True}
    return {
        "served_name": {"type": "str"},
        "instances": {"type": "list", "elements": "dict"},
        "workers": {
            "type": "list",
            "elements": "dict",
            "options": {
                "url": url,
                "role": {"type": "str", "choices": ["prefill", "decode", "regular"], "required": True},
                "name": {"type": "str"},
            },
        },
        "routers": {"type": "list", "elements": "dict", "options": {"url": url, "name": {"type": "str"}}},
        "credential_path": {"type": "path"},
        "completion": {"type": "bool", "default": True},
        "completion_timeout": {"type": "int", "default": 30},
        "on_mismatch": {"type": "str", "choices": ["fail", "return"], "default": "fail"},
    }


def main() -> None:
    """Ask, then report."""
    module = AnsibleModule(
        argument_spec=spec(),
        supports_check_mode=True,
        required_one_of=[("instances", "workers", "routers")],
        mutually_exclusive=[("instances", "workers"), ("instances", "routers")],
        required_by={"workers": ("served_name",), "routers": ("served_name",)},
    )
    endpoints, bad = endpoints_of(module.params)
    seconds = module.params["completion_timeout"]
    if not 1 <= seconds <= 600:
        bad.append(f"completion_timeout is {seconds}, expected 1 to 600 seconds")
    if bad:
        nothing = {"sent": False, "sent_to": "", "why_not": "nothing was asked"}
        module.fail_json(msg="nothing was asked: " + "; ".join(bad), changed=False, ok=False, would_fail=False, endpoints=[], completion=nothing)
    report = check(endpoints, LocalHost(), module.params["completion"] and not module.check_mode, float(seconds))
    if module.check_mode and module.params["completion"]:
        report.why_not = "check mode"
    answer = {
        "changed": False,
        "ok": report.ok,
        "would_fail": module.check_mode and not report.ok and module.params["on_mismatch"] == "fail",
        "endpoints": [row.as_dict() for row in report.rows],
        "completion": {"sent": report.sent, "sent_to": report.sent_to, "why_not": report.why_not},
        "msg": report.text(),
    }
    if not report.ok and module.params["on_mismatch"] == "fail" and not module.check_mode:
        module.fail_json(**answer)
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
