# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The manifest of a release, and what has drifted from it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.releases import manifest as manifests
from ansible_collections.plumbline.sglang.plugins.module_utils.releases import mend as release_mend

SITE = "lib/python3.11/site-packages"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    site = tmp_path / SITE
    info = site / "alpha-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "INSTALLER").write_text("pip\n")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: Alpha\nVersion: 1.0\n\nName: in the text\n")
    (info / "RECORD").write_text("alpha/__init__.py,sha256=x,6\n../../../bin/alpha,sha256=y,4\nalpha-1.0.dist-info/RECORD,,\n")
    (site / "alpha" / "__pycache__").mkdir(parents=True)
    (site / "alpha" / "__init__.py").write_text("x = 1\n")
    (site / "alpha" / "__pycache__" / "__init__.cpython-311.pyc").write_bytes(b"code")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "alpha").write_text("run\n")
    (tmp_path / "bin" / "alpha").chmod(0o755)
    (tmp_path / "bin" / "python").symlink_to("/usr/bin/python3")
    manifests.seal(str(tmp_path), None, None)
    return tmp_path


def take(root: Path) -> manifests.Manifest:
    return manifests.take(str(root), SITE, {"id": "x"})


def test_every_file_has_its_owner(root: Path) -> None:
    manifest = take(root)
    assert manifest.distributions == [manifests.Distribution("Alpha", "1.0", 10)]
    owners = {name: entry.owner for name, entry in manifest.files.items()}
    assert owners[f"{SITE}/alpha/__init__.py"] == 0
    assert owners["bin/alpha"] == 0
    assert owners["bin/python"] == manifests.ENVIRONMENT
    assert owners[f"{SITE}/alpha/__pycache__/__init__.cpython-311.pyc"] == manifests.BYTE_CODE
    assert manifest.files["bin/python"].link == "/usr/bin/python3"


def test_an_untouched_tree_has_no_drift(root: Path) -> None:
    assert not manifests.compare(str(root), take(root))
    assert not manifests.compare(str(root), take(root), full=True)


def test_every_kind_of_drift_is_seen(root: Path) -> None:
    manifest = take(root)
    source = root / SITE / "alpha" / "__init__.py"
    (root / "bin" / "alpha").write_text("changed\n")
    os.utime(source, ns=(1, 1))
    (root / SITE / "alpha-1.0.dist-info" / "INSTALLER").unlink()
    (root / SITE / "alpha-1.0.dist-info" / "METADATA").chmod(0o666)
    (root / SITE / "stray.pth").write_text("import os")
    (root / "bin" / "python").unlink()
    (root / "bin" / "python").symlink_to("/usr/bin/python2")
    drift = manifests.compare(str(root), manifest)
    assert drift.altered == ["bin/alpha", "bin/python"]
    assert drift.times == [f"{SITE}/alpha/__init__.py"]
    assert drift.missing == [f"{SITE}/alpha-1.0.dist-info/INSTALLER"]
    assert drift.modes == [f"{SITE}/alpha-1.0.dist-info/METADATA"]
    assert drift.extra == [f"{SITE}/stray.pth"]


def test_other_content_of_the_same_size_and_time_takes_a_full_check(root: Path) -> None:
    manifest, source = take(root), root / SITE / "alpha" / "__init__.py"
    status = source.stat()
    source.write_text("x = 2\n")
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert not manifests.compare(str(root), manifest)
    assert manifests.compare(str(root), manifest, full=True).altered == [f"{SITE}/alpha/__init__.py"]


def test_byte_code_that_python_adds_is_no_drift(root: Path) -> None:
    manifest = take(root)
    (root / SITE / "alpha" / "__pycache__" / "__init__.cpython-311.opt-1.pyc").write_bytes(b"more")
    assert not manifests.compare(str(root), manifest)


def test_the_fingerprint_is_of_content_and_not_of_byte_code(root: Path) -> None:
    before = take(root).fingerprint()
    (root / SITE / "alpha" / "__pycache__" / "__init__.cpython-311.pyc").write_bytes(b"other")
    assert take(root).fingerprint() == before
    (root / "bin" / "alpha").write_text("other")
    assert take(root).fingerprint() != before


def test_a_manifest_is_read_back(root: Path) -> None:
    manifest, path = take(root), str(root / manifests.NAME)
    manifest.dump(path)
    assert manifests.load(path) == manifest
    assert not manifests.compare(str(root), manifest)


@pytest.mark.parametrize("spoil", ["edited", "torn", "schema", "absent"])
def test_a_manifest_that_is_not_whole_is_none(root: Path, spoil: str) -> None:
    path = root / manifests.NAME
    take(root).dump(str(path))
    document = json.loads(path.read_text())
    if spoil == "edited":
        document["files"]["bin/alpha"][4] = "0" * 64
    elif spoil == "schema":
        document["schema"] = 99
    path.write_text(path.read_text()[:-9] if spoil == "torn" else json.dumps(document))
    if spoil == "absent":
        path.unlink()
    assert manifests.load(str(path)) is None


@pytest.mark.parametrize(("mode", "sealed"), [(0o100664, 0o644), (0o100777, 0o755), (0o100600, 0o644), (0o106755, 0o755), (0o040700, 0o755), (0o100700, 0o755)])
def test_sealing_leaves_writing_to_the_owner(mode: int, sealed: int) -> None:
    assert manifests.sealed_mode(mode) == sealed


def test_a_repair_names_exactly_who_owns_what_is_broken(root: Path) -> None:
    manifest = take(root)
    code = f"{SITE}/alpha/__pycache__/__init__.cpython-311.pyc"
    drift = manifests.Drift([code], ["bin/alpha"], [f"{SITE}/alpha/__init__.py"], [], ["stray"])
    repair = release_mend.plan(manifest, drift)
    assert repair == release_mend.Repair([0], False, [code], ["stray"], [f"{SITE}/alpha/__init__.py"])
    assert release_mend.described(manifest, repair, drift)[0] == "Alpha 1.0: bin/alpha (altered)"
    only_code = release_mend.plan(manifest, manifests.Drift([code], [], [], [], []))
    assert only_code.distributions == [] and not only_code.environment
    assert release_mend.plan(manifest, manifests.Drift(["bin/python"], [], [], [], [])).environment


def test_the_source_of_byte_code() -> None:
    assert release_mend.source_of("a/__pycache__/b.cpython-311.pyc") == "a/b.py"
