# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: release
short_description: Install an engine or router release and keep it whole
version_added: 0.1.0
author: plumbline.sglang contributors (@plumbline-sglang)
description:
  - Builds a release (a virtual environment made from an exact lock, at its final path) where it is missing.
  - A release exists when its manifest C(release.json) does, which is put in place last, after the import check. An
    unfinished build is removed and built anew.
  - An installed release is compared with its manifest. What was deleted or altered is put back, by reinstalling
    exactly the packages that own it; processes that run from the release keep what they have open.
  - Byte code is compiled once, then every file belongs to root and can be read, not written, by others.
  - The task shows its progress while it works, and the work outlives a lost connection.
options:
  release:
    description: The release, as the plan describes it.
    type: dict
    required: true
    suboptions:
      id:
        description: Id of the release; the last part of O(release.path).
        type: str
        required: true
      kind:
        description: What it runs.
        type: str
        required: true
        choices: [engine, router, tools]
      package:
        description: The distribution that the release is named after, such as V(sglang) or V(smg).
        type: str
        required: true
      version:
        description: Its version.
        type: str
        required: true
      path:
        description: Absolute directory of the release.
        type: path
        required: true
      python:
        description: Interpreter inside the release. Default is C(bin/python) below O(release.path).
        type: path
      interpreter:
        description:
          - Interpreter to build with, as a path, or V(auto).
          - V(auto) is the first of C(python3.13), C(python3.12) and C(python3.11) for which the wheelhouse has every wheel.
        type: str
        default: auto
      requirements:
        description: Text of the lock, one exact pin per line.
        type: str
        required: true
      wheelhouse:
        description:
          - Directory of wheels on the host. Wheels may lie in it or in one directory per Python, such as C(cp311).
          - Without it packages come from the index that pip is configured for on the host.
        type: path
      import_check:
        description: Modules that must import in the release. Of V(sglang) and V(sgl_kernel) only their presence is checked.
        type: list
        elements: str
        default: []
  full_check:
    description: Hash every file of an installed release instead of only those whose size or time differs from the manifest.
    type: bool
    default: false
  progress_file:
    description: File on the host to which progress is appended, one line at a time. Set by the action plugin.
    type: path
attributes:
  check_mode:
    description: Says what would be built or mended. Where no interpreter is there yet it says so in a warning.
    support: full
  diff_mode:
    description: The pins, one per line, or what has drifted.
    support: full
"""

EXAMPLES = r"""
- name: Install the releases of this host
  plumbline.sglang.release:
    release: "{{ item }}"
  loop: "{{ ansible_facts.plumbline_plan.hosts[inventory_hostname].releases }}"
  loop_control:
    label: "{{ item.id }}"
"""

RETURN = r"""
id:
  description: Id of the release.
  returned: always
  type: str
  sample: sglang-0.5.23-3f2a90c1d2e4
directory:
  description: Its directory.
  returned: always
  type: str
  sample: /opt/sglang/releases/sglang-0.5.23-3f2a90c1d2e4
state:
  description: What was found or done, V(unchanged), V(built), V(mended), and in check mode V(would_build), V(would_mend).
  returned: success
  type: str
  sample: unchanged
reason:
  description: Why it was built or mended. Empty when it is unchanged.
  returned: success
  type: str
  sample: not installed
interpreter:
  description: Interpreter it was, or would be, built with. Empty in check mode when there is none.
  returned: success
  type: str
  sample: /usr/bin/python3.11
distributions:
  description: Installed packages with their versions. Empty where nothing is installed.
  returned: success
  type: list
  elements: str
  sample: ["torch==2.13.0", "sglang==0.5.23"]
size:
  description: Size of all its files in bytes.
  returned: when it is installed
  type: int
  sample: 1825361100
fingerprint:
  description: SHA-256 over the paths and contents of all its files but byte code.
  returned: when it is installed
  type: str
  sample: 0f3c8a0c6a8e6f4f9a54f4b9a0ddc0ffee0123456789abcdef0123456789abcd
drift:
  description: What differed from the manifest, one line per package, then the environment's own files, byte code, modes and strays.
  returned: when it is or would be mended
  type: list
  elements: str
  sample: ["numpy 2.3.1: lib/python3.11/site-packages/numpy/version.py (altered)"]
reinstalled:
  description: Names of the packages that were, or would be, reinstalled.
  returned: when it is or would be mended
  type: list
  elements: str
  sample: [numpy]
seconds:
  description: How long it took, in seconds.
  returned: success
  type: float
  sample: 135.2
seen:
  description: What was seen.
  returned: when the release cannot be installed
  type: str
expected:
  description: What was expected.
  returned: when the release cannot be installed
  type: str
next:
  description: What to do next.
  returned: when the release cannot be installed
  type: str
"""

import os

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.plumbline.sglang.plugins.module_utils.problem import Problem, of_storage
from ansible_collections.plumbline.sglang.plugins.module_utils.progress import Progress
from ansible_collections.plumbline.sglang.plugins.module_utils.releases.release import Releases

RELEASE = {
    "id": {"type": "str", "required": True},
    "kind": {"type": "str", "required": True, "choices": ["engine", "router", "tools"]},
    "package": {"type": "str", "required": True},
    "version": {"type": "str", "required": True},
    "path": {"type": "path", "required": True},
    "python": {"type": "path"},
    "interpreter": {"type": "str", "default": "auto"},
    "requirements": {"type": "str", "required": True},
    "wheelhouse": {"type": "path"},
    "import_check": {"type": "list", "elements": "str", "default": []},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "release": {"type": "dict", "required": True, "options": RELEASE},
            "full_check": {"type": "bool", "default": False},
            "progress_file": {"type": "path"},
        },
        supports_check_mode=True,
    )
    release = module.params["release"]
    release["python"] = release["python"] or os.path.join(release["path"], "bin/python")
    try:
        result = Releases(release, Progress(module.params["progress_file"]), module.params["full_check"]).ensure(module.check_mode)
    except Problem as problem:
        module.fail_json(id=release["id"], directory=release["path"], **problem.result())
    except OSError as error:
        module.fail_json(id=release["id"], directory=release["path"], **of_storage(f"release {release['id']} cannot be installed", error).result())
    for warning in result.pop("warnings", []):
        module.warn(warning)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
