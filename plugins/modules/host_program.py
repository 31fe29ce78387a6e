# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: host_program
short_description: Install the program that checks instances without Ansible
version_added: 0.1.0
author: plumbline.sglang contributors (@plumbline-sglang)
description:
  - Packs the collection's checks into one executable file and installs it on the host. Units call it before they start, timers and people use it
    to look at the instances of the host. It needs nothing but Python 3.9 or newer.
  - The same collection gives the same file on every host.
options:
  dest:
    description: The file on the host. Its directory must exist.
    type: path
    required: true
attributes:
  check_mode:
    support: full
    description: Says whether the file would be replaced.
  diff_mode:
    support: none
    description: The file is an archive, of which a diff would say nothing.
seealso:
  - module: plumbline.sglang.wait_for_sglang_ready
"""

EXAMPLES = r"""
- name: Install the program
  plumbline.sglang.host_program:
    dest: /opt/sglang/tools/plumbline.pyz
"""

RETURN = r"""
dest:
  description: The file on the host.
  returned: success
  type: str
checksum:
  description: The SHA-1 of the file, as M(ansible.builtin.copy) gives it.
  returned: when it is installed
  type: str
"""
