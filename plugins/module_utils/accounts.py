# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What another user of the host may do, found out as that user."""

from __future__ import annotations

import json
import os
import pwd
from collections.abc import Sequence
from typing import Callable, NamedTuple

#: Stands for "some user without rights of its own" while the service user does not exist yet.
NOBODY = 65534


class Account(NamedTuple):
    """A user: name, uid, gid, and whether it exists (else it is an unprivileged stand-in)."""

    name: str
    uid: int
    gid: int
    exists: bool

    @property
    def shown(self) -> str:
        return self.name if self.exists else f"an unprivileged user ({self.name} does not exist yet)"


def account(name: str) -> Account:
    """The account of this name, or a stand-in without any rights."""
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return Account(name, NOBODY, NOBODY, False)
    return Account(name, entry.pw_uid, entry.pw_gid, True)


def unreadable(paths: Sequence[str], user: Account) -> list[str] | None:
    """Those of ``paths`` that this user cannot open (files) or list (directories); None: cannot be found out (not root).

    The kernel is asked, in a child process that has become the user: lists, capabilities and mounts count as they will.
    """
    if os.geteuid() == user.uid:
        return [path for path in paths if not _opens(path)]
    if os.geteuid() != 0:
        return None

    def become() -> None:
        if user.exists:
            os.initgroups(user.name, user.gid)
        else:
            os.setgroups([])
        os.setresgid(user.gid, user.gid, user.gid)
        os.setresuid(user.uid, user.uid, user.uid)

    return _in_child(become, paths)


def _in_child(become: Callable[[], None], paths: Sequence[str]) -> list[str] | None:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reader)
            become()
            with os.fdopen(writer, "w", encoding="utf-8", errors="surrogateescape") as stream:
                json.dump([path for path in paths if not _opens(path)], stream)
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8", errors="surrogateescape") as stream:
        text = stream.read()
    _pid, status = os.waitpid(child, 0)
    return json.loads(text) if status == 0 else None


def _opens(path: str) -> bool:
    try:
        if os.path.isdir(path):
            os.listdir(path)
            return os.access(path, os.X_OK)
        with open(path, "rb", buffering=0) as stream:
            stream.read(1)
        return True
    except OSError:
        return False
