# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module around the GPU readers: its result, and under which Python it reads."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.plumbline.sglang.plugins.module_utils.host import gpus, nvidia_smi, nvml
from ansible_collections.plumbline.sglang.plugins.module_utils.host.command import CommandError, Completed
from ansible_collections.plumbline.sglang.plugins.modules import gpu_facts
from ansible_collections.plumbline.sglang.tests.unit.module_run import answer_of

FIXTURES = Path(__file__).parents[2] / "fixtures" / "nvidia_smi"
TOOLS = "/opt/sglang/tools/env/bin/python"


class Run:
    """Runs the module where nvidia-smi says this, pynvml is missing, and the interpreters in ``able`` have it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys
        self.said: Any = CommandError("nvidia-smi is not installed on this host")
        self.able: set[str] = set()
        self.respawned = False
        self.under: list[str] = []
        self.probed: list[str] = []
        monkeypatch.setitem(sys.modules, "pynvml", None)
        # Tests may run in a container; what the module says there is tested with the readers.
        monkeypatch.setattr(gpus, "_FIRST_PID_NAMESPACE", os.readlink("/proc/self/ns/pid"))

    def program(self, argv: Any, timeout: float) -> Completed:
        if isinstance(self.said, Exception):
            raise self.said
        return Completed(0, self.said, "")

    def probe(self, paths: list[str], name: str) -> str | None:
        self.probed += [f"{path} {name}" for path in paths]
        return next((path for path in paths if path in self.able), None)

    def respawn(self, python: str) -> None:
        self.under.append(python)
        print("{}")
        raise SystemExit(0)

    def __call__(self, **options: Any) -> dict[str, Any]:
        self._monkeypatch.setattr(nvidia_smi, "run", self.program)
        self._monkeypatch.setattr(gpu_facts, "probe_interpreters_for_module", self.probe)
        self._monkeypatch.setattr(gpu_facts, "has_respawned", lambda: self.respawned)
        self._monkeypatch.setattr(gpu_facts, "respawn_module", self.respawn)
        return answer_of(gpu_facts, options, self._capsys)


@pytest.fixture(name="run")
def _run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(monkeypatch, capsys)


def test_no_driver_is_a_fact(run: Run) -> None:
    answer = run()
    told = answer["ansible_facts"]["plumbline_gpus"]
    assert (told["available"], told["gpus"], told["order"], told["source"]) == (False, {}, [], "")
    assert "nvidia-smi is not installed on this host" in told["reason"] and told["next"]
    assert not answer.get("failed")


@pytest.mark.parametrize("name", ["h100x8", "gb10", "a100_mig", "a100_mig_no_permission"])
def test_gpus_are_facts_and_check_mode_says_the_same(run: Run, name: str) -> None:
    run.said = (FIXTURES / f"{name}.xml").read_text()
    told = run()["ansible_facts"]["plumbline_gpus"]
    assert told["available"] and told["source"] == "nvidia-smi"
    assert [told["gpus"][key]["index"] for key in told["order"]] == list(range(len(told["gpus"])))
    assert all(key == gpu["uuid"] for key, gpu in told["gpus"].items())
    assert run(_ansible_check_mode=True)["ansible_facts"]["plumbline_gpus"] == told


def test_every_fact_is_documented(run: Run) -> None:
    run.said = (FIXTURES / "h100x8.xml").read_text()
    told = run()["ansible_facts"]["plumbline_gpus"]
    contains = yaml.safe_load(gpu_facts.RETURN)["ansible_facts"]["contains"]["plumbline_gpus"]["contains"]
    one = contains["gpus"]["contains"]["GPU_UUID"]["contains"]
    assert set(told) == set(contains)
    assert all(set(gpu) == set(one) for gpu in told["gpus"].values())
    assert all(set(item) == set(one["processes"]["contains"]) for gpu in told["gpus"].values() for item in gpu["processes"])


def test_it_runs_under_the_tools_python_where_that_has_nvml(run: Run) -> None:
    run.able = {TOOLS}
    run()
    assert (run.under, run.probed) == ([TOOLS], [f"{TOOLS} pynvml"])


def test_a_tools_python_without_nvml_is_not_used(run: Run) -> None:
    assert run(tools_python="/srv/tools/bin/python")["ansible_facts"]
    assert (run.under, run.probed) == ([], ["/srv/tools/bin/python pynvml"])


def test_it_does_not_run_again_twice(run: Run) -> None:
    run.able, run.respawned = {TOOLS}, True
    assert run()["ansible_facts"]
    assert run.under == []


def test_it_stays_where_nvml_is(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.able = {TOOLS}
    monkeypatch.setattr(nvml, "load", lambda: (None, ()))
    gpu_facts.use_tools(TOOLS)
    assert run.under == []


def test_a_wrong_parameter_is_named(run: Run) -> None:
    answer = run(tools_pyton=TOOLS)
    assert answer["failed"] and "tools_pyton" in answer["msg"]
