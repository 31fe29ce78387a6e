# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of what releases and models need of the host: interpreter, wheels, libraries, models, room."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from ..host.libraries import TRANSFER_LIBRARIES, package_of, venv_package
from ..planning import locks
from ..problem import Problem, listed
from ..progress import human_bytes
from ..releases import import_check, wheels
from ..releases import manifest as release_manifest
from ..releases.interpreters import choose
from ..releases.release import wheel_content
from .types import CLEAN, INCONCLUSIVE, PROBLEM, UNCHECKED, Check, Context, Found

#: An engine with its CUDA libraries, where no wheelhouse tells the size.
ENGINE_BYTES = 12 << 30


def _installed(release: Mapping[str, Any]) -> bool:
    return os.path.isfile(os.path.join(release["path"], release_manifest.NAME))


def interpreter(context: Context) -> Iterator[Found]:
    """There is a Python for each release that is not installed yet, and the wheelhouse serves it."""
    family = context.read.os_release().family
    for release in context.releases:
        if _installed(release):
            yield Found(CLEAN, f"{release['id']} is installed", "an interpreter and packages for it")
            continue
        pins = wheels.pins(locks.parse(release["requirements"]))
        try:
            one = choose(release, pins, context.read.interpreter)
        except Problem as problem:
            yield Found(PROBLEM, problem.seen, f"{release['id']}: {problem.expected}", problem.next)
            continue
        source = f"the wheelhouse {release['wheelhouse']}" if release.get("wheelhouse") else "the index of the host's pip settings (not asked)"
        expected = f"{release['id']}: an interpreter with venv and ensurepip, and its {len(pins)} packages"
        if one.has_venv:
            yield Found(CLEAN, f"{one.path} ({one.dotted}), packages from {source}", expected)
            continue
        package = venv_package((one.version[0], one.version[1]), family)
        seen = f"{one.path} ({one.dotted}) lacks venv or ensurepip"
        if family:
            yield Found(INCONCLUSIVE, seen, expected, f"the build role installs {package}", [package])
        else:
            yield Found(PROBLEM, seen, expected, f"install them: {package} or the like in this distribution")


def libraries(context: Context) -> Iterator[Found]:
    """The system libraries that the engine's transfer library loads are there."""
    if not any(release["kind"] == "engine" for release in context.releases):
        return
    system = context.read.os_release()
    expected = f"{', '.join(TRANSFER_LIBRARIES)} can be loaded (without them the scheduler dies after 20 s: 'Please install mooncake')"
    lacking = [name for name in TRANSFER_LIBRARIES if not context.read.can_load(name)]
    if not lacking:
        yield Found(CLEAN, "all of them can be loaded", expected)
        return
    packages = [package for name in lacking for package in [package_of(name, system.family)] if package]
    if len(packages) == len(lacking):
        yield Found(INCONCLUSIVE, "missing: " + ", ".join(lacking), expected, f"the build role installs {' '.join(packages)}", packages)
    else:
        yield Found(PROBLEM, f"missing: {', '.join(lacking)} on {system.name}", expected, "install the packages of this distribution that hold them")


def imports(context: Context) -> Iterator[Found]:
    """Installed releases can be imported: their transfer library finds everything it loads."""
    for release in context.releases:
        modules = [name for name in release.get("import_check") or () if name.partition(".")[0] not in import_check.PRESENCE_ONLY]
        if not modules:
            continue
        expected = f"{release['id']}: {listed(modules)} can be imported"
        if not _installed(release):
            yield Found(UNCHECKED, f"{release['id']} is not installed yet", expected, "the build role imports them before the release counts")
            continue
        failed = [one for one in import_check.check(release["python"], modules) if not one.ok]
        if failed:
            problem = import_check.to_problem(failed, release["id"], context.read.os_release().family)
            packages = [package for one in failed for package in [package_of(one.library or "", context.read.os_release().family)] if package]
            yield Found(PROBLEM, problem.seen, expected, problem.next, packages)
        else:
            yield Found(CLEAN, f"{listed(modules)} can be imported", expected)


def flags(context: Context) -> Iterator[Found]:
    """What the flags of the plan were compared with: the catalogue that comes with the collection, as long as nothing is installed."""
    for release in context.releases:
        if release["kind"] == "tools":
            continue
        expected = f"the flags that the plan gives {release['id']} exist in the installed release"
        if not _installed(release):
            seen = f"{release['id']} is not installed yet: the plan compared the flags with the bundled catalogue of {release['package']} {release['version']}"
            yield Found(UNCHECKED, seen, expected, "nothing; a build of your own may know other flags than the catalogue")


def models(context: Context) -> Iterator[Found]:
    """Each model's directory is on the host, or will be copied to it; the service user can read it."""
    for model in context.models:
        path = model["path"]
        expected = f"{model['name']}: a model directory at {path}"
        names = context.read.entries(path)
        if names is None:
            if model.get("copy_from"):
                yield Found(INCONCLUSIVE, f"nothing at {path} yet", expected, f"the model role copies it from {model['copy_from']} on the controller")
            else:
                yield Found(PROBLEM, f"there is no directory {path}", expected, "put the model there, or name a directory of the controller (copy_from)")
            continue
        if "config.json" not in names:
            yield Found(PROBLEM, f"{path} holds no config.json, but {listed(names, 5)}", expected, "name the directory that holds config.json")
            continue
        user = context.read.account(context.user)
        closed = context.read.unreadable([path, *(os.path.join(path, name) for name in names)], user)
        if closed is None:
            yield Found(UNCHECKED, f"whether {user.shown} can read {path} (this needs root)", expected, "run with become")
        elif closed:
            yield Found(
                PROBLEM,
                f"{user.shown} cannot read {listed(closed, 3)}",
                expected,
                f"let others read it (chmod -R o+rX {path}; and o+x on every directory above it); the engine would say 'No such file'",
            )
        else:
            yield Found(CLEAN, f"{path}: {len(names)} entries, readable by {user.shown}", expected)


def space(context: Context) -> Iterator[Found]:
    """There is room for the releases that are still to be built. The model role checks the room for models."""
    for release in context.releases:
        if _installed(release):
            continue
        free = context.read.free_bytes(release["path"])
        size = _size(context, release)
        subject = f"{release['id']} at {release['path']}"
        if size is None:
            if release["kind"] == "engine" and free < ENGINE_BYTES:
                yield Found(
                    INCONCLUSIVE,
                    f"{human_bytes(free)} free",
                    f"{subject}: some {human_bytes(ENGINE_BYTES)} free",
                    "the size is not known before the packages are fetched: free some space if it is the CUDA build",
                )
            continue
        bucket, advice = (CLEAN, "") if free >= size * 1.3 else (PROBLEM, f"free {human_bytes(size * 1.3 - free)} or more there")
        yield Found(bucket, f"{human_bytes(free)} free", f"{subject}: {human_bytes(size * 1.3)} free", advice)


def _size(context: Context, release: Mapping[str, Any]) -> int | None:
    pins = wheels.pins(locks.parse(release["requirements"]))
    try:
        one = choose(dict(release), pins, context.read.interpreter)
    except Problem:
        return None
    return wheel_content(release.get("wheelhouse"), pins, one) or None


CHECKS: Mapping[str, Check] = {
    "interpreter": interpreter,
    "libraries": libraries,
    "imports": imports,
    "flags": flags,
    "models": models,
    "space": space,
}
