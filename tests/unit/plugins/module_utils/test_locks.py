# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Locks and the releases that follow from them."""

from __future__ import annotations

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.planning.locks import parse, release

LOCK = """
# a comment
sglang == 0.5.23   # refused: blanks
torch==2.13.0+cpu
Typing_Extensions==4.16.0 ; python_version < "3.13"
uvicorn[standard]==0.54.0 \\
    --hash=sha256:aaaa \\
    --hash=sha256:bbbb
/srv/wheels/sgl_kernel-0.4.10-cp310-abi3-linux_x86_64.whl
nixl @ file:///srv/wheels/nixl-1.5.1-py3-none-any.whl
"""


def test_exact_pins_and_wheels_are_understood() -> None:
    lock = parse(LOCK)
    assert dict(lock.pins) == {"torch": "2.13.0+cpu", "typing-extensions": "4.16.0", "uvicorn": "0.54.0", "sgl-kernel": "0.4.10", "nixl": "1.5.1"}
    assert lock.refused == ("sglang == 0.5.23",)
    assert "uvicorn[standard]==0.54.0 --hash=sha256:aaaa --hash=sha256:bbbb\n" in lock.text and "#" not in lock.text


@pytest.mark.parametrize(
    "line", ["x", "x>=1", "x~=1.0", "x==1.*", "x===1", "x<2", "-e .", "-r other.txt", "--find-links /w", "git+https://h/x.git", "./x", "x-1.0.tar.gz", "x.whl"]
)
def test_anything_else_is_refused(line: str) -> None:
    assert parse(line).refused == (line,)


def test_the_same_distribution_twice() -> None:
    assert parse("a==1\nA==2\n").repeated == ("a",)
    assert parse('a==1 ; python_version < "3.12"\na==2 ; python_version >= "3.12"\n').repeated == ()


def test_import_check() -> None:
    assert parse("nixl==1\nnixl-cu13==1\nsglang==1\ntorch==2\n").imports() == ["sglang", "nixl._api"]
    assert parse("mooncake-transfer-engine-non-cuda==1\nsglang==1\n").imports() == ["sglang", "mooncake.engine"]
    assert parse("sglang-router==1\n").imports() == ["sglang_router"]
    assert parse("nixl-cu12==1.5.1\n").transfer_libraries == ("nixl",)


def identity(text: str = "sglang==0.5.23\nnixl==1\n", kind: str = "engine", interpreter: str = "auto", wheelhouse: str | None = None) -> str:
    return release(kind, "sglang", "0.5.23", parse(text), interpreter, "/opt/sglang", wheelhouse)["id"]


def test_the_id_follows_from_the_pins_alone() -> None:
    assert identity().startswith("sglang-0.5.23-") and len(identity().rsplit("-", 1)[1]) == 12
    assert identity() == identity("# other comment\n\nnixl==1\nsglang==0.5.23")
    assert identity() == identity(wheelhouse="/srv/wheels"), "where wheels come from does not change what is installed"
    assert len({identity(), identity("sglang==0.5.23\nnixl==2\n"), identity(kind="router"), identity(interpreter="/usr/bin/python3.12")}) == 4


def test_release_paths() -> None:
    result = release("engine", "sglang", "0.5.23", parse("sglang==0.5.23\n"), "auto", "/opt/sglang", None)
    assert result["path"] == f"/opt/sglang/releases/{result['id']}" and result["python"] == f"{result['path']}/bin/python"
    assert result["requirements"] == "sglang==0.5.23\n" and result["wheelhouse"] is None
