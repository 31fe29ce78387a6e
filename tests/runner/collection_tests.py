# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run C(ansible-test sanity) and C(ansible-test units) on a copy of the working tree.

ansible-test wants the collection at a path that ends in C(ansible_collections/plumbline/sglang), calls interpreters by name,
drops all pip settings from the environment and fetches pip from a host of its own. So it gets a copy of what git knows or
would add, a PATH whose interpreters run, and a private home directory with the pip settings in a file and a stand-in for
the download. All of it lies in the user's cache, and so do the environments that ansible-test makes: the second run is quick.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
from pathlib import Path

from runner import interpreters, places, venvs
from runner.checkout import files
from runner.cores import CORES
from runner.errors import RunnerError

# The links that make the checkout importable are no content, and ansible-test refuses links to directories. The lab, the
# runner and the scenarios are programs of their own: ruff, mypy and shellcheck read them.
_LEFT_OUT = (".", "playbooks/.collections", "playbooks/ansible.cfg", "ansible.cfg", "molecule/", "requirements/")
_TESTS_KEPT = ("tests/unit/", "tests/lab/requirements/", "tests/integration/", "tests/config.yml")

# Names under which the supported versions of ansible-test look for pip's bootstrap script.
_BOOTSTRAP_NAMES = ("get_pip_24_2.py", "get_pip_25_2.py")


def run(command: str, core: str, arguments: list[str]) -> int:
    """Run C(ansible-test COMMAND) of one ansible-core on a fresh copy of the working tree; return its exit status.

    I(arguments) are passed on, for example the path of one test.
    """
    if core not in CORES:
        raise RunnerError(f"no ansible-core is called {core!r}. There are: {', '.join(CORES)}.")
    bin_directory = venvs.ensure(core)
    root = places.cache() / "ansible-test"
    collection = root / core / "ansible_collections" / "plumbline" / "sglang"
    _synchronise(collection)
    home = root / "home"
    _prepare_home(home, bin_directory)
    pythons = _link_interpreters(root / "pythons")
    environment = {
        **os.environ,
        "HOME": str(home),
        "PATH": os.pathsep.join([str(pythons), str(bin_directory), interpreters.search_path()]),
    }
    where = _unit_environments(core) if command == "units" else ["--venv"]
    tool = [str(bin_directory / "ansible-test"), command, *where, "--color", "no", *arguments]
    return subprocess.run(tool, cwd=collection, env=environment, stdin=subprocess.DEVNULL, check=False).returncode


def _unit_environments(core: str) -> list[str]:
    """Return the options that name the interpreters of the unit tests: the controller's own and the other targets that run here."""
    controller = venvs.interpreter(core)
    assert controller is not None, "the environment of this ansible-core has been made"
    targets = [version for version in CORES[core] if interpreters.find(version) is not None and version != controller.version]
    options = ["--controller", f"origin:python=venv/{controller.version}"]
    for version in (*targets, controller.version):
        options += ["--target-python", f"venv/{version}"]
    return options


def content_files(checkout: Path) -> list[str]:
    """Return the files of the working tree that ansible-test is shown, relative to the checkout."""
    return [name for name in files(checkout) if _is_content(name)]


def _is_content(name: str) -> bool:
    """Tell whether a file belongs to what ansible-test is shown."""
    if name.startswith("tests/"):
        return name.startswith(_TESTS_KEPT)
    return not name.startswith(_LEFT_OUT)


def _synchronise(target: Path) -> None:
    """Make I(target) hold exactly the content files, and keep the results and environments of earlier runs in it."""
    wanted = content_files(places.CHECKOUT)
    for stale in sorted(set(_files_below(target)) - set(wanted)):
        (target / stale).unlink()
    for name in wanted:
        copy = target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(places.CHECKOUT / name, copy, follow_symlinks=False)
    for directory, _subdirectories, _files in os.walk(target, topdown=False):
        if "tests/output" not in directory and not os.listdir(directory):
            os.rmdir(directory)


def _files_below(root: Path) -> list[str]:
    """Return the files below a directory, relative to it, without the results of earlier runs."""
    found: list[str] = []
    for directory, subdirectories, names in os.walk(root):
        relative = os.path.relpath(directory, root)
        if relative == "tests" and "output" in subdirectories:
            subdirectories.remove("output")
        found += [os.path.normpath(os.path.join(relative, name)) for name in names]
    return found


def _prepare_home(home: Path, bin_directory: Path) -> None:
    """Lay the pip stand-in and the user's pip settings where ansible-test and its pip look for them."""
    cache = home / ".ansible" / "test" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    for name in _BOOTSTRAP_NAMES:
        shutil.copyfile(Path(__file__).with_name("get_pip.py"), cache / name)
    settings = home / ".config" / "pip" / "pip.conf"
    settings.parent.mkdir(parents=True, exist_ok=True)
    # An index may be named with its password.
    descriptor = os.open(settings, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
        handle.write(_pip_settings(bin_directory))


def _pip_settings(bin_directory: Path) -> str:
    """Return the settings that pip has here, from its files and its environment variables, as the text of one pip.conf."""
    pip = [str(bin_directory / "python"), "-m", "pip", "--disable-pip-version-check"]
    listed = subprocess.run([*pip, "config", "list"], check=True, capture_output=True, text=True).stdout
    cache = subprocess.run([*pip, "cache", "dir"], check=False, capture_output=True, text=True).stdout.strip()
    return pip_conf(listed, cache)


def pip_conf(listed: str, cache: str) -> str:
    """Return the text of a pip.conf from the output of C(pip config list) and pip's cache directory (empty: none).

    A line reads C(section.key='value'), and the section C(:env:) stands for environment variables, which win.
    """
    sections: dict[str, dict[str, str]] = {"global": {"quiet": "1"}}
    if cache:
        sections["global"]["cache-dir"] = cache
    from_environment: dict[str, str] = {}
    for line in listed.splitlines():
        name, _equals, value = line.partition("=")
        section, _dot, key = name.rpartition(".")
        into = from_environment if section == ":env:" else sections.setdefault(section, {})
        into[key] = str(ast.literal_eval(value)).replace("\n", "\n    ")
    sections["global"].update(from_environment)
    lines: list[str] = []
    for section, settings in sections.items():
        lines += [f"[{section}]", *(f"{key} = {value}" for key, value in settings.items())]
    return "\n".join(lines) + "\n"


def _link_interpreters(directory: Path) -> Path:
    """Make a directory with one link per Python version that runs here, under the name that ansible-test calls."""
    directory.mkdir(parents=True, exist_ok=True)
    wanted = {f"python{found.version}": found.path for found in interpreters.available()}
    for stale in set(os.listdir(directory)) - set(wanted):
        (directory / stale).unlink()
    for name, path in wanted.items():
        link = directory / name
        if not link.is_symlink() or os.readlink(link) != path:
            link.unlink(missing_ok=True)
            link.symlink_to(path)
    return directory
