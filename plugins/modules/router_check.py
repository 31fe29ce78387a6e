# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: router_check
short_description: Check that a router has exactly the planned workers
version_added: 0.1.0
author: plumbline.sglang contributors (@plumbline-sglang)
description:
  - Compares what a router says of each of its workers with the plan. Their addresses, roles, own modes, bootstrap ports, models, health and circuit
    breakers, and the router's readiness.
  - A router's own readiness counts only what has registered. It is C(200) with a worker missing, with the roles swapped and without a bootstrap port.
  - Each planned worker is asked at its own C(/ready) too. A router notices the end of a worker only at its next health check, up to a minute later.
  - Run it on the router's host, since a worker must be reachable from there.
options:
  router:
    description:
      - The router's entry of the plan. It names the workers, the model, the key file and the metrics port.
      - Either this or O(url) is needed.
    type: dict
  url:
    description: The router's address, as C(http://address:port), where no plan is at hand.
    type: str
  prefill_workers:
    description: The prefills that the router must have, each as C(http://address:port bootstrap-port).
    type: list
    elements: str
  decode_workers:
    description: The decodes that the router must have, each as C(http://address:port).
    type: list
    elements: str
  served_name:
    description: The model name that each worker must have in the router. Without it, names are not compared.
    type: str
  metrics_url:
    description:
      - Where the router shows its metrics, for example C(http://127.0.0.1:29000/metrics). The breakers are read there.
      - Without it, they are not judged.
    type: str
  credential_path:
    description: A file on the host that holds the router's API key. The key is read there and never returned.
    type: path
  on_mismatch:
    description: Fail, or return what was found, where something is not as planned.
    type: str
    choices: [fail, return]
    default: fail
attributes:
  check_mode:
    support: full
    description: Asks as always, and does not fail where something is not as planned.
  diff_mode:
    support: none
    description: Changes nothing.
notes:
  - Changes nothing, and is never C(changed). Sends no completion.
seealso:
  - module: plumbline.sglang.served_model_check
  - module: plumbline.sglang.pd_canary
  - module: plumbline.sglang.wait_for_sglang_ready
"""

EXAMPLES = r"""
- name: The router of the plan
  plumbline.sglang.router_check:
    router: "{{ plumbline_router }}"

- name: A router without a plan
  plumbline.sglang.router_check:
    url: http://127.0.0.1:30001
    prefill_workers:
      - http://192.0.2.11:30000 8998
    decode_workers:
      - http://192.0.2.12:30000
    served_name: llama
    metrics_url: http://127.0.0.1:29000/metrics
    credential_path: /etc/sglang/credentials/main/api-key
"""

RETURN = r"""
ok:
  description: Whether everything is as planned.
  returned: always
  type: bool
would_fail:
  description: In check mode, whether a real run would fail here. False otherwise.
  returned: always
  type: bool
instance:
  description: The instance name of the router; its address without a plan.
  returned: always
  type: str
host:
  description: The inventory name of its host; empty without a plan.
  returned: always
  type: str
url:
  description: Its address.
  returned: always
  type: str
readiness:
  description: The status of C(/readiness); 0 where no answer came.
  returned: always
  type: int
state:
  description:
    - V(passed), or the worst state of the findings. V(pending) is worth waiting for, V(failed) is not, V(unknown) could not be observed.
  returned: always
  type: str
findings:
  description: Everything that is not as planned, one element each.
  returned: always
  type: list
  elements: dict
  contains:
    kind:
      description:
        - V(missing) and V(surplus), a worker too few or too many. V(given_up) never comes from this module, which reads no log.
        - V(role), V(mode), V(bootstrap_port) and V(model), a worker that the router has otherwise than planned. V(roles_swapped) where a prefill and a
          decode were taken for each other.
        - V(unhealthy) and V(breaker), a worker that the router does not use.
        - V(silent) and V(not_ready), a worker that itself does not answer, or says that it is not ready.
        - V(not_told), something that this router does not tell.
        - V(readiness), V(nothing_there), V(no_answer), V(wrong_key) and V(key_unreadable) are about the router itself. V(wrong_key) is an answer of
          401 or 403, so it is alive.
      type: str
      returned: always
    state:
      description: V(pending), V(failed) or V(unknown), as above.
      type: str
      returned: always
    text:
      description: What is wrong, in one sentence.
      type: str
      returned: always
    worker:
      description: The worker; empty where it is about the router.
      type: str
      returned: always
    role:
      description: The worker's planned role.
      type: str
      returned: always
    observed:
      description: What was seen.
      type: raw
      returned: always
    expected:
      description: What the plan says.
      type: raw
      returned: always
workers:
  description: The workers as the router has them; null where it did not tell.
  returned: always
  type: list
  elements: dict
  contains:
    url:
      description: The address.
      type: str
      returned: always
    role:
      description: The role for which the router uses it.
      type: str
      returned: always
    mode:
      description: The worker's own disaggregation mode; null where the router does not tell it.
      type: str
      returned: always
    model:
      description: The model name that the router read when the worker registered.
      type: str
      returned: always
    bootstrap_port:
      description: The bootstrap port; null for a decode.
      type: int
      returned: always
    healthy:
      description: What the router holds of its health, up to a minute old.
      type: bool
      returned: always
breakers:
  description: For each worker, the state of its circuit breaker, 0 closed, 1 open, 2 half open. Null where it was not read.
  returned: always
  type: dict
own_words:
  description: For each planned worker, what it said at its own C(/ready). Null where none was asked.
  returned: always
  type: dict
next:
  description: Commands and steps that lead further.
  returned: always
  type: list
  elements: str
msg:
  description: All of it in one text.
  returned: always
  type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.plumbline.sglang.plugins.module_utils.host.credentials import Redactor
from ansible_collections.plumbline.sglang.plugins.module_utils.host.local import LocalHost
from ansible_collections.plumbline.sglang.plugins.module_utils.readiness.router_target import result_of, target_of, text_of
from ansible_collections.plumbline.sglang.plugins.module_utils.signals.base import PASSED
from ansible_collections.plumbline.sglang.plugins.module_utils.signals.router import View, advice, look

PLAIN = ("prefill_workers", "decode_workers", "served_name", "metrics_url", "credential_path")


def main() -> None:
    """Look once, then report."""
    module = AnsibleModule(
        argument_spec={
            "router": {"type": "dict"},
            "url": {"type": "str"},
            "prefill_workers": {"type": "list", "elements": "str"},
            "decode_workers": {"type": "list", "elements": "str"},
            "served_name": {"type": "str"},
            "metrics_url": {"type": "str"},
            "credential_path": {"type": "path"},
            "on_mismatch": {"type": "str", "choices": ["fail", "return"], "default": "fail"},
        },
        supports_check_mode=True,
        required_one_of=[("router", "url")],
        mutually_exclusive=[("router", name) for name in ("url", *PLAIN)],
    )
    entry = module.params["router"] or {}
    target, bad = target_of(module.params)
    who = {"instance": str(entry.get("instance") or target.url), "host": str(entry.get("host") or ""), "url": target.url}
    if bad:
        nothing = result_of(View(), Redactor())
        # An address that is wrong may hold a password.
        nothing.update(state="unknown", instance=who["instance"] if entry else "", host=who["host"], url="")
        module.fail_json(msg="nothing was asked: " + "; ".join(bad), changed=False, ok=False, would_fail=False, next=[], **nothing)
    path = target.credential.path if target.credential else ""
    seen = look(LocalHost(), target)
    found = result_of(seen, Redactor.of([path] if path else []))
    ok = found["state"] == PASSED
    steps = advice(target.url, seen.findings, str(entry.get("unit") or ""), path)
    label = f"{who['instance']}{' on ' + who['host'] if who['host'] else ''} ({target.url})" if entry else target.url
    answer = {
        "changed": False,
        "ok": ok,
        "would_fail": module.check_mode and not ok and module.params["on_mismatch"] == "fail",
        **who,
        **found,
        "next": steps,
        "msg": text_of(label, found, steps),
    }
    if not ok and module.params["on_mismatch"] == "fail" and not module.check_mode:
        module.fail_json(**answer)
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
