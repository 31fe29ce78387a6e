# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What pip says, as progress for people and as problems with a next step. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..problem import Problem

_DOWNLOAD = re.compile(r"^\s*Downloading (?:\S*/)?(?P<file>\S+\.(?:whl|tar\.gz|zip))(?:\.metadata)?(?:#\S*)? \((?P<size>[^)]+)\)")
_INDEX = (
    "no configuration of the index is made by this collection: set pip's own (/etc/pip.conf, or PIP_INDEX_URL, PIP_CERT and proxy "
    "variables in the play's environment) for the user that builds, or name a wheelhouse (sglang_wheelhouse)"
)

# (pattern over one line, what was seen, what was expected, what to do): the first pattern that any line matches counts.
_KNOWN: tuple[tuple[str, str, str, str], ...] = (
    (
        r"(?:Temporary failure in name resolution|Name or service not known|Connection refused|ConnectTimeoutError|NewConnectionError|"
        r"ProxyError|CERTIFICATE_VERIFY_FAILED|Network is unreachable|Read timed out)",
        "the package index cannot be reached: {line}",
        "an index that answers this host",
        _INDEX,
    ),
    (
        r"No matching distribution found for (?P<pin>[^\s;(]+)",
        "pip finds no installable file for {pin}{versions}",
        "a wheel of exactly {pin} for this Python and machine",
        "mend the pin in the lock, or put that wheel into {source}",
    ),
    (
        r"THESE PACKAGES DO NOT MATCH THE HASHES",
        "a downloaded file is not the one the lock has the hash of",
        "files with the hashes in the lock",
        "find out which is right before anything else: a file of the same name was replaced in {source}, or the lock is stale",
    ),
    (
        r"(?:No space left on device|Errno 28)",
        "the file system of the release is full",
        "room for the installed packages (an engine with its CUDA libraries takes 10 GiB and more)",
        "free space under {path}; what was begun there is removed at the next run",
    ),
    (
        r"(?P<file>\S+\.whl) is not a supported wheel on this platform",
        "{file} is not for this Python, machine or C library",
        "wheels that match the interpreter of the release",
        "fetch the wheels with the same Python version on the same distribution",
    ),
    (
        r"(?:Package (?P<pin>'?[^\s']+'?) requires a different Python|requires a different Python version|Requires-Python)",
        "a pinned package is not made for Python {python}",
        "an interpreter that every pinned package supports",
        "set sglang_python to another interpreter, or mend the lock",
    ),
    (
        r"Failed (?:to build|building wheel for) (?P<pin>\S+)",
        "{pin} is only there as source and could not be built",
        "a wheel of {pin}",
        "put a wheel of it into {source}: hosts need no compiler then",
    ),
)
_VERSIONS = re.compile(r"Could not find a version that satisfies the requirement \S+ .*\(from versions: (?P<versions>[^)]*)\)")


def fetch_line(row: str) -> str | None:
    """Progress text for a line in which pip starts a download, None for any other line."""
    match = _DOWNLOAD.match(row)
    return f"fetching {match.group('file')} ({match.group('size')})" if match and ".metadata" not in row else None


def explain(rows: Sequence[str], what: str, source: str, path: str, python: str) -> Problem:
    """pip's last lines -> a problem. ``source``: where packages come from, for people; ``path``: the release."""
    versions = next((match.group("versions") for row in rows for match in [_VERSIONS.search(row)] if match), "")
    for pattern, seen, expected, next_step in _KNOWN:
        for row in rows:
            match = re.search(pattern, row)
            if match is None:
                continue
            words = {key: value or "" for key, value in match.groupdict().items()}
            words.setdefault("pin", "a package")
            words.update(
                line=row.strip()[:200],
                versions=f" (there are: {_shortened(versions)})" if versions and versions != "none" else "",
                source=source,
                path=path,
                python=python,
            )
            return Problem(what, seen.format(**words), expected.format(**words), next_step.format(**words))
    errors = [row.strip() for row in rows if row.lstrip().startswith(("ERROR", "error:"))] or [row.strip() for row in rows[-5:]]
    return Problem(
        what,
        "pip failed:\n" + "\n".join(errors[-6:]),
        f"every pin of the lock installed from {source}",
        "see pip's words above; the same command can be tried on the host by hand with the lock in the release's directory",
    )


def _shortened(versions: str) -> str:
    words = versions.split(", ")
    return versions if len(words) <= 6 else "…, " + ", ".join(words[-6:])
