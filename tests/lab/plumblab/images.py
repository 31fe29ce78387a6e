# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Root file systems from distribution packages, kept as tar files under a key of their recipe."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from . import process
from .console import Heartbeat, say, size
from .errors import LabError
from .files import remove_tree
from .podman import Podman
from .settings import SOURCE, Settings

_PACKAGES = [
    "ca-certificates",
    "curl",
    "dbus",
    "iproute2",
    "openssh-server",
    "passwd",
    "procps",
    "python3",
    "python3-apt",
    "python3-venv",
    "sudo",
    "systemd",
    "systemd-sysv",
]
# What the engine's transfer library and the NUMA binding load; a "bare" host lacks them.
_PREREQUISITES = ["libcurl4", "libgomp1", "libibverbs1", "libnuma1", "librdmacm1", "numactl"]
# Names that changed with the 64-bit time transition.
_RENAMED: dict[str, dict[str, str]] = {
    "trixie": {"libcurl4": "libcurl4t64", "librdmacm1": "librdmacm1t64"},
}
_REPOSITORY = "localhost/plumbline-lab"
_CUSTOMIZE = SOURCE / "image"
# Documentation and translations: half the size, and nothing in a lab reads them.
_EXCLUDED = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")

Kind = tuple[str, str]


def packages(suite: str, flavour: str) -> list[str]:
    """Return the packages of an image."""
    names = _PACKAGES + (_PREREQUISITES if flavour == "full" else [])
    renamed = _RENAMED.get(suite, {})
    return sorted(renamed.get(name, name) for name in names)


def command(suite: str, flavour: str, target: Path, customize: Path = _CUSTOMIZE) -> list[str]:
    """Return the command that builds an image into a tar file."""
    excluded = [f"--dpkgopt=path-exclude={pattern}" for pattern in _EXCLUDED]
    return [
        "mmdebstrap",
        "--variant=minbase",
        "--format=tar",
        f"--include={','.join(packages(suite, flavour))}",
        *excluded,
        f"--customize-hook=copy-in {customize / 'etc'} /",
        f'--customize-hook=sh {customize / "customize.sh"} "$1"',
        suite,
        str(target),
    ]


def key(suite: str, flavour: str, customize: Path = _CUSTOMIZE) -> str:
    """Return a hash of everything that the image is made from, except the archive's state of the day."""
    digest = hashlib.sha256()
    # Fixed paths in place of this checkout's, so that two checkouts share one image.
    digest.update(json.dumps(command(suite, flavour, Path("target"), Path("image"))).encode())
    for path in sorted(path for path in customize.rglob("*") if path.is_file()):
        digest.update(f"\0{path.relative_to(customize)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def reference(suite: str, flavour: str) -> str:
    """Return the image's name in podman's storage."""
    return f"{_REPOSITORY}:{suite}-{flavour}-{key(suite, flavour)}"


def tar_path(settings: Settings, suite: str, flavour: str) -> Path:
    """Return where the image's tar file is kept."""
    return settings.images / f"{suite}-{flavour}-{key(suite, flavour)}.tar"


def ensure(settings: Settings, podman: Podman, kind: Kind) -> str:
    """Have an image in podman's storage, building it where no tar file of its key exists; return its name."""
    name = reference(*kind)
    if podman.attempt("image", "exists", name).returncode == 0:
        return name
    tar = tar_path(settings, *kind)
    if not tar.exists():
        build(settings, kind)
    with Heartbeat(f"unpacking {tar.name}"):
        podman.capture("import", "--quiet", str(tar), name, timeout=600)
    _drop_older(settings, podman, kind)
    return name


def build(settings: Settings, kind: Kind) -> Path:
    """Build an image's tar file under a temporary name, then give it its own."""
    suite, flavour = kind
    tar = tar_path(settings, suite, flavour)
    settings.images.mkdir(parents=True, exist_ok=True)
    tidy(settings)
    scratch = _scratch(settings)
    scratch.mkdir(mode=0o755)
    partial = settings.images / f".{tar.stem}.partial.tar"
    try:
        seconds = process.logged(
            f"building the image {suite}-{flavour}",
            command(suite, flavour, partial),
            settings.images / f"{suite}-{flavour}.log",
            env={**os.environ, "TMPDIR": str(scratch)},
        )
        if not partial.exists() or partial.stat().st_size < 50 << 20:
            raise LabError(
                f"mmdebstrap left {'no tar file' if not partial.exists() else size(partial.stat().st_size)}",
                "a root file system of some 200 MiB",
                f"read {settings.images / f'{suite}-{flavour}.log'}, then run `lab up` again",
            )
        partial.replace(tar)
    finally:
        tidy(settings)
    say(f"built {tar.name} ({size(tar.stat().st_size)}) in {seconds:.0f} s")
    return tar


def _drop_older(settings: Settings, podman: Podman, kind: Kind) -> None:
    """Remove what earlier recipes of this kind left, except an image that a host still runs from."""
    suite, flavour = kind
    for tar in settings.images.glob(f"{suite}-{flavour}-*.tar"):
        if tar != tar_path(settings, *kind):
            tar.unlink()
    names = {name for image in podman.listing("images") for name in image.get("Names") or []} - {reference(*kind)}
    for name in sorted(names):
        if name.startswith(f"{_REPOSITORY}:{suite}-{flavour}-"):
            podman.attempt("image", "rm", name)


def tidy(settings: Settings) -> None:
    """Remove what an unfinished build left; the caller holds the lab's lock, so none is at work."""
    for left in settings.images.glob(".*.partial.tar"):
        left.unlink()
    remove_tree(_scratch(settings))


def _scratch(settings: Settings) -> Path:
    """Return where a root file system is put together: a place that apt's own user can enter, as the home may not be."""
    return Path("/var/tmp") / f"plumbline-lab-{settings.ident}"
