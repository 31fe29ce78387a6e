# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The engine's and the routers' wheels, fetched once per Python tag and never again while they are whole.

Wheels are downloaded below `.partial/`, a few with each pip, and renamed into place when they are complete, then noted
in the manifest with size and SHA-256. An interrupted run goes on with the wheels that are not noted.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import threading
import time
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

from . import pip, requirements
from .console import Heartbeat, say, size
from .errors import LabError
from .files import exclusive, read_json, remove_tree, sha256, write_json, write_text
from .requirements import Pin
from .settings import Settings

DEFAULT_TAG = "cp311"
# Replaced by the CPU stand-ins on the hosts (triton alone is 1 GB).
_STOOD_IN = {"triton", "torchvision"}
_MANIFEST = "manifest.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_WORKERS = 2
# A pip costs two seconds before its first byte, so small wheels share one; a large one is not lost with its neighbours.
_BATCH = 8
_LARGE = re.compile(r"torch|mooncake-.*|nvidia-.*|nixl-.*|sglang.*|grpcio|smg")


class Wheelhouse:
    """One directory of wheels with its manifest."""

    def __init__(self, directory: Path, tag: str) -> None:
        self.directory = directory
        self.tag = tag
        self._guard = threading.Lock()
        known = read_json(directory / _MANIFEST) or {}
        self.entries: dict[str, dict[str, Any]] = dict(known.get("wheels") or {})
        # What torch's build pins beyond the lock, and for which build and lock that was found.
        self.beyond: dict[str, Any] = dict(known.get("beyond") or {})

    def save(self) -> None:
        """Write the manifest."""
        write_json(self.directory / _MANIFEST, {"python_tag": self.tag, "wheels": self.entries, "beyond": self.beyond})

    def holds(self, pin: Pin) -> bool:
        """Return whether the pinned wheel is there, by the size that the manifest notes."""
        entry = self.entries.get(str(pin))
        if not entry:
            return False
        try:
            return (self.directory / entry["file"]).stat().st_size == entry["size"]
        except OSError:
            return False

    def take(self, pin: Pin, wheel: Path) -> int:
        """Move a complete wheel into place and note it; return its size."""
        count = wheel.stat().st_size
        entry = {"file": wheel.name, "size": count, "sha256": sha256(wheel)}
        wheel.replace(self.directory / wheel.name)
        with self._guard:
            self.entries[str(pin)] = entry
            self.save()
        return count

    def keep_only(self, pins: Sequence[Pin]) -> None:
        """Drop wheels that no lock names any more, and files that the manifest does not know."""
        wanted = {str(pin) for pin in pins}
        kept = {key: entry for key, entry in self.entries.items() if key in wanted}
        if kept != self.entries:
            self.entries = kept
            self.save()
        files = {entry["file"] for entry in kept.values()}
        for path in self.directory.glob("*.whl"):
            if path.name not in files:
                say(f"removing {path.name}: in no lock")
                path.unlink()

    def damaged(self) -> list[str]:
        """Return the files whose SHA-256 is not the one that was noted."""
        bad = []
        for entry in self.entries.values():
            path = self.directory / entry["file"]
            if not path.exists() or sha256(path) != entry["sha256"]:
                bad.append(entry["file"])
        return bad


def ensure(settings: Settings, tag: str = DEFAULT_TAG, verify: bool = False) -> Path:
    """Have every wheel of every lock; return the wheelhouse's directory."""
    begun = time.monotonic()
    pip.target(tag)
    directory = settings.wheelhouse / tag
    directory.mkdir(parents=True, exist_ok=True)
    with exclusive(settings.cache / f"wheelhouse-{tag}.lock", "wheelhouse"):
        house = Wheelhouse(directory, tag)
        if verify:
            _drop_damaged(house)
        pins = {lock: requirements.read(lock) for lock in requirements.LOCKS}
        fetched = _fetch(settings, house, [pin for lock in pins.values() for pin in lock])
        pins["engine"] = _with_torch_pins(settings, house, pins["engine"])
        fetched += _fetch(settings, house, pins["engine"])
        house.keep_only([pin for lock in pins.values() for pin in lock])
        for lock, content in pins.items():
            write_text(directory / f"{lock}.txt", "".join(f"{pin}\n" for pin in content))
        remove_tree(directory / ".partial")
    total = sum(int(entry["size"]) for entry in house.entries.values())
    done = f"{fetched} fetched" if fetched else "nothing to do"
    say(f"{directory}: {len(house.entries)} wheels, {size(total)}; {done} ({time.monotonic() - begun:.1f} s)")
    return directory


