# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Layouts: the shipped ones are readable, and a wrong one is refused with what was expected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plumblab import layout
from plumblab.errors import LabError


def test_default_is_three_bookworm_hosts() -> None:
    assert layout.load("default") == layout.plain(3) == [layout.Host("lab1"), layout.Host("lab2"), layout.Host("lab3")]


@pytest.mark.parametrize("name", layout.shipped())
def test_shipped_layouts_survive_a_round_trip(name: str) -> None:
    hosts = layout.load(name)
    assert layout.parse(layout.dump(hosts), name) == hosts


def test_shipped_layouts_have_a_trixie_and_a_bare_host() -> None:
    assert "trixie" in {host.suite for host in layout.load("mixed")}
    assert {"full", "bare"} == {host.flavour for host in layout.load("full")}


def test_a_file_of_the_caller(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"hosts": [{"name": "lab9", "suite": "trixie"}]}))
    assert layout.load(str(path)) == [layout.Host("lab9", "trixie")]
    assert layout.load(str(path))[0].number == 9


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [{"name": "lab1"}, {"name": "lab1"}],
        [{"name": "web1"}],
        [{"name": "lab0"}],
        [{"name": "lab41"}],
        [{"name": "lab1", "suite": "sid"}],
        [{"name": "lab1", "flavour": "empty"}],
        [{"name": "lab1", "memory": "1g"}],
        [{"suite": "trixie"}],
    ],
)
def test_wrong_entries_are_refused(entries: list[dict[str, Any]]) -> None:
    with pytest.raises(LabError):
        layout.parse(entries, "mine.json")


def test_an_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(LabError, match="nonesuch") as caught:
        layout.load("nonesuch")
    assert "default" in caught.value.expected
