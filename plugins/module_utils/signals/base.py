# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a signal is, and what a signal is given to observe with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable

from ..host.credentials import Credential, Redactor
from ..host.local import LocalHost
from ..host.systemd import UnitState

if TYPE_CHECKING:
    from .log_view import LogView

PASSED = "passed"
PENDING = "pending"
FAILED = "failed"
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Signal:
    """What one witness said at one moment about one invocation.

    ``state`` is ``passed``, ``pending`` (not yet, waiting may help), ``failed`` (waiting will not help) or ``unknown`` (it
    could not be observed, which never counts as passed). ``monotonic`` is seconds on the host's monotonic clock, ``when``
    the same moment as UTC in ISO 8601. ``proves`` says what the signal is worth when it passes, ``next`` what to do when it
    does not. ``details`` is plain data for machines; neither it nor any text holds a secret.
    """

    name: str
    state: str
    observed: str
    expected: str
    proves: str
    when: str
    monotonic: float
    next: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for a module's result."""
        return {
            "state": self.state,
            "observed": self.observed,
            "expected": self.expected,
            "proves": self.proves,
            "when": self.when,
            "monotonic": round(self.monotonic, 3),
            "next": self.next,
            "details": dict(self.details),
        }


@dataclass
class Context:
    """Everything a signal may look at: the plan entry, the host, the one invocation asked about, and what is known of it.

    ``named`` is true where the caller named the invocation: what restarted before it is no matter of its own.
    ``memory`` lives as long as the invocation is watched (a generation that once succeeded, the back-off after one that
    did not); ``seen`` holds the signals of the present look; ``proof`` is what was written when this invocation was first found
    ready (readiness/proof.py).
    """

    entry: Mapping[str, Any]
    host: LocalHost
    unit: UnitState
    log: LogView
    invocation: str = ""
    deployment: bool = False
    named: bool = False
    redactor: Redactor = field(default_factory=Redactor)
    memory: dict[str, Any] = field(default_factory=dict)
    seen: dict[str, Signal] = field(default_factory=dict)
    proof: Mapping[str, Any] | None = None

    @property
    def role(self) -> str:
        """prefill, decode, regular or router."""
        return str(self.entry["role"])

    @property
    def url(self) -> str:
        """The instance's own HTTP address."""
        return str(self.entry["url"]).rstrip("/")

    @property
    def expect(self) -> Mapping[str, Any]:
        """The plan's expectations of a server; empty for a router."""
        return self.entry.get("expect") or {}

    @property
    def credential(self) -> Credential | None:
        """The key that opens this instance's ordinary endpoints, where it has one."""
        path = key_path(self.entry)
        return Credential(path) if path else None

    def signal(
        self, name: str, state: str, observed: str, expected: str, proves: str, then: str = "", **details: Any
    ) -> Signal:
        """A signal of this moment, without secrets; ``then`` is what to do where it does not pass."""
        return Signal(
            name=name,
            state=state,
            observed=self.redactor.text(observed),
            expected=expected,
            proves=proves,
            when=self.host.utc(),
            monotonic=self.host.monotonic(),
            next=then,
            details=details,
        )


#: Makes a signal of one kind: state, what was observed, what to do about it.
Say = Callable[..., Signal]


def key_path(entry: Mapping[str, Any]) -> str:
    """The file that holds the API key of an entry's server or router; empty where it has none."""
    return next((str(item["path"]) for item in entry.get("credentials") or [] if item.get("name") == "api-key" and item.get("path")), "")


def argument(entry: Mapping[str, Any], flag: str, default: str = "") -> str:
    """The first value of a flag in the entry's argv."""
    for words in entry.get("argv") or []:
        if words and words[0] == flag:
            return str(words[1]) if len(words) > 1 else ""
    return default


def is_follower(entry: Mapping[str, Any]) -> bool:
    """True for a rank above 0 of a server over several nodes.

    Its HTTP port answers 200 to ``/health`` whatever happens (srt/utils/common.py, the dummy health server), so it is never
    asked there.
    """
    return entry["role"] != "router" and argument(entry, "--node-rank", "0") not in ("", "0")
