# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_facts
short_description: NVIDIA GPUs of a host, where they sit, and who holds their memory
version_added: 0.1.0
author: plumbline.sglang contributors (@plumbline-sglang)
description:
  - Returns the driver and each GPU by its UUID. Its index, PCI address, NUMA node, memory, and processes with their systemd units.
  - NVML is asked, through the Python package C(nvidia-ml-py) of the tools environment, else C(nvidia-smi -q -x).
  - A host without a driver is a fact and not an error. What the driver does not tell is null with a note, never 0.
  - Memory of the host is never given as memory of a GPU. On unified memory (GB10) only what each process holds is known.
options:
  tools_python:
    description:
      - A Python on the host that has C(nvidia-ml-py). The module runs under it where its own Python has not.
      - Where it is missing, or cannot import C(pynvml), C(nvidia-smi) is asked.
    type: path
    default: /opt/sglang/tools/env/bin/python
attributes:
  check_mode:
    support: full
    description: Reads only.
  diff_mode:
    support: none
    description: Changes nothing.
  facts:
    support: full
    description: Returns C(ansible_facts), which are added to the facts of the host.
notes:
  - Run it as root. Without, the units of other users' processes and GPUs in MIG mode may not be visible.
  - Indexes count in PCI order. So do NVML and C(nvidia-smi), and CUDA with E(CUDA_DEVICE_ORDER=PCI_BUS_ID). Without it CUDA puts the fastest
    GPU first, so compare UUIDs where this variable is not set.
  - The Python packages C(pynvml) and C(nvidia-ml-py3) bring a module of the same name and are not used.
seealso:
  - module: plumbline.sglang.pd_preflight
  - module: plumbline.sglang.wait_for_sglang_ready
"""

EXAMPLES = r"""
- name: Look at the GPUs
  plumbline.sglang.gpu_facts:

- name: Say why there are none
  ansible.builtin.debug:
    msg: "{{ ansible_facts.plumbline_gpus.reason }}. {{ ansible_facts.plumbline_gpus.next }}"
  when: not ansible_facts.plumbline_gpus.available

- name: Stop where a GPU is held by something else than SGLang
  ansible.builtin.assert:
    that:
      - item.value.processes is not none
      - item.value.processes | map(attribute='unit') | map('default', 'no unit', true) | reject('match', 'sglang-') | length == 0
    fail_msg: "GPU {{ item.value.index }} ({{ item.key }}) is held by {{ item.value.processes }} {{ item.value.notes }}"
  loop: "{{ ansible_facts.plumbline_gpus.gpus | dict2items }}"
  loop_control:
    label: "{{ item.key }}"
