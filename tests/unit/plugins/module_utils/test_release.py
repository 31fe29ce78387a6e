# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real release on this machine: built, left alone, mended, built anew."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.planning import locks
from ansible_collections.plumbline.sglang.plugins.module_utils.problem import Problem
from ansible_collections.plumbline.sglang.plugins.module_utils.progress import Progress
from ansible_collections.plumbline.sglang.plugins.module_utils.releases import manifest as release_manifest
from ansible_collections.plumbline.sglang.plugins.module_utils.releases import release as release_module
from ansible_collections.plumbline.sglang.plugins.module_utils.releases.interpreters import Unanswered
from ansible_collections.plumbline.sglang.plugins.module_utils.releases.release import Releases
from ansible_collections.plumbline.sglang.tests.unit import artifacts

LOCK = "alpha==1.0\nbeta==2.1\n"
BROKEN = "try:\n    import ctypes\n    ctypes.CDLL('libnowhere.so.9')\nexcept OSError:\n    raise ImportError('Please install broken')\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("release")
    wheels = base / "wheels"
    artifacts.wheel(wheels, "alpha", "1.0", {"alpha/__init__.py": "def main():\n    print('alpha runs')\n"}, "alpha-run = alpha:main")
    artifacts.wheel(wheels, "beta", "2.1", {"beta.py": "import alpha\n", "beta_template.py": "not {{ python }}\n"})
    artifacts.wheel(wheels, "broken", "1.0", {"broken.py": BROKEN})
    return base


def describe(place: Path, requirements: str = LOCK, imports: tuple[str, ...] = ("alpha", "beta"), name: str = "alpha-1.0-abc") -> dict[str, Any]:
    path = place / "releases" / name
    return {
        "id": name,
        "kind": "engine",
        "package": "alpha",
        "version": "1.0",
        "path": str(path),
        "python": str(path / "bin" / "python"),
        "interpreter": sys.executable,
        "requirements": requirements,
        "wheelhouse": str(place / "wheels"),
        "import_check": list(imports),
    }


def ensure(release: dict[str, Any], check_mode: bool = False, progress: str | None = None) -> dict[str, Any]:
    return Releases(release, Progress(progress)).ensure(check_mode)


@pytest.fixture(scope="module")
def built(place: Path) -> dict[str, Any]:
    release = describe(place)
    before = ensure(release, check_mode=True)
    assert (before["state"], before["changed"]) == ("would_build", True)
    assert "alpha==1.0\nbeta==2.1\n" in before["diff"]["after"]
    assert not (place / "releases").exists()
    result = ensure(release, progress=str(place / "progress"))
    assert (result["state"], result["changed"]) == ("built", True)
    return release


def site(release: dict[str, Any]) -> Path:
    return next(Path(release["path"]).glob("lib/python*/site-packages"))


def test_it_holds_the_lock_and_nothing_else(built: dict[str, Any], place: Path) -> None:
    assert sorted(path.name for path in site(built).glob("*.dist-info")) == ["alpha-1.0.dist-info", "beta-2.1.dist-info"]
    script = subprocess.run([Path(built["path"]) / "bin" / "alpha-run"], capture_output=True, text=True, check=True)
    assert script.stdout == "alpha runs\n"
    assert list(site(built).glob("alpha/__pycache__/*.pyc"))
    assert os.listdir(place / "releases") == [built["id"]]
    told = (place / "progress").read_text()
    assert "installed 2 of 2: beta 2.1" in told


def test_nobody_else_may_write_it_and_everybody_may_read_it(built: dict[str, Any]) -> None:
    for name, status in release_manifest.walk(built["path"]):
        assert os.path.islink(os.path.join(built["path"], name)) or status.st_mode & 0o066 == 0o044


def test_a_second_run_changes_nothing(built: dict[str, Any]) -> None:
    result = ensure(built)
    assert (result["state"], result["changed"]) == ("unchanged", False)
    assert result["distributions"] == ["alpha==1.0", "beta==2.1"]


def test_what_was_deleted_or_altered_is_mended_alone(built: dict[str, Any]) -> None:
    whole = release_manifest.load(os.path.join(built["path"], release_manifest.NAME))
    record = site(built) / "alpha-1.0.dist-info" / "RECORD"
    untouched = site(built) / "beta.py"
    inode = untouched.stat().st_ino
    (Path(built["path"]) / "bin" / "alpha-run").unlink()
    record.write_text(record.read_text() + "evil.py,,\n")
    (Path(built["path"]) / "pyvenv.cfg").unlink()
    (site(built) / "evil.py").write_text("import os\n")
    planned = ensure(built, check_mode=True)
    assert (planned["state"], planned["reinstalled"]) == ("would_mend", ["alpha"])
    assert (site(built) / "evil.py").exists()
    result = ensure(built)
    assert (result["state"], result["reinstalled"], result["changed"]) == ("mended", ["alpha"], True)
    assert not (site(built) / "evil.py").exists()
    assert untouched.stat().st_ino == inode
    assert release_manifest.load(os.path.join(built["path"], release_manifest.NAME)) == whole
    assert ensure(built)["state"] == "unchanged"


def test_lost_byte_code_is_compiled_again_without_reinstalling(built: dict[str, Any]) -> None:
    code = next(site(built).glob("alpha/__pycache__/*.pyc"))
    code.write_bytes(b"stale")
    result = ensure(built)
    assert (result["state"], result["reinstalled"]) == ("mended", [])
    assert code.read_bytes() != b"stale"
    assert ensure(built)["state"] == "unchanged"


