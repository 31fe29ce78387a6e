# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: model_snapshot
short_description: Have a complete, verified model directory on a host
version_added: 0.1.0
author: plumbline.sglang contributors (@plumbline-sglang)
description:
  - Without O(model.copy_from) the directory is on the host already. It is verified where it is and never altered.
  - With O(model.copy_from) it is copied from the controller, into a stage beside its place on the same file system, verified there by the hash of
    every file, given to root and renamed into place. An interrupted copy is taken up. A copy that matches the source costs nothing.
  - Complete means that every file an index names is there and holds the tensors it should, and no others; that every safetensors file is exactly as
    long as its header says; that configuration and tokenizer are there; and that no download was left unfinished. Files are never just counted.
  - The service user must be able to read everything. This is tried as that user.
  - Shows its progress while it works and outlives a lost connection.
options:
  model:
    description: The model, as the plan describes it.
    type: dict
    required: true
    suboptions:
      name:
        description: Name of the model. Its manifest is named after it.
        type: str
        required: true
      path:
        description: Absolute directory on the host.
        type: path
        required: true
      copy_from:
        description: Directory on the controller to copy from.
        type: str
      served_name:
        description: Name it is served under. Not used here.
        type: str
  service_user:
    description: User that must be able to read the model. An unprivileged stand-in is used while it does not exist.
    type: str
    default: sglang
  manifest_directory:
    description: Directory on the host in which the manifest is kept.
    type: path
    default: /var/lib/sglang/manifests
  full_check:
    description: Hash the weights too and hold them against the manifest. Only for a directory that is on the host already.
    type: bool
    default: false
  phase:
    description: Part of the work. Set by the action plugin, which sends the files between V(prepare) and V(finish).
    type: str
    choices: [verify, inspect, prepare, finish]
    default: verify
  source:
    description: Files of O(model.copy_from). Set by the action plugin.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Path below the directory.
        type: str
        required: true
      size:
        description: Size in bytes.
        type: int
        required: true
      mtime_ns:
        description: Modification time in nanoseconds since 1970.
        type: int
        required: true
      sha256:
        description: SHA-256 of the content, where it is known.
        type: str
  progress_file:
    description: File on the host to which progress is appended, one line at a time. Set by the action plugin.
    type: path
attributes:
  check_mode:
    description: Verifies, and says what would be copied.
    support: full
  diff_mode:
    description: One file per line.
    support: full
"""

EXAMPLES = r"""
- name: Have the models of this host
  plumbline.sglang.model_snapshot:
    model: "{{ item }}"
  loop: "{{ ansible_facts.plumbline_plan.hosts[inventory_hostname].models }}"
  loop_control:
    label: "{{ item.name }}"
"""

RETURN = r"""
name:
  description: Name of the model.
  returned: always
  type: str
  sample: tiny-llama
directory:
  description: Its directory on the host.
  returned: always
  type: str
  sample: /srv/models/tiny-llama
state:
  description: V(verified) on the host, V(current) (a copy that matches its source), V(copied), or V(would_copy) in check mode.
  returned: success
  type: str
  sample: current
files:
  description: How many files it has.
  returned: success
  type: int
  sample: 12
size:
  description: Size of all files in bytes.
  returned: success
  type: int
  sample: 16069543821
notes:
  description: What could not be proved, or is odd and harmless.
  returned: success
  type: list
  elements: str
  sample: []
manifest:
  description: File on the host that records sizes, times and hashes.
  returned: success
  type: str
  sample: /var/lib/sglang/manifests/tiny-llama.json
differs:
  description: For a directory on the host, files that changed since they were recorded (C(+), C(~) or C(-) and the path).
  returned: when O(model.copy_from) is not given
  type: list
  elements: str
  sample: []
send:
  description: Files that were, or would be, copied.
  returned: when something was, or would be, copied
  type: list
  elements: str
  sample: [model.safetensors]
bytes:
  description: Size in bytes of the files that were, or would have to be, copied or compared. 0 for a copy that matches its source.
  returned: when O(model.copy_from) is given
  type: int
  sample: 16069530000
seen:
  description: What was seen.
  returned: when the snapshot is not usable
  type: str
expected:
  description: What was expected.
  returned: when the snapshot is not usable
  type: str
next:
  description: What to do next.
  returned: when the snapshot is not usable
  type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.plumbline.sglang.plugins.module_utils.problem import Problem, of_storage
from ansible_collections.plumbline.sglang.plugins.module_utils.progress import Progress
from ansible_collections.plumbline.sglang.plugins.module_utils.snapshots.manifest import Source
from ansible_collections.plumbline.sglang.plugins.module_utils.snapshots.store import Store

SOURCE = {
    "path": {"type": "str", "required": True},
    "size": {"type": "int", "required": True},
    "mtime_ns": {"type": "int", "required": True},
    "sha256": {"type": "str"},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "model": {
                "type": "dict",
                "required": True,
                "options": {
                    "name": {"type": "str", "required": True},
                    "path": {"type": "path", "required": True},
                    "copy_from": {"type": "str"},
                    "served_name": {"type": "str"},
                },
            },
            "service_user": {"type": "str", "default": "sglang"},
            "manifest_directory": {"type": "path", "default": "/var/lib/sglang/manifests"},
            "full_check": {"type": "bool", "default": False},
            "phase": {"type": "str", "choices": ["verify", "inspect", "prepare", "finish"], "default": "verify"},
            "source": {"type": "list", "elements": "dict", "default": [], "options": SOURCE},
            "progress_file": {"type": "path"},
        },
        supports_check_mode=True,
    )
    params = module.params
    store = Store(params["model"], params["manifest_directory"], params["service_user"], Progress(params["progress_file"]))
    source = [Source(**file) for file in params["source"]]
    facts = {"name": params["model"]["name"], "directory": store.path}
    try:
        if params["phase"] == "verify":
            result = store.verify(module.check_mode, params["full_check"])
        elif params["phase"] == "inspect" or module.check_mode:
            result = store.inspect(source)
            if result["current"] and not module.check_mode:
                store.refresh(source)
        elif params["phase"] == "prepare":
            result = store.prepare(source)
        else:
            result = store.finish(source)
    except Problem as problem:
        module.fail_json(**facts, **problem.result())
    except OSError as error:
        module.fail_json(**facts, **of_storage(f"model {facts['name']} at {store.path}", error).result())
    if not result.get("send"):
        result.pop("send", None)
    module.exit_json(**{**facts, **result})


if __name__ == "__main__":
    main()
