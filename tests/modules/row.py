# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One row of the table: how a module is run, and what it must say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Row:
    """A call, and what its answer must hold.

    Texts may hold the words of ``ManagedHost.words``, such as ``<secret>`` (a file that only root reads).
    """

    parameters: Mapping[str, Any]
    #: Texts that the message must hold: what was seen, and what was expected or is to be done.
    says: tuple[str, ...]
    fails: bool = True
    check: bool = False
    unprivileged: bool = False
    #: Programs that are found: all, none, systemd (one that answers, whatever this machine was booted with), systemctl alone.
    path: str = "all"
    environment: Mapping[str, str] = field(default_factory=dict)
    #: Where the message is, for results that are facts and no failures.
    where: tuple[str, ...] = ("msg",)
    #: Through the action plugin, by Ansible's own program, with this inventory and these extra variables.
    action: bool = False
    inventory: str = "localhost,"
    variables: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Nothing:
    """The condition cannot be met in this module; ``why`` says why."""

    why: str
