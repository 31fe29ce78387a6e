# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: entries
short_description: The plan's entries of one host
version_added: 0.1.0
author: plumbline.sglang contributors (@plumbline-sglang)
description:
  - Selects from the plan (the fact C(plumbline_plan), made by M(plumbline.sglang.plan)) the instances of one host.
positional: host
options:
  _input:
    description: The plan.
    type: dict
    required: true
  host:
    description: The inventory name of the host.
    type: str
    required: true
  roles:
    description: Only instances of these roles; all where none is given.
    type: list
    elements: str
    choices: [prefill, decode, router]
seealso:
  - module: plumbline.sglang.plan
"""

EXAMPLES = r"""
- name: The prefill servers of this host
  ansible.builtin.debug:
    msg: "{{ ansible_facts.plumbline_plan | plumbline.sglang.entries(inventory_hostname, roles=['prefill']) | map(attribute='unit') }}"
"""

RETURN = r"""
_value:
  description: The entries, in the order of the plan.
  type: list
  elements: dict
"""

from collections.abc import Mapping, Sequence
from typing import Any


def entries(plan: Mapping[str, Any], host: str, roles: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """The entries of ``host`` in plan order, of the given roles only where any are given."""
    return [entry for entry in plan["instances"] if entry["host"] == host and (not roles or entry["role"] in roles)]


class FilterModule:
    """The collection's filters on plans."""

    def filters(self) -> dict[str, Any]:
        return {"entries": entries}
