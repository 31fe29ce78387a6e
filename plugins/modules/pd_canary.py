# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: pd_canary
short_description: Prove with completions that KV caches go from the prefills of a PD group to its decodes
version_added: 0.1.0
author: plumbline.sglang contributors (@plumbline-sglang)
description:
  - Crosses every prefill and every decode of one PD group at least once. Both servers of a pair are asked directly and at the same time for one
    completion with a fresh random room, as a router would do. There are as many crossings as the larger of the two numbers, one after the other.
  - Then sends two completions through each router of the group, one whole and one as a stream.
  - A crossing passes when the decode gave two tokens or more, the prefill's C(kv_transfer_total_mb) grew by at least the prompt's cache, and no
    failure was counted on either side. A decode's C(kv_transfer_*_count) moves with every health check and is no evidence.
  - Nothing is sent before every prefill and decode has answered, with its key. A router is asked only where all direct crossings passed, and for
    a stream only where its first completion passed. A completion that fails counts against the breakers of a router's workers, which then stay
    open for about a minute. So each completion is tried once.
  - Under live traffic the counters are everybody's, and growth says little; RV(live_traffic) tells. A failure counted then makes the result
    inconclusive. It fails, and says so.
  - Run it on a host that reaches all of them and has the key file, for example the router's, and only after workers, bootstrap and the router's
    view have passed.
options:
  instances:
    description:
      - The entries of the plan of one PD group, prefills, decodes and routers, on whatever host. Entries of a second group are refused.
      - Ranks above 0 of a server over several nodes are not asked.
    type: list
    elements: dict
    required: true
  direct:
    description: Cross every prefill and decode directly.
    type: bool
    default: true
  through_routers:
    description: Send completions through each router of the group.
    type: bool
    default: true
  words:
    description:
      - Words of the prompt, each at least one token. It gets more where a page of the prefill's KV cache is larger.
      - The prompt begins with a random word, so that nothing of it is cached.
    type: int
    default: 200
  max_tokens:
    description: Tokens to generate, 2 or more; the first one comes from the prefill.
    type: int
    default: 8
  timeout:
    description:
      - Seconds for each completion; less than the breaker window of every router (C(cb-timeout-duration-secs), 60 unless its arguments say
        otherwise).
      - Without it, four fifths of the shortest window, 45 at most.
    type: int
  expected_bytes_per_token:
    description:
      - Bytes of KV cache for one prompt token that the reporting ranks of a prefill move.
      - Without it, a lower bound from C(memory_usage) in the prefill's own C(/server_info); where that is not known, any growth passes.
        RV(bytes_expected_source) tells.
      - With tensor parallelism only rank 0 reports, unless C(enable-metrics-for-all-schedulers) is set.
    type: float
attributes:
  check_mode:
    support: full
    description: Sends nothing and says what it would do.
  diff_mode:
    support: none
    description: Changes nothing.
notes:
  - Changes nothing, and is never C(changed).
seealso:
  - module: plumbline.sglang.wait_for_sglang_ready
  - module: plumbline.sglang.router_check
  - module: plumbline.sglang.served_model_check
"""

EXAMPLES = r"""
- name: Cross every prefill and decode of a PD group, then send completions through its routers
  plumbline.sglang.pd_canary:
    instances: "{{ ansible_facts.plumbline_plan.instances | selectattr('group', 'equalto', 'main') }}"

- name: Only the pairs themselves, with the exact weight of a token
  plumbline.sglang.pd_canary:
    instances: "{{ ansible_facts.plumbline_plan.instances | selectattr('group', 'equalto', 'main') }}"
    through_routers: false
    expected_bytes_per_token: 70272
"""

RETURN = r"""
group:
  description: The PD group.
  returned: always
  type: str
crossings:
  description: One element for each completion, in the order sent. Those after a failure that made them pointless are missing.
  returned: always
  type: list
  elements: dict
  contains:
    via:
      description: V(direct), or the instance name of the router.
      type: str
      returned: always
    stream:
      description: Whether it was asked for as a stream.
      type: bool
      returned: always
    prefill:
      description: The prefill as C(instance@host). Through a router, the one whose counters grew most; empty where none did.
      type: str
      returned: always
    decode:
      description: The decode as C(instance@host). Through a router, the one that it named, else the one that generated; empty where none did.
      type: str
      returned: always
    request_id:
      description: The id under which the request appears in the logs.
      type: str
      returned: always
    prompt_tokens:
      description: Tokens of the prompt; 0 where no completion came.
      type: int
      returned: always
    completion_tokens:
      description: Tokens generated; 0 where no completion came.
      type: int
      returned: always
    bytes_moved:
      description: Bytes of KV cache that left the prefill.
      type: int
      returned: always
    bytes_expected:
      description: Bytes that had to leave it; null where that is not known.
      type: int
      returned: always
    seconds:
      description: Seconds that the completion took.
      type: float
      returned: always
    reply:
      description: The text that came back; empty where none came.
      type: str
      returned: always
    problems:
      description: What contradicts a transfer; empty where it is proved.
      type: list
      elements: str
      returned: always
