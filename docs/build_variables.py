# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write docs/variables.md from the schema of user variables. Run it after a change of plugins/module_utils/planning/schema.py."""

from __future__ import annotations

import importlib
import sys
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def markdown() -> str:
    """The document as the checkout's own schema says, wherever the checkout lies."""
    # The modules import each other relatively, so they need a package; this one stands for plugins/module_utils.
    package = types.ModuleType("plumbline_module_utils")
    package.__path__ = [str(ROOT / "plugins" / "module_utils")]
    sys.modules[package.__name__] = package
    return importlib.import_module(".planning.schema_docs", package.__name__).to_markdown()


if __name__ == "__main__":
    (ROOT / "docs" / "variables.md").write_text(markdown(), encoding="utf-8")
