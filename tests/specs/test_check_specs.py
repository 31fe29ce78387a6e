# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The specs check says yes to a role that agrees with itself, and names the file, the key and the remedy where it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

import check_specs

SPECS = """
argument_specs:
  main:
    short_description: Say hello
    options:
      hello_text: {type: str, description: The text., default: "hello"}
      hello_count: {type: int, description: How often., default: 1}
      hello_to: {type: str, description: To whom., required: true}
"""
DEFAULTS = """
hello_text: hello
hello_count: 1
"""
TASKS = """
- name: Say it
  ansible.builtin.debug:
    msg: "{{ hello_text }} {{ hello_to }} of {{ plumbline_plan.hosts[inventory_hostname].address }}"
  loop: "{{ range(hello_count) }}"
  loop_control:
    index_var: hello_index
  register: hello_said
  when: hello_index < hello_count
- name: Show it
  ansible.builtin.template:
    src: said.j2
    dest: /dev/null
  when: hello_said is changed
"""
TEMPLATE = "{% for line in hello_said.results %}{{ line.msg }}{% endfor %}"
PLAYBOOK = """
- name: Greet
  hosts: all
  tasks:
    - name: Greet
      block:
        - name: Say hello
          ansible.builtin.include_role:
            name: plumbline.sglang.hello
          vars:
            hello_to: you
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with one role and one playbook that agree."""
    contents = {
        "roles/hello/README.md": "# hello",
        "roles/hello/meta/main.yml": "dependencies: []",
        "roles/hello/meta/argument_specs.yml": SPECS,
        "roles/hello/defaults/main.yml": DEFAULTS,
        "roles/hello/tasks/main.yml": TASKS,
        "roles/hello/templates/said.j2": TEMPLATE,
        "playbooks/greet.yml": PLAYBOOK,
        "meta/runtime.yml": "action_groups: {all: [greet]}",
        "plugins/modules/greet.py": "",
    }
    for name, text in contents.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_a_role_that_agrees_has_no_finding(checkout: Path) -> None:
    assert check_specs.check(checkout) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "finding"),
    [
        ("roles/hello/defaults/main.yml", "count: 1", "count: 2", "roles/hello/defaults/main.yml: hello_count: is 2 here and 1 in"),
        ("roles/hello/defaults/main.yml", "count: 1", "count: true", "roles/hello/defaults/main.yml: hello_count: is True here and 1"),
        ("roles/hello/defaults/main.yml", "hello_count: 1", "", "roles/hello/defaults/main.yml: hello_count: missing; add it"),
        ("roles/hello/defaults/main.yml", "hello_count: 1", "hello_count: 1\nhello_x: 1", "hello_x: not declared; add it to the options"),
        ("roles/hello/defaults/main.yml", "hello_count: 1", "hello_count: 1\nhello_to: me", "hello_to: is required by meta"),
        ("roles/hello/meta/argument_specs.yml", "hello_to:", "greet_to:", "greet_to: lacks the prefix hello_"),
        ("roles/hello/tasks/main.yml", "{{ hello_text }}", "hello", "roles/hello/meta/argument_specs.yml: hello_text: nothing in"),
        ("roles/hello/tasks/main.yml", "{{ hello_text }}", "{{ sglang_text }}", "roles/hello/tasks/main.yml: sglang_text: used and declared"),
        ("roles/hello/tasks/main.yml", "hello_said is", "hello_sad is", "roles/hello/tasks/main.yml: hello_sad: used and declared nowhere"),
        ("roles/hello/templates/said.j2", "hello_said", "hello_sad", "roles/hello/templates/said.j2: hello_sad: used and declared nowhere"),
        ("playbooks/greet.yml", "hello_to: you", "hello_two: you", "playbooks/greet.yml: hello_two: passed to the role hello, which"),
        ("playbooks/greet.yml", "hello_to: you", "hello_two: you", "playbooks/greet.yml: hello_to: required by the role hello"),
        ("meta/runtime.yml", "greet", "welcome", "meta/runtime.yml: greet: a module that the action group 'all' does not list"),
        ("meta/runtime.yml", "greet", "welcome", "meta/runtime.yml: welcome: listed in the action group 'all', but there is no"),
        ("playbooks/greet.yml", "sglang.hello", "sglang.hullo", "playbooks/greet.yml: plumbline.sglang.hullo: no such role"),
    ],
)
def test_a_difference_is_named(checkout: Path, file: str, old: str, new: str, finding: str) -> None:
    path = checkout / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    assert any(finding in found for found in check_specs.check(checkout)), check_specs.check(checkout)


@pytest.mark.parametrize("file", check_specs.REQUIRED_FILES)
def test_a_missing_file_is_named(checkout: Path, file: str) -> None:
    (checkout / "roles/hello" / file).unlink()
    assert f"roles/hello/{file}: missing; every role has one, add it" in check_specs.check(checkout)


def test_the_exit_status_says_whether_there_are_findings(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_specs.main([str(checkout)]) == 0
    (checkout / "roles/hello/README.md").unlink()
    assert check_specs.main([str(checkout)]) == 1
    assert "roles/hello/README.md: missing" in capsys.readouterr().out
