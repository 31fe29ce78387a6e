# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples of every module run, as they stand in the documentation, on a deployed PD group; once for real and once in check mode."""

from __future__ import annotations

import pathlib
import re
from typing import Any

import pytest
import yaml
from faults.playbook import ROOT, Playbook

#: Module -> the host on which its examples make sense.
WHERE = {
    "gpu_facts": "lab1",
    "host_program": "lab1",
    "instance_info": "lab1",
    "model_snapshot": "lab1",
    "pd_canary": "lab3",
    "pd_preflight": "lab1",
    "plan": "all",
    "release": "lab1",
    "report": "lab1",
    "router_check": "lab3",
    "served_model_check": "lab3",
    "wait_for_sglang_ready": "lab1",
}


def in_the_lab(entries: dict[str, dict[str, Any]]) -> dict[str, str]:
    """What the documentation names -> what it is called in the lab."""
    decode, router = entries["decode"], entries["router"]
    return {
        "http://192.0.2.12:30000": decode["url"],
        "192.0.2.11": entries["prefill"]["address"],
        "192.0.2.10": router["address"],
        "http://127.0.0.1:30001": router["url"],
        "http://127.0.0.1:29000": f"http://{router['address']}:29000",
        "unit: sglang-prefill-main-default": f"unit: {entries['prefill']['unit']}\n    device: cpu",
        "served_name: llama": f"served_name: {router['served_name']}",
        "/srv/models/llama": entries["prefill"]["model"]["path"],
        "credentials/main/": "credentials/tiny/",
        "'main'": "'tiny'",
        "expected_bytes_per_token: 70272": "expected_bytes_per_token: 512",
    }


def examples(name: str, words: dict[str, str]) -> list[dict[str, Any]]:
    """The tasks of a module's EXAMPLES, in the lab's words."""
    text = (ROOT / "plugins" / "modules" / f"{name}.py").read_text(encoding="utf-8")
    found = re.search(r'^EXAMPLES = r?"""(.*?)"""', text, re.S | re.M)
    assert found, f"{name} has no examples"
    said = found.group(1)
    for documented, here in words.items():
        said = said.replace(documented, here)
    tasks = yaml.safe_load(said)
    assert tasks, f"{name} has no examples"
    return list(tasks)


@pytest.mark.parametrize("mode", [[], ["--check"]], ids=["for real", "check mode"])
def test_the_examples_of_every_module_run(entries: dict[str, dict[str, Any]], tmp_path: pathlib.Path, mode: list[str]) -> None:
    modules = {path.stem for path in (ROOT / "plugins" / "modules").glob("*.py")}
    assert modules == set(WHERE), "say above where the examples of each module run"
    words = in_the_lab(entries)
    plays = [{"hosts": "all", "gather_facts": False, "tasks": [{"plumbline.sglang.plan": None, "run_once": True}]}]
    plays += [
        {"name": name, "hosts": where, "gather_facts": False, "vars": {"plumbline_router": entries["router"]}, "tasks": examples(name, words)}
        for name, where in WHERE.items()
    ]
    playbook = tmp_path / "examples.yml"
    playbook.write_text(yaml.safe_dump(plays, sort_keys=False))
    run = Playbook(str(playbook), *mode)
    assert run.status == 0, run.output[-4000:]
    assert run.changed == [], "what is deployed is what the examples want"
