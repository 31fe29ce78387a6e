# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every module, in every condition of the table, says clearly what is wrong: no traceback, no empty message."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from modules.managed_host import Answer, ManagedHost
from modules.row import Nothing, Row
from modules.table import CONDITIONS, TABLE, everywhere
from runner.places import CHECKOUT

MODULES = sorted(path.stem for path in (CHECKOUT / "plugins" / "modules").glob("*.py") if path.stem != "__init__")
ROWS = everywhere()


@pytest.fixture(scope="module")
def host() -> Iterator[ManagedHost]:
    """Not below pytest's own directory: only its owner may enter that one."""
    root = Path(tempfile.mkdtemp(prefix="plumbline-modules-"))
    made = ManagedHost(root)
    try:
        yield made
    finally:
        made.close()
        shutil.rmtree(root)


def said(answer: Answer, row: Row) -> str:
    """The message, from where the row expects it; a result that is no text is read as what it looks like."""
    found: Any = answer.result
    for name in row.where:
        found = found[name]
    return found if isinstance(found, str) else str(found)


def test_every_module_has_a_row_for_every_condition() -> None:
    assert sorted(TABLE) == MODULES
    for module, cells in TABLE.items():
        assert tuple(cells) == CONDITIONS, module
        assert all(cell.why if isinstance(cell, Nothing) else cell for cell in cells.values()), module


@pytest.mark.parametrize(("module", "condition", "row"), ROWS, ids=[f"{module}-{condition}" for module, condition, _row in ROWS])
def test_what_is_wrong_is_said(host: ManagedHost, module: str, condition: str, row: Row) -> None:
    answer = host.run(module, row)
    assert "Traceback" not in answer.output and "MODULE FAILURE" not in answer.output, answer.output
    assert answer.result is not None, answer.output
    assert answer.failed == row.fails, answer.output
    text = said(answer, row)
    for part in row.says:
        assert host.fill(part) in text, text
    assert row.check or not answer.result.get("changed"), answer.output


def test_a_traceback_is_seen(host: ManagedHost) -> None:
    """What the test above relies on: a module that breaks shows it."""
    broken = host.root / "python" / "ansible_collections" / "plumbline" / "sglang" / "plugins" / "modules" / "broken.py"
    broken.write_text("def main():\n    return {}['unit']\n\n\nmain()\n")
    answer = host.run("broken", Row({}, ()))
    assert answer.failed and answer.result is None
    assert "Traceback" in answer.output
