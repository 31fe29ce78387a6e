# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write plugins/module_utils/planning/flag_catalogue.py from unpacked wheels.

    python3 tests/unit/update_flag_catalogue.py PACKAGE=VERSION=DIRECTORY...

A directory is what the wheel of ``sglang``, ``smg`` or ``sglang-router`` unpacks to. Give all releases that the catalogue shall hold.
"""

from __future__ import annotations

import importlib
import sys
import textwrap
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {
    "sglang": ("sglang/srt/arg_groups/fields/*.py", "sglang/srt/server_args.py"),
    "smg": ("smg/router_args.py",),
    "sglang-router": ("sglang_router/router_args.py",),
}
HEAD = '''# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The flags of the releases that this collection was written against; made by tests/unit/update_flag_catalogue.py.

``(package, version) -> (flags that stand alone, flags that take values)``, without the leading dashes.
"""

from __future__ import annotations

_TEXT: dict[tuple[str, str], tuple[str, str]] = {
'''

TAIL = """}

CATALOGUE: dict[tuple[str, str], tuple[frozenset[str], frozenset[str]]] = {
    release: (frozenset(bare.split()), frozenset(valued.split())) for release, (bare, valued) in _TEXT.items()
}
"""


def main(arguments: list[str]) -> None:
    """Write the catalogue of these releases."""
    package = types.ModuleType("plumbline_module_utils")
    package.__path__ = [str(ROOT / "plugins" / "module_utils")]
    sys.modules[package.__name__] = package
    reader = importlib.import_module(".planning.flag_source", package.__name__)
    parts = [HEAD]
    for argument in arguments:
        name, version, directory = argument.split("=", 2)
        paths = [path for pattern in SOURCES[name] for path in sorted(Path(directory).glob(pattern))]
        flags = reader.read(path.read_text(encoding="utf-8") for path in paths)
        parts.append(f'    ("{name}", "{version}"): (\n')
        for kind in (reader.BARE, reader.VALUE):
            words = " ".join(sorted(flag for flag, takes in flags.items() if takes == kind))
            parts.append(f'        """\n{textwrap.indent(textwrap.fill(words, 140, break_long_words=False, break_on_hyphens=False), " " * 8)}\n        """,\n')
        parts.append("    ),\n")
    parts.append(TAIL)
    (ROOT / "plugins" / "module_utils" / "planning" / "flag_catalogue.py").write_text("".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