"""

RETURN = r"""
ansible_facts:
  description: Facts to add to those of the host.
  returned: always
  type: dict
  contains:
    plumbline_gpus:
      description: The GPUs.
      returned: always
      type: dict
      contains:
        available:
          description: Whether the driver answered and shows a GPU.
          type: bool
          returned: always
        reason:
          description: Why not. Empty where RV(ansible_facts.plumbline_gpus.available) is true.
          type: str
          returned: always
          sample: "no NVIDIA driver: nvidia-smi is not installed on this host"
        next:
          description: What to do about it. Empty where nothing is to be done.
          type: str
          returned: always
        source:
          description: Who was asked, V(nvml) or V(nvidia-smi). Empty where neither answered.
          type: str
          returned: always
        driver_version:
          description: Version of the driver; null where none is loaded.
          type: str
          returned: always
          sample: 580.95.05
        cuda_version:
          description: The newest CUDA that the driver can run, which is not the one that is installed; null where it was not told.
          type: str
          returned: always
          sample: "13.0"
        order:
          description: The keys of RV(ansible_facts.plumbline_gpus.gpus) in order of index.
          type: list
          elements: str
          returned: always
        notes:
          description: What is to be said of the whole, for example a GPU that does not answer.
          type: list
          elements: str
          returned: always
        gpus:
          description: The GPUs by UUID; by PCI address where the driver does not tell the UUID.
          type: dict
          returned: always
          contains:
            GPU_UUID:
              description: One GPU, under its own UUID.
              type: dict
              returned: for each GPU
              contains:
                uuid:
                  description: Its UUID; empty where the driver does not tell.
                  type: str
                  returned: always
                  sample: GPU-8f4a3c1e-5d2b-4e8a-9c70-1b2d3e4f5a60
                index:
                  description: Its number from 0 in PCI order.
                  type: int
                  returned: always
                name:
                  description: Its product name.
                  type: str
                  returned: always
                  sample: NVIDIA H100 80GB HBM3
                compute_capability:
                  description: Its compute capability; null where the driver does not tell.
                  type: str
                  returned: always
                  sample: "9.0"
                pci_address:
                  description: Its PCI address, as the kernel writes it; null where the driver does not tell.
                  type: str
                  returned: always
                  sample: "0000:17:00.0"
                numa_node:
                  description: The NUMA node it is attached to; null where the kernel knows none (C(-1), as in many virtual machines).
                  type: int
                  returned: always
                numa_cpus:
                  description: The processors of that node, as a kernel list. Empty where there is none.
                  type: str
                  returned: always
                  sample: 0-31,64-95
                memory_total:
                  description: Its memory in bytes; null where the driver has no such number.
                  type: int
                  returned: always
                memory_used:
                  description: Bytes in use. Without what the driver reserves, where C(memory_reserved) is a number.
                  type: int
                  returned: always
                memory_free:
                  description: Bytes that are free; null where what was told is more than the total.
                  type: int
                  returned: always
                memory_reserved:
                  description: Bytes that the driver and firmware keep; null where they are counted as used.
                  type: int
                  returned: always
                memory_source:
                  description: Who said these numbers, or said that there are none.
                  type: str
                  returned: always
                  sample: NVML nvmlDeviceGetMemoryInfo_v2
                memory_kind:
                  description:
                    - V(unified) where the driver says that it has no such numbers, since the GPU computes in the host's memory.
                    - V(dedicated) otherwise, also where they were refused; then C(notes) says why.
                  type: str
                  returned: always
                processes:
                  description:
                    - The processes that hold its memory, in order of PID. Null where they are not visible, as in a container with a PID namespace of its own
                      or without rights in MIG mode. That is not the same as none.
                  type: list
                  elements: dict
                  returned: always
                  contains:
                    pid:
                      description: Its PID.
                      type: int
                      returned: always
                    bytes:
                      description: Bytes that it holds; null where the driver does not tell. With MIG, the sum over its instances.
                      type: int
                      returned: always
                    kind:
                      description: V(compute), or V(graphics) where it only draws.
                      type: str
                      returned: always
                    command:
                      description: Its short name, never its arguments. Empty where it has ended.
                      type: str
                      returned: always
                      sample: python3
                    unit:
                      description: The systemd unit that it belongs to, by its control group; null where there is none.
                      type: str
                      returned: always
                      sample: sglang-prefill-main-0.service
                notes:
                  description: What could not be read of this GPU, and why.
                  type: list
                  elements: str
                  returned: always
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.respawn import has_respawned, probe_interpreters_for_module, respawn_module

from ..module_utils.host import gpus, nvml


def use_tools(python: str) -> None:
    """Run again under the tools' Python, where NVML's module is missing here and is there. Returns where not."""
    try:
        nvml.load()
    except nvml.NvmlError:
        if not has_respawned() and probe_interpreters_for_module([python], nvml.MODULE):
            respawn_module(python)


def main() -> None:
    """Read, and return it as facts."""
    module = AnsibleModule(
        argument_spec={"tools_python": {"type": "path", "default": "/opt/sglang/tools/env/bin/python"}},
        supports_check_mode=True,
    )
    use_tools(module.params["tools_python"])
    module.exit_json(changed=False, ansible_facts={"plumbline_gpus": gpus.facts(gpus.read())})


if __name__ == "__main__":
    main()