def test_a_wheel_that_was_replaced_does_not_mend(built: dict[str, Any], place: Path) -> None:
    original = artifacts.wheel(place / "wheels", "beta", "2.1", {"beta.py": "import alpha as other\n"})
    (site(built) / "beta.py").unlink()
    with pytest.raises(Problem) as caught:
        ensure(built)
    assert "beta.py" in caught.value.seen
    assert not (site(built) / "beta.py").exists()
    original.unlink()
    artifacts.wheel(place / "wheels", "beta", "2.1", {"beta.py": "import alpha\n", "beta_template.py": "not {{ python }}\n"})
    assert ensure(built, check_mode=True)["reinstalled"] == ["beta"]


def test_an_unfinished_build_is_built_anew(built: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    # Compiling processes talk through a socket below TMPDIR, and the path of a socket must be short: one process does the work then.
    far = Path(built["path"]).parent / ("x" * 120)
    far.mkdir()
    monkeypatch.setenv("TMPDIR", str(far))
    for name in (release_manifest.NAME, release_manifest.UNPROVED):
        Path(built["path"], name).unlink(missing_ok=True)
    leftover = site(built) / "half_installed.py"
    leftover.write_text("")
    assert ensure(built, check_mode=True)["reason"] == "an unfinished build lies there"
    result = ensure(built)
    assert (result["state"], result["reason"]) == ("built", "an unfinished build lies there")
    assert not leftover.exists()
    assert list(site(built).glob("alpha/__pycache__/*.pyc"))


def test_a_release_that_does_not_import_does_not_exist(place: Path) -> None:
    release = describe(place, "broken==1.0\n", ("broken",), "broken-1.0-abc")
    for _run in range(2):
        with pytest.raises(Problem) as caught:
            ensure(release)
        assert "libnowhere.so.9: cannot open shared object file" in caught.value.seen
        assert not os.path.exists(os.path.join(release["path"], release_manifest.NAME))
    release["import_check"] = []
    assert ensure(release)["reason"] == "its import check had not passed yet"


@pytest.mark.parametrize(
    ("requirements", "seen"),
    [("alpha>=1.0\n", "no exact pin: alpha>=1.0"), ("", "an empty lock"), ("alpha==1.0\ngamma==3.0\n", "of: gamma==3.0"), ("alpha==9.0\n", "of: alpha==9.0")],
)
def test_a_bad_pin_is_named_before_anything_is_touched(place: Path, requirements: str, seen: str) -> None:
    release = describe(place, requirements, name="bad-1-abc")
    with pytest.raises(Problem) as caught:
        ensure(release)
    assert seen in caught.value.seen
    assert not os.path.exists(release["path"])


def test_check_mode_without_an_interpreter_warns(place: Path) -> None:
    release = {**describe(place, name="none-1-abc"), "interpreter": "/nowhere/python3.11"}
    result = ensure(release, check_mode=True)
    assert result["changed"]
    assert "/nowhere/python3.11" in result["warnings"][0]
    with pytest.raises(Problem):
        ensure(release)


def test_something_that_is_no_release_is_not_removed(place: Path) -> None:
    release = describe(place, name="foreign-1-abc")
    os.makedirs(release["path"])
    (Path(release["path"]) / "precious").write_text("data")
    with pytest.raises(Problem) as caught:
        ensure(release)
    assert "precious" in caught.value.seen
    assert (Path(release["path"]) / "precious").read_text() == "data"


def test_the_lock_may_come_in_any_order(built: dict[str, Any]) -> None:
    assert locks.parse("beta==2.1\n# comment\nalpha==1.0").text == LOCK
    assert ensure({**built, "requirements": "beta==2.1\nalpha==1.0\n"})["state"] == "unchanged"


def test_an_interpreter_that_gives_no_answer_is_no_reason_to_remove_a_release(built: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(path: str) -> None:
        raise Unanswered(f"{path} -I did not end within 60 s")

    before = sorted(os.listdir(built["path"]))
    monkeypatch.setattr(release_module, "ask_interpreter", silent)
    with pytest.raises(Problem) as caught:
        ensure(built)
    assert "did not end within 60 s" in caught.value.seen
    assert sorted(os.listdir(built["path"])) == before


def test_a_release_that_was_mended_and_does_not_import_is_not_called_whole(built: dict[str, Any]) -> None:
    ensure(built)
    (site(built) / "beta.py").unlink()
    for _run in range(2):
        with pytest.raises(Problem):
            ensure({**built, "import_check": ["nowhere"]})
        assert not os.path.exists(os.path.join(built["path"], release_manifest.NAME))
    assert (site(built) / "beta.py").exists()
    assert ensure(built)["reason"] == "its import check had not passed yet"
    assert ensure(built)["state"] == "unchanged"


def test_a_removal_that_is_cut_short_leaves_the_place_free(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = place / "cut"
    release = {**describe(place, name="cut-1-abc"), "path": str(root / "cut-1-abc")}
    os.makedirs(release["path"])
    (root / "cut-1-abc" / "pyvenv.cfg").write_text("")
    (root / ".trash-mine").mkdir()
    one = Releases(release, Progress(None))

    def killed(*_arguments: Any, **_options: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(release_module.shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            one._remove()
    assert not os.path.exists(release["path"])
    assert len(list(root.iterdir())) == 2
    one._clear_trash()
    assert os.listdir(root) == [".trash-mine"]
