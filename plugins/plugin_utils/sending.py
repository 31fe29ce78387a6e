# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files from the controller to a host in pieces: with progress, from any offset, through a lost connection.

Each piece is written at its own offset, so that a piece may be sent twice: an interrupted copy is taken up where it
stopped, and no password, second user or temporary copy is needed beyond what the task's connection has.
"""

from __future__ import annotations

import hashlib
import shlex
import time
from typing import Any, Callable

from ansible.errors import AnsibleError

from ansible_collections.plumbline.sglang.plugins.module_utils.progress import human_bytes

_SMALLEST = 1 << 20
_LARGEST = 64 << 20
_READ = 8 << 20

Run = Callable[[str, bytes], dict[str, Any]]
Say = Callable[[str], None]


class PieceSize:
    """Pieces that take between one and three seconds each, so that there is a sign of life and little is sent twice."""

    def __init__(self) -> None:
        self.size = _SMALLEST

    def took(self, seconds: float) -> None:
        if seconds < 1.0:
            self.size = min(_LARGEST, self.size * 2)
        elif seconds > 3.0:
            self.size = max(_SMALLEST, self.size // 2)


def write_command(path: str, offset: int) -> str:
    """Shell text that writes its standard input into ``path`` at ``offset`` bytes and leaves the rest of the file alone."""
    return f"dd of={shlex.quote(path)} bs=1M seek={offset} oflag=seek_bytes iflag=fullblock conv=notrunc status=none"


def send(local: str, remote: str, size: int, offset: int, run: Run, say: Say, name: str) -> str:
    """Send a file from ``offset`` on; give the SHA-256 of the whole of it, read in passing.

    :param run: runs a shell command on the host with these bytes as its standard input, through lost connections.
    :raises AnsibleError: where the host cannot write, or the file changed on the controller meanwhile.
    """
    value, done, told, piece = hashlib.sha256(), 0, time.monotonic(), PieceSize()
    with open(local, "rb") as stream:
        while done < size:
            skipping = done < offset
            block = stream.read(min(_READ, offset - done) if skipping else piece.size)
            if not block:
                break
            value.update(block)
            if not skipping:
                began = time.monotonic()
                answer = run(write_command(remote, done), block)
                piece.took(time.monotonic() - began)
                if answer.get("rc"):
                    said = (answer.get("stderr") or answer.get("stdout") or "").strip()
                    raise AnsibleError(f"{name} could not be written to {remote} on the host: {said[-300:]}")
            done += len(block)
            if time.monotonic() - told >= 5.0 and done < size:
                told = time.monotonic()
                say(f"copying {name}: {human_bytes(done)} of {human_bytes(size)}" + (" (there already)" if skipping else ""))
        if done != size or stream.read(1):
            raise AnsibleError(f"{local} changed on the controller while it was copied. Next: wait until it is complete, then run again.")
    return value.hexdigest()
