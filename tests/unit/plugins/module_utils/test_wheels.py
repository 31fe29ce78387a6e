# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a wheelhouse serves a lock."""

from __future__ import annotations

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.planning import locks
from ansible_collections.plumbline.sglang.plugins.module_utils.releases import wheels

PY311 = (3, 11, 2)


@pytest.mark.parametrize(
    ("filename", "served"),
    [
        ("torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl", ("torch", "2.13.0+cpu")),
        ("smg-1.13.0-cp38-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", ("smg", "1.13.0")),
        ("typing_extensions-4.1-py3-none-any.whl", ("typing-extensions", "4.1")),
        ("six-1.16-py2.py3-none-any.whl", ("six", "1.16")),
        ("mooncake_transfer_engine-0.3-cp311-cp311-linux_x86_64.whl", ("mooncake-transfer-engine", "0.3")),
        ("einops-0.8.tar.gz", ("einops", "0.8")),
        ("torch-2.13.0-cp312-cp312-manylinux_2_28_x86_64.whl", None),
        ("torch-2.13.0-cp311-cp311-manylinux_2_28_aarch64.whl", None),
        ("torch-2.13.0-cp311-cp311-musllinux_1_2_x86_64.whl", None),
        ("newer-1-cp312-abi3-manylinux_2_28_x86_64.whl", None),
        ("torch-2.13.0-cp311-cp311-win_amd64.whl", None),
        ("engine.txt", None),
    ],
)
def test_a_file_name_tells_what_it_serves(filename: str, served: tuple[str, str] | None) -> None:
    assert wheels.serves(filename, PY311, "x86_64") == served


@pytest.mark.parametrize(
    ("wanted", "found", "same"),
    [
        ("1.0", "1.0.0", True),
        ("2.0-RC1", "2.0rc1", True),
        ("2.13.0", "2.13.0+cpu", True),
        ("2.13.0+cu130", "2.13.0+cpu", False),
        ("1.0", "1.0.post1", False),
        ("1.10", "1.1", False),
    ],
)
def test_versions_are_compared_as_pip_does(wanted: str, found: str, same: bool) -> None:
    assert wheels.same_version(wanted, found) is same


def test_pins_without_a_wheel_are_all_named() -> None:
    lock = locks.parse("torch==2.13.0\nnumpy==2.0\nsix==1.16\nold==1; python_version < '3.9'\nx @ https://index.example/x-1.0-py3-none-any.whl\n")
    files = ["torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl", "numpy-2.1-cp311-cp311-manylinux_2_28_x86_64.whl"]
    assert [pin.shown for pin in wheels.missing(wheels.pins(lock), files, PY311, "x86_64")] == ["numpy==2.0", "six==1.16"]