def beyond(wheel: Path, locked: set[str]) -> list[str]:
    """Return the requirements of a wheel (on Linux, without extras) whose names are not in a lock."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = HeaderParser().parsestr(archive.read(name).decode())
    found = []
    for requirement in metadata.get_all("Requires-Dist") or []:
        words, _, marker = requirement.partition(";")
        match = _NAME.match(words.strip())
        if not match:
            raise LabError(f"{wheel.name} requires {requirement!r}", "a requirement that begins with a name", "fetch the wheel again: --verify")
        name = requirements.normalised(match.group())
        # The only other marker that torch uses is the Python version, which pip's resolver judges below.
        if "extra" in marker or ("platform_system" in marker and "Linux" not in marker):
            continue
        if name not in locked and name not in _STOOD_IN:
            found.append(requirement)
    return found


def _with_torch_pins(settings: Settings, house: Wheelhouse, engine: list[Pin]) -> list[Pin]:
    """Return the engine's lock, with what this wheelhouse's torch needs on top: a CUDA build pins its libraries."""
    torch = next(pin for pin in engine if pin.key == "torch")
    wheel = house.directory / house.entries[str(torch)]["file"]
    locked = {pin.key for pin in engine}
    if not beyond(wheel, locked):
        return engine
    question = hashlib.sha256("\n".join([house.entries[str(torch)]["sha256"], *map(str, engine)]).encode()).hexdigest()
    if house.beyond.get("question") != question:
        say(f"{wheel.name} is a build that pins libraries of its own; asking pip which")
        constraints = house.directory / ".partial" / "constraints.txt"
        write_text(constraints, "".join(f"{pin}\n" for pin in engine))
        with Heartbeat("resolving torch's requirements"):
            found = pip.closure(pip.find(settings), house.tag, str(wheel), constraints)
        pins = sorted(str(pin) for pin in found if pin.key not in locked | _STOOD_IN)
        house.beyond = {"question": question, "pins": pins}
        house.save()
    return engine + requirements.parse("\n".join(house.beyond["pins"]), str(house.directory / _MANIFEST))


def _fetch(settings: Settings, house: Wheelhouse, pins: Sequence[Pin]) -> int:
    """Fetch the pinned wheels that are not there, a few at a time; return how many."""
    unique = {pin.key + pin.version: pin for pin in pins}
    missing = [pin for pin in unique.values() if not house.holds(pin)]
    if not missing:
        return 0
    command = pip.find(settings)
    done: list[int] = []
    active: set[str] = set()

    def one(batch: Sequence[Pin]) -> None:
        names = str(batch[0]) + (f" and {len(batch) - 1} more" if len(batch) > 1 else "")
        active.add(names)
        begun = time.monotonic()
        for pin, wheel in _download(house, command, batch).items():
            done.append(house.take(pin, wheel))
            say(f"  [{len(done)}/{len(missing)}] {pin} {size(done[-1])} ({time.monotonic() - begun:.1f} s)")
        active.discard(names)

    say(f"fetching {len(missing)} of {len(unique)} wheels for {house.tag}")
    progress = Heartbeat("fetching", lambda: f"{size(_in_flight(house))} under way: {'; '.join(sorted(active))}")
    with progress, ThreadPoolExecutor(max_workers=_WORKERS) as pool:
        futures = [pool.submit(one, batch) for batch in batches(missing)]
        try:
            for future in futures:
                future.result()
        except BaseException:
            for future in futures:
                future.cancel()
            raise
    return len(missing)


def batches(pins: Sequence[Pin]) -> list[list[Pin]]:
    """Group pins for one pip each: large wheels alone and first, small ones together."""
    large = [[pin] for pin in pins if _LARGE.fullmatch(pin.key)]
    small = [pin for pin in pins if not _LARGE.fullmatch(pin.key)]
    return large + [small[at : at + _BATCH] for at in range(0, len(small), _BATCH)]


def _download(house: Wheelhouse, command: Sequence[str], pins: Sequence[Pin]) -> dict[Pin, Path]:
    """Download wheels into a directory of their own and return them, each checked to be a whole archive."""
    partial = house.directory / ".partial" / f"{pins[0].key}-{pins[0].version}"
    remove_tree(partial)
    (partial / "tmp").mkdir(parents=True)
    _refuse_full_disk(house.directory)
    pip.download(command, house.tag, pins, partial)
    found = {}
    for pin in pins:
        wheel = next((path for path in partial.glob("*.whl") if requirements.normalised(path.name.split("-")[0]) == pin.key), None)
        if wheel is None:
            raise LabError(f"pip download {pin}: no wheel in {partial}", "one wheel", f"see `pip download --no-deps {pin}`")
        with zipfile.ZipFile(wheel) as archive:
            archive.getinfo(next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA")))
        found[pin] = wheel
    return found


def _in_flight(house: Wheelhouse) -> int:
    total = 0
    for path in (house.directory / ".partial").rglob("*"):
        try:
            total += path.stat().st_size
        except OSError:
            continue
    return total


def _refuse_full_disk(directory: Path) -> None:
    free = shutil.disk_usage(directory).free
    if free < 1 << 30:
        raise LabError(f"{size(free)} free on the disk of {directory}", "1 GiB or more", "free some space, or set PLUMBLINE_LAB_HOME to another disk")


def _drop_damaged(house: Wheelhouse) -> None:
    with Heartbeat("reading every wheel"):
        bad = house.damaged()
    for name in bad:
        say(f"{name} is damaged or missing; it will be fetched again")
        (house.directory / name).unlink(missing_ok=True)
