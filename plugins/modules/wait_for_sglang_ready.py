# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: wait_for_sglang_ready
short_description: Wait until SGLang servers and routers have proved to be ready
version_added: 0.1.0
author: plumbline.sglang contributors (@plumbline-sglang)
description:
  - Watches one or several instances of this host at once, until each is ready, has failed, or has used up its time.
  - An instance is ready when several independent witnesses agree, and each speaks of the one run (systemd invocation) that was asked about. A
    server needs its process and the owner of its socket, its start-up log, C(/ready) and one generation, its weights in memory, its identity, and
    in a PD group the bootstrap registry; a router its process, its log, and workers that are exactly the planned ones.
  - A start is explained as well, by what was in the page cache before it and what was read since. One that nothing explains is V(INCONCLUSIVE).
  - A run that cannot become ready ends the wait at once (its process ended or restarted, a fatal line, another process on its port), with the
    first cause from its own log.
  - What could not be observed never counts as passed.
  - A check does no harm. At most one generating request is in flight per server, and none is sent for 30 seconds after one that was not answered.
options:
  instances:
    description:
      - Entries of the plan (C(plumbline_plan.instances)) that run on this host.
      - Either this or O(unit) is needed.
    type: list
    elements: dict
  unit:
    description: The systemd unit of a single instance, where no plan is at hand.
    type: str
  role:
    description: The role of the single instance.
    type: str
    choices: [prefill, decode, regular, router]
  address:
    description: The address at which the single instance listens.
    type: str
    default: 127.0.0.1
  port:
    description: The HTTP port of the single instance.
    type: int
  bootstrap_port:
    description: The bootstrap port of a single prefill.
    type: int
  served_name:
    description: The model name that is expected of the single instance, and of each worker of a single router.
    type: str
  model_path:
    description: The model directory that is expected of the single instance.
    type: path
  version:
    description: The SGLang version that is expected of the single instance.
    type: str
  tp_size:
    description: The tensor-parallel size that is expected of the single instance.
    type: int
  device:
    description: What the single instance computes on. Its memory is looked for there.
    type: str
    choices: [cuda, cpu]
    default: cuda
  gpus:
    description:
      - The GPUs of the single instance, by their index in PCI order.
      - Without it, its memory may lie on any GPU of the host.
    type: list
    elements: int
    default: []
  render_digest:
    description: The digest of the rendered set that the single instance must run.
    type: str
  credential_path:
    description: A file on the host that holds the API key of the single instance. The key is read there and never returned.
    type: path
  state_dir:
    description:
      - Where the proofs of the single instance are kept, below C(proofs/). Without it, none are.
    type: path
  prefill_workers:
    description:
      - The prefills that a single router must have, or that a single decode must reach.
      - Each as C(http://address:port bootstrap-port).
    type: list
    elements: str
    default: []
  decode_workers:
    description: The decodes that a single router must have, each as C(http://address:port).
    type: list
    elements: str
    default: []
  invocations:
    description:
      - The run asked about, for each instance by its name, as systemd's InvocationID. The verdict speaks of this run only.
      - For an instance that is not named, the run that is found at the first look.
    type: dict
    default: {}
  deployment:
    description:
      - The instance has just been started, so any restart is a failure.
      - Otherwise a pending automatic restart is waited for, and its new run is taken up.
    type: bool
    default: false
  record_proof:
    description:
      - Write down what was seen when an invocation is found ready for the first time. Later its start-up lines may have left the journal; then this
        proof stands for them.
      - Nothing else is ever written.
    type: bool
    default: true
  timeout:
    description:
      - Seconds to wait for each instance. Without it, the start budget of its plan entry (1800 for a single instance).
      - 0 looks once, for at most the 25 seconds that a generation may take.
    type: int
  peer_timeout:
    description:
      - Seconds that a decode which is itself ready waits for a prefill whose bootstrap port nobody answers at. One that still loads its model
        does answer, and is waited for as long as O(timeout) allows.
    type: int
    default: 300
  passes:
    description: Observations in a row that must find an instance ready.
    type: int
    default: 2
  on_not_ready:
    description: Fail, or return the verdicts, where an instance is not ready.
    type: str
    choices: [fail, return]
    default: fail
  progress_file:
    description: A file on the host to which progress is appended, one line each. The action plugin of this module shows them as they come.
    type: path
attributes:
  check_mode:
    support: full
    description: Never waits. Looks once at what is there and says whether it would wait.
  diff_mode:
    support: none
    description: Changes nothing.
requirements:
  - systemd with its journal and cgroup v2 on the host
  - root, to see who owns a socket and the environment of another user's process
notes:
  - Changes nothing, and is never C(changed).
seealso:
  - module: plumbline.sglang.plan
  - module: plumbline.sglang.served_model_check
  - module: plumbline.sglang.router_check
  - module: plumbline.sglang.pd_canary
"""

EXAMPLES = r"""
- name: Watch the engines of this host
  plumbline.sglang.wait_for_sglang_ready:
    instances: "{{ ansible_facts.plumbline_plan | plumbline.sglang.entries(inventory_hostname, roles=['prefill', 'decode']) }}"
    deployment: true

- name: One server without a plan
  plumbline.sglang.wait_for_sglang_ready:
    unit: sglang-prefill-main-default
    role: prefill
    address: 192.0.2.11
    port: 30000
    bootstrap_port: 8998
    served_name: llama
    model_path: /srv/models/llama
    credential_path: /etc/sglang/credentials/main/api-key
"""

RETURN = r"""
ready:
  description: Whether every instance is ready.
  returned: always
  type: bool
verdict:
  description: The worst verdict of all instances, V(READY), V(NOT_READY), V(INCONCLUSIVE) or V(FAILED).
  returned: always
  type: str
would_wait:
  description: In check mode, whether a real run would wait or fail here. False otherwise.
  returned: always
  type: bool
instances:
  description: One result per instance, in the order given.
  returned: always
  type: list
  elements: dict
  contains:
    instance:
      description: Its name.
      type: str
      returned: always
    host:
      description: The inventory name of its host; empty for a single instance.
      type: str
      returned: always
    unit:
      description: Its systemd unit.
      type: str
      returned: always
    role:
      description: V(prefill), V(decode), V(regular) or V(router).
      type: str
      returned: always
    group:
      description: Its PD group; empty for a single instance.
      type: str
      returned: always
    verdict:
      description: V(READY), V(NOT_READY) (still starting), V(FAILED) (cannot become ready) or V(INCONCLUSIVE) (witnesses disagree, or a required one
        could not be asked).
      type: str
      returned: always
    reason:
      description: Why, in one sentence.
      type: str
      returned: always
    causes:
      description: The reason in parts, each with the signal it comes from.
      type: list
      elements: str
      returned: always
    next:
      description: Commands and steps that lead further.
      type: list
      elements: str
      returned: always
    restarts:
      description: How often systemd has restarted the unit by itself since somebody started it.
      type: int
      returned: always
    resolved:
      description:
        - What the engine resolved for itself, from its server and its log, compared with each other and with the plan. C(context_length) and
          C(kv_tokens) in tokens, C(disaggregation_mode), C(transfer_backend). Empty for a router, and where the server was not asked.
      type: dict
      returned: always
    proof:
      description: The file on the host that holds the proof of this invocation; empty where there is none.
      type: str
      returned: always
    proved_at:
      description: When this invocation was first found ready by an earlier check (UTC); null where it was not.
      type: str
      returned: always
    invocation:
      description: The systemd InvocationID of the run that the verdict speaks of; empty where the unit never ran.
      type: str
      returned: always
    seconds:
      description: Seconds from the start of the main process to readiness; null where it is not ready or the moment is not known.
      type: float
      returned: always
    waited:
      description: Seconds that this wait took.
      type: float
      returned: always
    at:
      description: When the verdict was reached, in seconds on the host's monotonic clock, as systemd and the journal count them.
      type: float
      returned: always
    would_wait:
      description: In check mode, what a real run would do.
      type: bool
      returned: always
    stages:
      description: The start-up stages that the log shows, each with C(stage), C(label), C(seconds) since the start of the main process, and C(line).
      type: list
      elements: dict
      returned: always
    signals:
      description: The signals by name, each with C(state) (V(passed), V(pending), V(failed), V(unknown)), C(observed), C(expected), C(proves), C(when)
        (UTC), C(monotonic) (seconds), C(next) and C(details). No secret is in any of them.
      type: dict
      returned: always
    last_lines:
      description: The last lines that this run logged, oldest first.
      type: list
      elements: str
      returned: always
msg:
  description: The verdicts in one text.
  returned: always
  type: str
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.plumbline.sglang.plugins.module_utils.host.local import LocalHost
from ansible_collections.plumbline.sglang.plugins.module_utils.progress import Progress
from ansible_collections.plumbline.sglang.plugins.module_utils.readiness.check import Request, as_trial, check, text_of
from ansible_collections.plumbline.sglang.plugins.module_utils.readiness.instance_entry import ROLES, from_parameters, parameter_problems, problems
from ansible_collections.plumbline.sglang.plugins.module_utils.readiness.verdict import READY, worst
from ansible_collections.plumbline.sglang.plugins.module_utils.readiness.waiter import Settings


def spec() -> dict[str, Any]:
    """The module's options."""
    return {
        "instances": {"type": "list", "elements": "dict"},
        "unit": {"type": "str"},
        "role": {"type": "str", "choices": list(ROLES)},
        "address": {"type": "str", "default": "127.0.0.1"},
        "port": {"type": "int"},
        "bootstrap_port": {"type": "int"},
        "served_name": {"type": "str"},
        "model_path": {"type": "path"},
        "version": {"type": "str"},
        "tp_size": {"type": "int"},
        "device": {"type": "str", "choices": ["cuda", "cpu"], "default": "cuda"},
        "gpus": {"type": "list", "elements": "int", "default": []},
        "render_digest": {"type": "str"},
        "credential_path": {"type": "path"},
        "state_dir": {"type": "path"},
        "prefill_workers": {"type": "list", "elements": "str", "default": []},
        "decode_workers": {"type": "list", "elements": "str", "default": []},
        "invocations": {"type": "dict", "default": {}},
        "deployment": {"type": "bool", "default": False},
        "record_proof": {"type": "bool", "default": True},
        "timeout": {"type": "int"},
        "peer_timeout": {"type": "int", "default": 300},
        "passes": {"type": "int", "default": 2, "no_log": False},
        "on_not_ready": {"type": "str", "choices": ["fail", "return"], "default": "fail"},
        "progress_file": {"type": "path"},
    }


def entries_of(parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The entries to watch: the plan's, or the single one that the plain parameters describe."""
    if parameters["instances"] is not None:
        return list(parameters["instances"])
    return [from_parameters(parameters)]


def request_of(parameters: Mapping[str, Any], check_mode: bool) -> Request:
    """What is asked of the checks; check mode looks once and writes nothing."""
    return Request(
        timeout=0 if check_mode else parameters["timeout"],
        invocations=parameters["invocations"],
        deployment=parameters["deployment"],
        record=parameters["record_proof"] and not check_mode,
        settings=Settings(passes=max(1, parameters["passes"]), peer_patience=float(parameters["peer_timeout"])),
    )


def main() -> None:
    """Watch, then report."""
    module = AnsibleModule(
        argument_spec=spec(),
        supports_check_mode=True,
        required_one_of=[("instances", "unit")],
        mutually_exclusive=[("instances", "unit")],
        required_by={"unit": ("role", "port")},
    )
    bad = parameter_problems(module.params)
    if (module.params["timeout"] or 0) < 0:
        bad.append(f"timeout is {module.params['timeout']}, expected seconds to wait, or 0 to look once")
    entries = [] if bad else entries_of(module.params)
    bad += [line for entry in entries for line in problems(entry)]
    if bad:
        module.fail_json(
            msg="nothing was looked at: " + "; ".join(bad), ready=False, verdict="INCONCLUSIVE", would_wait=False, instances=[]
        )
    progress = Progress(module.params["progress_file"])
    results = check(entries, LocalHost(), request_of(module.params, module.check_mode), progress.line)
    results = [as_trial(item) if module.check_mode else {**item, "would_wait": False} for item in results]
    verdict = worst([item["verdict"] for item in results])
    answer = {
        "changed": False,
        "ready": verdict == READY,
        "verdict": verdict,
        "would_wait": any(item["would_wait"] for item in results),
        "instances": results,
        "msg": text_of(results),
    }
    if verdict != READY and module.params["on_not_ready"] == "fail" and not module.check_mode:
        module.fail_json(**answer)
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
