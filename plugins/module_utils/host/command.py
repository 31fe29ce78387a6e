# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run one short program of the host and keep what it said."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass


class CommandError(Exception):
    """The program is missing, may not be run, or did not end in time. The text names it."""


@dataclass(frozen=True)
class Completed:
    """What a program left: its exit status and its two streams as text."""

    rc: int
    stdout: str
    stderr: str


def run(argv: Sequence[str], timeout: float = 10.0) -> Completed:
    """Run ``argv`` (never a shell) for at most ``timeout`` seconds, in the C locale.

    :raises CommandError: where the program cannot be started or exceeds the time.
    """
    environment = dict(os.environ, LC_ALL="C", LANGUAGE="C", SYSTEMD_COLORS="0", SYSTEMD_PAGER="")
    try:
        done = subprocess.run(  # pylint: disable=ansible-bad-function  # no run_command on hosts without Ansible
            list(argv),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            env=environment,
            check=False,
        )
    except FileNotFoundError:
        raise CommandError(f"{argv[0]} is not installed on this host") from None
    except PermissionError:
        raise CommandError(f"{argv[0]} may not be run by this user") from None
    except subprocess.TimeoutExpired:
        raise CommandError(f"{' '.join(argv[:2])} did not end within {timeout:g} s") from None
    return Completed(
        done.returncode,
        done.stdout.decode("utf-8", "replace"),
        done.stderr.decode("utf-8", "replace"),
    )
