# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: pd_canary
short_description: Prove with one completion that a KV cache goes from a prefill to a decode
version_added: 0.1.0
author: plumbline.sglang contributors (@plumbline-sglang)
description:
  - Sends one completion through the router of a PD group and reads the counters of all its prefills and decodes before and after.
  - It passes when the reply came, the prefills' C(kv_transfer_total_mb) grew by at least the prompt's cache, a transfer was counted, no failure
    was counted on either side, and the decode gave two tokens or more.
  - Run it on the router's host, and only after workers, bootstrap and the router's view have passed. A completion that fails counts against the
    breakers of both workers, which then stay open for about a minute. So it is tried once.
  - Under live traffic the counters are everybody's, and it says little; RV(live_traffic) tells.
options:
  router:
    description: The router's entry of the plan.
    type: dict
    required: true
  instances:
    description: The entries of the plan of the router's PD group. Others are left out.
    type: list
    elements: dict
    required: true
  words:
    description:
      - Words of the prompt, each at least one token. More than a page of the KV cache is needed for a transfer that means something.
      - The prompt begins with a random word, so that nothing of it is cached.
    type: int
    default: 200
  max_tokens:
    description: Tokens to generate, 2 or more; the first one comes from the prefill.
    type: int
    default: 8
  timeout:
    description:
      - Seconds for the completion; less than the router's breaker window (C(cb-timeout-duration-secs), 60 unless its arguments say otherwise).
      - Without it, four fifths of that window, 45 at most.
    type: int
  expected_bytes_per_token:
    description:
      - Bytes of KV cache for one prompt token that the reporting ranks of a prefill move. Without it, any growth passes.
      - With tensor parallelism only rank 0 reports, unless C(enable-metrics-for-all-schedulers) is set.
    type: float
attributes:
  check_mode:
    support: full
    description: Sends nothing and says what it would do.
  diff_mode:
    support: none
    description: Changes nothing.
seealso:
  - module: plumbline.sglang.wait_for_sglang_ready
"""

EXAMPLES = r"""
- name: Send a completion through the router
  plumbline.sglang.pd_canary:
    router: "{{ plumbline_router }}"
    instances: "{{ ansible_facts.plumbline_plan.instances | selectattr('group', 'equalto', plumbline_router.group) }}"
"""

RETURN = r"""
group:
  description: The PD group.
  returned: always
  type: str
router:
  description: The instance name of the router.
  returned: always
  type: str
reply:
  description: The text that came back; empty where none came.
  returned: when sent
  type: str
usage:
  description: The token counts that the server reported.
  returned: when sent
  type: dict
prompt_tokens:
  description: Tokens of the prompt.
  returned: when sent
  type: int
completion_tokens:
  description: Tokens generated.
  returned: when sent
  type: int
bytes_moved:
  description: Bytes of KV cache that left the group's prefills.
  returned: when sent
  type: int
bytes_expected:
  description: Bytes that had to leave them; null where O(expected_bytes_per_token) is not given.
  returned: when sent
  type: int
seconds:
  description: Seconds that the completion took.
  returned: when sent
  type: float
prefill_used:
  description: The prefills whose counters grew, as C(instance@host).
  returned: when sent
  type: list
  elements: str
decode_used:
  description: The decode that the router named, else those that generated tokens, as C(instance@host).
  returned: when sent
  type: list
  elements: str
live_traffic:
  description: Others used the group at the same time, so the counters are not the canary's alone.
  returned: when sent
  type: bool
before:
  description: The counters of each server before the completion.
  returned: when sent
  type: dict
after:
  description: The same after it.
  returned: when sent
  type: dict
request_id:
  description: The id under which the request appears in the logs.
  returned: when sent
  type: str
prompt:
  description: The prompt.
  returned: when sent
  type: str
problems:
  description: What contradicts a transfer; empty where it is proved.
  returned: always
  type: list
  elements: str
next:
  description: Commands and steps that lead further.
  returned: always
  type: list
  elements: str
"""

from dataclasses import asdict

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.plumbline.sglang.plugins.module_utils.host.local import LocalHost
from ansible_collections.plumbline.sglang.plugins.module_utils.readiness.canary import CanaryError, Options, refuse, send
from ansible_collections.plumbline.sglang.plugins.module_utils.readiness.instance_entry import problems as holes


def main() -> None:
    """Send one canary, then report."""
    module = AnsibleModule(
        argument_spec={
            "router": {"type": "dict", "required": True},
            "instances": {"type": "list", "elements": "dict", "required": True},
            "words": {"type": "int", "default": 200},
            "max_tokens": {"type": "int", "default": 8, "no_log": False},
            "timeout": {"type": "int"},
            "expected_bytes_per_token": {"type": "float", "no_log": False},
        },
        supports_check_mode=True,
    )
    router, instances = module.params["router"], module.params["instances"]
    options = Options(
        words=module.params["words"],
        max_tokens=module.params["max_tokens"],
        timeout=module.params["timeout"] and float(module.params["timeout"]),
        bytes_per_token=module.params["expected_bytes_per_token"],
    )
    known = {"group": router.get("group", ""), "router": router.get("instance", ""), "changed": False}
    bad = [line for entry in (router, *instances) for line in holes(entry)] or refuse(router, instances, options)
    if bad:
        module.fail_json(msg="nothing was sent: " + "; ".join(bad), problems=bad, next=[], **known)
    if module.check_mode:
        workers = ", ".join(entry["instance"] for entry in instances if entry["role"] != "router" and entry["group"] == router["group"])
        module.exit_json(
            skipped=True,
            msg=f"check mode: would send one completion of {options.words} words through {router['url']} and compare the counters of {workers}",
            problems=[],
            next=[],
            **known,
        )
    try:
        report = asdict(send(router, instances, options, LocalHost()))
    except CanaryError as error:
        module.fail_json(
            msg=f"the canary of PD group {router['group']} through {router['instance']}: {error}", problems=[str(error)], next=[error.next], **known
        )
    if report["problems"]:
        module.fail_json(
            msg=f"the canary of PD group {router['group']} through {router['instance']} came back, but: {'; '.join(report['problems'])}",
            changed=False,
            **report,
        )
    module.exit_json(changed=False, **report)


if __name__ == "__main__":
    main()
