# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The locks, and what counts as a wheel that is there."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from plumblab import pip, requirements, settings, wheelhouse
from plumblab.errors import LabError
from plumblab.requirements import Pin
from plumblab.wheelhouse import Wheelhouse

CUDA_REQUIREMENTS = [
    "filelock",
    'cuda-toolkit[cublas,cudart]==13.0.3; platform_system == "Linux"',
    'nvidia-cudnn-cu13==9.20.0.48; platform_system == "Linux"',
    'triton==3.5.0; platform_system == "Linux"',
    'tzdata; platform_system == "Windows"',
    'opt-einsum>=3.3; extra == "opt-einsum"',
]


def wheel(directory: Path, name: str, required: list[str]) -> Path:
    """Write a wheel that holds nothing but its metadata."""
    path = directory / f"{name}-1.0-py3-none-any.whl"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0", *(f"Requires-Dist: {line}" for line in required)]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}-1.0.dist-info/METADATA", "\n".join(lines) + "\n\n")
    return path


@pytest.mark.parametrize("lock", requirements.LOCKS)
def test_locks_name_each_distribution_once(lock: str) -> None:
    keys = [pin.key for pin in requirements.read(lock)]
    assert keys
    assert len(set(keys)) == len(keys)


def test_the_engine_lock_leaves_out_what_is_stood_in() -> None:
    keys = {pin.key for pin in requirements.read("engine")}
    assert not keys & {"triton", "torchvision", "pip", "sgl-kernel"}
    assert {"sglang", "torch", "mooncake-transfer-engine-non-cuda"} <= keys


@pytest.mark.parametrize("line", ["torch>=2", "torch", "torch==2.*", "./torch.whl", "torch==2 ; python_version > '3'"])
def test_a_lock_holds_exact_pins_alone(line: str) -> None:
    with pytest.raises(LabError, match="lock:2"):
        requirements.parse(f"# comment\n{line}\n", "lock")


def test_names_compare_in_their_normal_form() -> None:
    assert Pin("PyYAML", "6").key == "pyyaml"
    assert Pin("typing_extensions", "4").key == Pin("typing.extensions", "4").key == "typing-extensions"


def test_a_wheel_counts_when_it_is_noted_and_whole(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "house").mkdir()
    house = Wheelhouse(tmp_path / "house", "cp311")
    pin = Pin("thing", "1.0")
    assert not house.holds(pin)
    house.take(pin, wheel(tmp_path / "new", "thing", []))
    again = Wheelhouse(tmp_path / "house", "cp311")
    assert again.holds(pin)
    assert again.damaged() == []
    place = tmp_path / "house" / "thing-1.0-py3-none-any.whl"
    content = place.read_bytes()
    place.write_bytes(b"X" + content[1:])
    assert again.holds(pin)
    assert again.damaged() == [place.name]
    place.write_bytes(content[:-1])
    assert not again.holds(pin)


def test_wheels_that_no_lock_names_are_dropped(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "house").mkdir()
    house = Wheelhouse(tmp_path / "house", "cp311")
    kept, dropped = Pin("kept", "1.0"), Pin("dropped", "1.0")
    for pin in (kept, dropped):
        house.take(pin, wheel(tmp_path / "new", pin.name, []))
    house.keep_only([kept])
    assert [path.name for path in (tmp_path / "house").glob("*.whl")] == ["kept-1.0-py3-none-any.whl"]
    assert not Wheelhouse(tmp_path / "house", "cp311").holds(dropped)


def test_a_cuda_build_is_known_by_what_it_requires(tmp_path: Path) -> None:
    found = wheelhouse.beyond(wheel(tmp_path, "torch", CUDA_REQUIREMENTS), {"filelock"})
    assert [requirement.split("=")[0] for requirement in found] == ["cuda-toolkit[cublas,cudart]", "nvidia-cudnn-cu13"]
    assert wheelhouse.beyond(wheel(tmp_path, "torch", ["filelock"]), {"filelock"}) == []


def test_what_a_cuda_build_pins_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def closure(_pip: list[str], tag: str, requirement: str, _constraints: Path) -> list[Pin]:
        asked.append((tag, requirement))
        return [Pin("torch", "1.0"), Pin("filelock", "3"), Pin("triton", "3.5.0"), Pin("nvidia-cudnn-cu13", "9.20.0.48")]

    monkeypatch.setattr(pip, "find", lambda _settings: ["pip"])
    monkeypatch.setattr(pip, "closure", closure)
    (tmp_path / "new").mkdir()
    (tmp_path / "house").mkdir()
    lab = settings.from_environment({"PLUMBLINE_LAB_HOME": str(tmp_path)})
    engine = [Pin("torch", "1.0"), Pin("filelock", "3")]
    Wheelhouse(tmp_path / "house", "cp311").take(engine[0], wheel(tmp_path / "new", "torch", CUDA_REQUIREMENTS))
    for _time in range(2):
        house = Wheelhouse(tmp_path / "house", "cp311")
        assert wheelhouse._with_torch_pins(lab, house, engine) == [*engine, Pin("nvidia-cudnn-cu13", "9.20.0.48")]
    assert len(asked) == 1


def test_large_wheels_are_fetched_first_and_alone() -> None:
    pins = [Pin(f"small-{number}", "1") for number in range(10)] + [Pin("torch", "2"), Pin("nvidia-cudnn-cu13", "9")]
    groups = wheelhouse.batches(pins)
    assert [len(group) for group in groups] == [1, 1, 8, 2]
    assert sorted(pin for group in groups for pin in group) == sorted(pins)


def test_wheels_are_chosen_for_the_hosts_python() -> None:
    options = pip.target("cp312")
    assert {"--python-version=3.12", "--abi=cp312", "--abi=abi3", "--only-binary=:all:"} <= set(options)
    with pytest.raises(LabError):
        pip.target("py3")
