# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packs this package into one file that any Python from 3.9 runs: ``plumbline.pyz``. The same sources give the same bytes."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile

PACKAGE = "plumbline"
FILE = "plumbline.pyz"
#: Where a host looks for a Python by itself; units name their own.
_SHEBANG = b"#!/usr/bin/env python3\n"
_MAIN = f"from {PACKAGE}.program.cli import main\n\nraise SystemExit(main())\n"
#: The oldest time that a zip archive can hold: times of files must not change the archive.
_EPOCH = (1980, 1, 1, 0, 0, 0)
_SUFFIXES = (".py", ".json", ".txt")


def sources(root: str) -> dict[str, bytes]:
    """Every file of the package below ``root``: path in the package -> content."""
    found = {}
    for directory, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name != "__pycache__")
        for name in files:
            if name.endswith(_SUFFIXES):
                path = os.path.join(directory, name)
                with open(path, "rb") as file:
                    found[os.path.relpath(path, root).replace(os.sep, "/")] = file.read()
    return dict(sorted(found.items()))


def build(root: str, version: str) -> bytes:
    """The whole archive, from the package at ``root``; ``version`` is the collection's."""
    files = sources(root)
    digest = hashlib.sha256(b"\0".join(name.encode() + b"\0" + content for name, content in files.items())).hexdigest()[:12]
    content = {
        "__main__.py": _MAIN.encode(),
        f"{PACKAGE}/__init__.py": f'"""plumbline.sglang {version} without Ansible."""\n\nVERSION = "{version}+{digest}"\n'.encode(),
        **{f"{PACKAGE}/{name}": text for name, text in files.items() if name != "__init__.py"},
    }
    buffer = io.BytesIO()
    buffer.write(_SHEBANG)
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, text in content.items():
            info = zipfile.ZipInfo(name, _EPOCH)
            info.external_attr = 0o644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, text)
    return buffer.getvalue()