bytes_expected_source:
  description:
    - V(expected_bytes_per_token), the option.
    - V(server_info), a lower bound from the prefill's own memory.
    - C(unknown) with the reason, where any growth passes.
    - Where prefills differ, each with its own.
  returned: always
  type: str
live_traffic:
  description: Others used the group at the same time, so the counters are not the canary's alone.
  returned: always
  type: bool
router:
  description: The instance name of the group's first router; empty where there is none.
  returned: always
  type: str
reply:
  description: The text that came back through the first router, else from the first pair.
  returned: when sent
  type: str
prompt_tokens:
  description: Tokens of all prompts.
  returned: when sent
  type: int
completion_tokens:
  description: Tokens generated in all.
  returned: when sent
  type: int
bytes_moved:
  description: Bytes of KV cache that left the prefills in all.
  returned: when sent
  type: int
seconds:
  description: Seconds that all completions took.
  returned: when sent
  type: float
problems:
  description: What contradicts a transfer, with the pair or router; empty where all are proved.
  returned: always
  type: list
  elements: str
next:
  description: Commands and steps that lead further.
  returned: always
  type: list
  elements: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.plumbline.sglang.plugins.module_utils.host.local import LocalHost
from ansible_collections.plumbline.sglang.plugins.module_utils.readiness.canary import send
from ansible_collections.plumbline.sglang.plugins.module_utils.readiness.canary_plan import Group, Options, name_of, pairs, refuse


def would(group: Group, options: Options) -> str:
    """What a real run would do, in one sentence."""
    parts = []
    if options.direct:
        parts.append("cross " + ", ".join(f"{name_of(prefill)} to {name_of(decode)}" for prefill, decode in pairs(group)))
    if options.through_routers:
        parts.append("send two completions through " + ", ".join(map(name_of, group.routers)))
    return f"check mode: would {' and '.join(parts)}, and compare the counters before and after"


def main() -> None:
    """Cross, then report."""
    module = AnsibleModule(
        argument_spec={
            "instances": {"type": "list", "elements": "dict", "required": True},
            "direct": {"type": "bool", "default": True},
            "through_routers": {"type": "bool", "default": True},
            "words": {"type": "int", "default": 200},
            "max_tokens": {"type": "int", "default": 8, "no_log": False},
            "timeout": {"type": "int"},
            "expected_bytes_per_token": {"type": "float", "no_log": False},
        },
        supports_check_mode=True,
    )
    instances = module.params["instances"]
    options = Options(
        words=module.params["words"],
        max_tokens=module.params["max_tokens"],
        timeout=None if module.params["timeout"] is None else float(module.params["timeout"]),
        bytes_per_token=module.params["expected_bytes_per_token"],
        direct=module.params["direct"],
        through_routers=module.params["through_routers"],
    )
    bad = refuse(instances, options)
    if bad:
        module.fail_json(msg="nothing was sent: " + "; ".join(bad), changed=False, **{**nothing(instances), "problems": bad})
    if module.check_mode:
        module.exit_json(changed=False, skipped=True, msg=would(Group.of(instances), options), **nothing(instances))
    report = send(instances, options, LocalHost()).as_dict()
    if report["problems"]:
        text = "\n".join([*report["problems"], *(f"  next: {step}" for step in report["next"])])
        module.fail_json(msg=f"the canary of PD group {report['group']}: {text}", changed=False, **report)
    module.exit_json(changed=False, **report)


def nothing(instances: list[dict[str, Any]]) -> dict[str, Any]:
    """The part of the result that is always there, where nothing was sent."""
    routers = [str(entry.get("instance", "")) for entry in instances if entry.get("role") == "router"]
    return {
        "group": next((str(entry["group"]) for entry in instances if entry.get("group")), ""),
        "router": routers[0] if routers else "",
        "crossings": [],
        "bytes_expected_source": "",
        "live_traffic": False,
        "problems": [],
        "next": [],
    }


if __name__ == "__main__":
    main()
