# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An image is built again exactly when its recipe changes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from plumblab import images


@pytest.fixture
def customize(tmp_path: Path) -> Path:
    """Return a copy of the image's files, to change."""
    return Path(shutil.copytree(images._CUSTOMIZE, tmp_path / "image"))


def test_key_does_not_depend_on_the_checkout(customize: Path) -> None:
    assert images.key("bookworm", "full", customize) == images.key("bookworm", "full")


def test_key_differs_by_kind() -> None:
    kinds = [("bookworm", "full"), ("bookworm", "bare"), ("trixie", "full"), ("trixie", "bare")]
    assert len({images.key(*kind) for kind in kinds}) == 4


def test_key_follows_the_files(customize: Path) -> None:
    before = images.key("bookworm", "full", customize)
    script = customize / "customize.sh"
    script.write_text(script.read_text() + "# changed\n")
    changed = images.key("bookworm", "full", customize)
    (customize / "etc" / "motd").write_text("new file\n")
    assert len({before, changed, images.key("bookworm", "full", customize)}) == 3


def test_key_follows_the_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    before = images.key("bookworm", "full")
    monkeypatch.setattr(images, "_PREREQUISITES", [*images._PREREQUISITES, "hwloc"])
    assert images.key("bookworm", "full") != before


def test_trixie_uses_the_names_of_its_time() -> None:
    assert "libcurl4t64" in images.packages("trixie", "full")
    assert "libcurl4" in images.packages("bookworm", "full")


def test_a_bare_host_lacks_what_the_transfer_library_loads() -> None:
    assert not {"libibverbs1", "librdmacm1", "libnuma1", "numactl"} & set(images.packages("bookworm", "bare"))
