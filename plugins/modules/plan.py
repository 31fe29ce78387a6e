# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: plan
short_description: Derive every SGLang instance of the inventory, before any host is touched
version_added: 0.1.0
author: plumbline.sglang contributors (@plumbline-sglang)
description:
  - Reads the C(sglang_*) variables of every host of the inventory, whatever C(--limit) says, and the lock files they name, and derives
    the plan - instances with arguments, environment, ports, peers, expectations and rendered sets, and every finding at once.
  - Runs on the controller, once for all hosts; contacts none and needs no facts. The same inventory and the same lock files
    give the same plan.
  - Sets the plan as the fact C(plumbline_plan) on every host of the play.
  - The variables are documented in C(docs/variables.md).
options:
  fail_on:
    description:
      - V(error) fails with all errors together where there is one. V(never) returns the findings and leaves the rest to the caller.
    type: str
    choices: [error, never]
    default: error
  show:
    description:
      - Print the plan; as a table with all findings, or as JSON.
    type: str
    choices: [none, table, json]
    default: none
attributes:
  check_mode:
    support: full
    description: The same as without check mode; nothing is ever changed.
  diff_mode:
    support: none
    description: Changes nothing.
notes:
  - The task needs C(run_once=true). Without it ansible-core sets the fact on the first host of the play only, so the module refuses.
  - Variables of the inventory and C(--extra-vars) are read; those of a play, a block, a task or a role are not, since other plays
    would then see another plan.
  - Read the fact as C(ansible_facts.plumbline_plan); ansible-core 2.24 will not inject facts as top-level variables by default.
  - Keys never enter the plan; it holds the paths of credentials on the hosts and the names of the variables.
seealso:
  - module: plumbline.sglang.report
"""

EXAMPLES = r"""
- name: Derive every instance from the inventory
  plumbline.sglang.plan:
  run_once: true

- name: Look at the plan whatever is wrong with it
  plumbline.sglang.plan:
    fail_on: never
    show: table
  run_once: true
  register: planned
"""

RETURN = r"""
table:
  description: The plan as text, one line per instance, then the findings.
  returned: success
  type: str
plan:
  description: The plan, as in the fact C(plumbline_plan).
  returned: success
  type: dict
  contains:
    schema:
      description: Version of this form; 1.
      returned: always
      type: int
    digest:
      description: SHA-256 over everything in the plan but the findings.
      returned: always
      type: str
    findings:
      description: What is wrong or worth knowing, errors first.
      returned: always
      type: list
      elements: dict
      contains:
        level:
          description: V(error) or V(warning).
          returned: always
          type: str
        rule:
          description: Stable name of the rule.
          returned: always
          type: str
          sample: gpu-overlap
        where:
          description: Instances as C(host/instance), hosts, or PD groups.
          returned: always
          type: list
          elements: str
        seen:
          description: What was seen.
          returned: always
          type: str
        expected:
          description: What was expected.
          returned: always
          type: str
        next:
          description: What to do next.
          returned: always
          type: str
    service:
      description: C(user) and C(group) that every instance runs as.
      returned: always
      type: dict
    paths:
      description: C(config), C(root), C(state) and C(cache) directory on every host.
      returned: always
      type: dict
    hosts:
      description: By inventory name, what the host needs. Hosts without an instance are left out.
      returned: always
      type: dict
      contains:
        address:
          description: Address that servers listen on and peers use.
          returned: always
          type: str
        instances:
          description: Names of its instances.
          returned: always
          type: list
          elements: str
        releases:
          description: Releases to install.
          returned: always
          type: list
          elements: dict
          contains:
            id:
              description: C(<package>-<version>-<12 hex digits>); the digits follow from lock, interpreter setting and kind.
              returned: always
              type: str
            kind:
              description: V(engine), V(router), or V(tools) for the modules' own environment.
              returned: always
              type: str
            package:
              description: V(sglang), V(smg) or V(sglang-router).
              returned: always
              type: str
            version:
              description: Its version.
              returned: always
              type: str
            path:
              description: Directory on the host.
              returned: always
              type: str
            python:
              description: Interpreter of the installed release.
              returned: always
              type: str
            interpreter:
              description: C(sglang_python), V(auto) or a path.
              returned: always
              type: str
            requirements:
              description: The lock without comments, one exact pin or wheel per line, sorted.
              returned: always
              type: str
            wheelhouse:
              description: Directory on the host with wheels, or null.
              returned: always
              type: str
            import_check:
              description: Modules that must import.
              returned: always
              type: list
              elements: str
        models:
          description: Model directories, as in C(instances[].model).
          returned: always
          type: list
          elements: dict
        numa:
          description: NUMA node to GPU indices, as declared.
          returned: always
          type: dict
        credentials:
          description: Credential files, as in C(instances[].credentials).
          returned: always
          type: list
          elements: dict
    instances:
      description: Prefills, decodes, routers; then by host, PD group and name.
      returned: always
      type: list
      elements: dict
      contains:
        instance:
          description: Its name on the host, C(<role>-<group>-<name>).
          returned: always
          type: str
        unit:
          description: Its systemd unit.
          returned: always
          type: str
        role:
          description: V(prefill), V(decode) or V(router).
          returned: always
          type: str
        group:
          description: Its PD group.
          returned: always
          type: str
        name:
          description: Its own name, as in the inventory.
          returned: always
          type: str
        host:
          description: Inventory name of its host.
          returned: always
          type: str
        address:
          description: Address it listens on.
          returned: always
          type: str
        port:
          description: HTTP port.
          returned: always
          type: int
        url:
          description: C(http://address:port).
          returned: always
          type: str
        bootstrap_port:
          description: Port of the bootstrap server; null for a router, and for a decode that names none.
          returned: always
          type: int
        ports:
          description: Every port it opens that is known beforehand. C(port), C(address) (V(0.0.0.0) for all), C(purpose), C(owner).
          returned: always
          type: list
          elements: dict
        gpus:
          description: GPU indices in PCI bus order.
          returned: always
          type: list
          elements: int
        numa_node:
          description: NUMA node it is bound to, or null.
          returned: always
          type: int
        device:
          description: V(cuda) or V(cpu); V(cpu) for a router.
          returned: always
          type: str
        model:
          description: C(name), C(path) on the host, C(copy_from) on the controller or null, C(served_name). Null for a router.
          returned: always
          type: dict
        served_name:
          description: Model name in the API.
          returned: always
          type: str
        release:
          description: C(id), C(kind), C(package), C(version), C(path) and C(python) of its release.
          returned: always
          type: dict
        launcher:
          description: Path of the launcher on the host; follows from the launcher's text.
          returned: always
          type: str
        argv:
          description: Arguments, one flag with its values per item; never a key.
          returned: always
          type: list
          elements: list
        environment:
          description: Environment of the unit; the render digest is added by the rendered set.
          returned: always
          type: dict
        credentials:
          description: Keys it reads from files. C(name), C(flag), C(path) on the host, C(variable) that holds the key.
          returned: always
          type: list
          elements: dict
        user:
          description: User it runs as.
          returned: always
          type: str
        user_group:
          description: Group it runs as.
          returned: always
          type: str
        peers:
          description:
            - The other members of its PD group by role, each C(host), C(instance), C(url), C(address), C(port), C(bootstrap_port).
          returned: always
          type: dict
        expect:
          description:
            - What the running server must say of itself. C(disaggregation_mode), C(model_path), C(served_name), C(version), C(tp_size),
              C(pp_size), C(nnodes), C(transfer_backend); null where a router says nothing.
          returned: always
          type: dict
        start_budget_seconds:
          description: Seconds that a start may take until readiness is proved.
          returned: always
          type: int
        stop_timeout_seconds:
          description: Seconds that a stop may drain.
          returned: always
          type: int
        paths:
          description: C(config), C(unit), C(renders), C(state) and C(cache) on the host.
          returned: always
          type: dict
        render:
          description:
            - The rendered set. C(digest), C(files) (C(unit), C(environment), C(argv) as text), C(directories), and C(staged), where each of
              the files lies before the switch.
          returned: always
          type: dict
"""
