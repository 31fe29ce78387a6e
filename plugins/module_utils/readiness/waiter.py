# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting until instances are ready, have failed, or have used up their time: several at once, each in its own thread.

What to conclude from a look is decided by pure code; time, waiting and every fact come from the host object that is
handed in. Waiting is woken by the journal and by the end of the main process; between such news a server is asked again
after a pause, and never for more than the http signal allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, replace
from typing import Any, Callable

from ..host.local import LocalHost
from ..signals.base import PASSED, PENDING, UNKNOWN
from ..signals.log_patterns import READY as READY_LINE
from .observer import Look, Observer
from .verdict import FAILED, INCONCLUSIVE, NOT_READY, READY, REQUIRED, Verdict

_OK = 200
#: A wait begins within so many seconds after the start that it belongs to: a deploy looks at some hosts after others.
_JUST_STARTED = 120.0
#: Stages after which an engine may be asked over HTTP, or is a rank that never is.
_OPEN = ("http", "warmup-begin", "follower")


@dataclass(frozen=True)
class Settings:
    """How to wait; all times in seconds.

    :param passes: looks in a row that must say READY; the last of them asks systemd anew. :param pause: between two looks without news.
    :param loading: the same while an engine has not opened its port: its log tells each step.
    :param glance: the same between the ready line and the moment at which the server says so too.
    :param settle: after the first sign of a failure, so that the run's last words arrive: a process hands its lines to the journal
        before it ends, and the journal takes some milliseconds to show them. :param last_words: the same where the log has announced
        a failure and not yet said which.
    :param hearsay: what systemd may take to hear of an end that the kernel has told.
    :param peer_patience: how long a decode that is itself ready waits for a prefill whose registry nobody answers at (one
        that loads its model does answer).
    :param blind_patience: how long the process or the log may be unobservable; both lie on this host, so waiting mends neither.
    """

    passes: int = 2
    pause: float = 2.0
    loading: float = 6.0
    glance: float = 0.25
    settle: float = 0.3
    last_words: float = 1.5
    hearsay: float = 0.1
    peer_patience: float = 300.0
    blind_patience: float = 30.0


@dataclass(frozen=True)
class Outcome:
    """How the wait for one instance ended. ``waited`` is seconds in this wait; ``seconds`` from the start of the main process
    to readiness, None where it is not ready or the moment is not known."""

    look: Look
    verdict: Verdict
    waited: float
    seconds: float | None = None


class Watch:
    """The wait for one instance. ``look`` is its newest look, for whoever reports."""

    def __init__(
        self, observer: Observer, host: LocalHost, settings: Settings | None = None, board: dict[str, Outcome] | None = None
    ) -> None:
        self.observer = observer
        self.name = str(observer.entry["instance"])
        self.look: Look | None = None
        self.began = host.monotonic()
        self._host = host
        self._settings = settings or Settings()
        self._board = board if board is not None else {}
        self._passes = 0
        self._ready_at: float | None = None
        self._was_late = False
        self._alone_since: float | None = None
        self._blind_since: float | None = None

    def run(self, budget: float) -> Outcome:
        """Wait for at most ``budget`` seconds."""
        try:
            outcome = self._run(budget)
        except Exception as error:  # one instance's trouble must not take the others' results away
            text = f"this check broke: {type(error).__name__}: {error}"
            verdict = Verdict(INCONCLUSIVE, text, (text,), ("report this with the module's output",))
            outcome = Outcome(self.look or self.observer.blind(text), verdict, self._host.monotonic() - self.began)
        finally:
            self.observer.close()
        self._board[self.name] = outcome
        return outcome

    def _run(self, budget: float) -> Outcome:
        deadline = self.began + budget
        failed_at: float | None = None
        while True:
            last = self._passes + 1 >= self._settings.passes
            look = self.look = self.observer.look(fresh=failed_at is not None or (last and self._passes > 0))
            verdict = look.verdict
            over = look.at >= deadline
            self._count(look)
            if verdict.verdict == READY and self._passes >= self._settings.passes:
                return self._outcome(look, verdict)
            if verdict.verdict == FAILED:
                failed_at = look.at if failed_at is None else failed_at
                patience = self._settings.settle if _explained(look) else self._settings.last_words
                if look.at - failed_at >= patience or budget <= 0:
                    return self._outcome(look, verdict)
                self._host.wait([], self._settings.settle)
                continue
            failed_at = None
            hopeless = self._lonely(look) or self._blind(look)
            if hopeless:
                return self._outcome(look, hopeless)
            if over and budget > 0:
                text = f"not ready within {budget:g} s: {verdict.reason or verdict.verdict}"
                if verdict.verdict == READY:  # fewer passes than asked for
                    verdict = Verdict(NOT_READY, text, verdict.causes, verdict.next)
                return self._outcome(look, replace(verdict, reason=text))
            if budget <= 0 and verdict.verdict != READY:
                return self._outcome(look, verdict)
            if verdict.verdict != READY:  # a second witness of readiness is worth no waiting
                self._pause(look, deadline)

    def _count(self, look: Look) -> None:
        """Passes in a row, and the moment at which the first of them was seen."""
        if look.verdict.verdict == READY:
            self._passes += 1
            self._ready_at = look.at if self._ready_at is None else self._ready_at
        else:
            self._passes, self._ready_at, self._was_late = 0, None, True

    def _outcome(self, look: Look, verdict: Verdict) -> Outcome:
        return Outcome(look, verdict, look.at - self.began, self._seconds(look) if verdict.verdict == READY else None)

    def _seconds(self, look: Look) -> float | None:
        """When this run became ready: by its own ready line, else when this wait saw it happen."""
        if not look.started:
            return None
        if look.last_stage is not None and look.last_stage.row.kind == READY_LINE:
            return round(look.last_stage.at - look.started, 3)
        if look.proof is not None:
            return look.proof.get("seconds")
        # Of a process that ran long before this wait began, the moment says nothing of its start.
        if self._was_late and self._ready_at is not None and look.started > self.began - _JUST_STARTED:
            return round(self._ready_at - look.started, 3)
        return None

    def _pause(self, look: Look, deadline: float) -> None:
        """Sleep until there is news of this run, at most until the next look is due."""
        # A server says that it is up about when it prints its ready line, sometimes a moment later: that is asked of a flag, at no cost.
        # Another check's generation takes a second at most, and then it is our turn.
        http = look.signals.get("http")
        log = look.signals.get("log")
        nearly = log is not None and log.state == PASSED and http is not None and (http.details.get("ready") != _OK or http.details.get("busy"))
        loading = look.stages and self.observer.kind != "router" and all(hit.row.name not in _OPEN for hit in look.stages)
        pause = self._settings.glance if nearly else self._settings.loading if loading else self._settings.pause
        until = min(look.at + pause, deadline)
        before = self.observer.progress
        while True:
            left = until - self._host.monotonic()
            if left <= 0:
                return
            sources = self.observer.listen()
            news = not self.observer.ended and self._host.wait(sources, left)
            if self.observer.ended:
                self._host.wait([], min(self._settings.hearsay, left))
                return
            if not news:
                continue
            self.observer.read_log()
            if self.observer.progress != before:
                return
            # A busy server logs many lines a second: take them in handfuls.
            self._host.wait([], min(0.2, max(0.0, until - self._host.monotonic())))

    def _lonely(self, look: Look) -> Verdict | None:
        """A decode that lacks nothing but its prefills: how long is it worth waiting?

        Not at all for one that has failed in this same wait, ``peer_patience`` for those that nobody answers for.
        """
        others = [name for name in REQUIRED[self.observer.kind] if name != "bootstrap"]
        signal = look.signals.get("bootstrap")
        alone = (
            self.observer.kind == "decode"
            and signal is not None
            and signal.state == PENDING
            and all(look.signals[name].state == PASSED for name in others if name in look.signals)
            and len(others) < len(look.signals)
        )
        if not alone or signal is None:
            self._alone_since = None
            return None
        self._alone_since = look.at if self._alone_since is None else self._alone_since
        peers: Mapping[str, Any] = signal.details.get("peers", {})
        missing = {name: peer for name, peer in peers.items() if peer["state"] == PENDING and not peer["reached"]}
        failed = [name for name in missing if self._failed(name.partition("@")[0])]
        late = look.at - self._alone_since >= self._settings.peer_patience
        given_up = failed or (list(missing) if late else [])
        if not given_up:
            return None
        why = "has failed" if failed else f"has not answered for {self._settings.peer_patience:g} s"
        text = f"ready but for its prefill: {', '.join(given_up)} {why}"
        return Verdict(NOT_READY, text, (text, f"bootstrap: {signal.observed}"), (signal.next,) if signal.next else ())

    def _blind(self, look: Look) -> Verdict | None:
        """Facts of this very host that could not be observed for a while: permissions, a missing program, a log without INFO lines."""
        unseen = [look.signals[name] for name in ("process", "log") if name in look.signals and look.signals[name].state == UNKNOWN]
        if not unseen:
            self._blind_since = None
            return None
        self._blind_since = look.at if self._blind_since is None else self._blind_since
        if look.at - self._blind_since < self._settings.blind_patience:
            return None
        texts = tuple(f"{signal.name}: {signal.observed}" for signal in unseen)
        return Verdict(INCONCLUSIVE, f"could not be observed: {'; '.join(texts)}", texts, tuple(signal.next for signal in unseen if signal.next))

    def _failed(self, instance: str) -> bool:
        outcome = self._board.get(instance)
        return outcome is not None and outcome.verdict.verdict == FAILED


class Reporter:
    """Progress lines for people: each new stage, each verdict, and a line per unfinished instance every few seconds."""

    def __init__(self, line: Callable[[str], None], host: LocalHost, every: float = 8.0) -> None:
        self._line = line
        self._host = host
        self._every = every
        self._told: dict[str, int] = {}
        self._last: dict[str, float] = {}
        self._closed: set[str] = set()

    def tick(self, watches: Sequence[Watch], outcomes: Mapping[str, Outcome]) -> None:
        """Say what is new; called often."""
        now = self._host.monotonic()
        for watch in watches:
            outcome = outcomes.get(watch.name)
            if watch.name in self._closed:
                continue
            for text in self._stages(watch):
                self._line(text)
                self._last[watch.name] = now
            if outcome is not None:
                self._line(f"{watch.name}: {outcome.verdict.verdict}: {outcome.verdict.reason}")
                self._closed.add(watch.name)
            elif now - self._last.get(watch.name, watch.began - self._every) >= self._every:
                self._line(status_line(watch.name, watch.look, now, watch.began))
                self._last[watch.name] = now

    def _stages(self, watch: Watch) -> list[str]:
        look = watch.look
        if look is None:
            return []
        told = self._told.get(watch.name, 0)
        # An adopted invocation starts with an empty list again.
        told = 0 if told > len(look.stages) else told
        self._told[watch.name] = len(look.stages)
        # What was over before this wait began is no news.
        news = [hit for hit in look.stages[told:] if hit.at >= watch.began - self._every]
        return [f"{watch.name}: {hit.row.label}, {_since(hit.at, look):.1f} s after the start" for hit in news]


def _explained(look: Look) -> bool:
    """Whether the log has said what failed, where it has said that something did."""
    log = look.signals.get("log")
    return log is None or bool(log.details.get("explained", True))


def _since(at: float, look: Look) -> float:
    return at - look.started if look.started else 0.0


def status_line(name: str, look: Look | None, now: float, began: float) -> str:
    """Where an instance is, in one line: ``prefill-main-default: loading weights, 14 s, process ok, log: …, http: …``."""
    if look is None:
        return f"{name}: looking, {now - began:.0f} s"
    stage = look.last_stage.row.label if look.last_stage else "starting"
    if look.last_stage and look.last_stage.row.name == "load-begin" and look.loading_percent is not None:
        stage += f" {look.loading_percent} %"
    seconds = now - (look.started or began)
    parts = [stage, f"{seconds:.0f} s"]
    process = look.signals.get("process")
    if process:
        fine = process.details.get("running") and process.state in (PASSED, PENDING)
        parts.append("process ok" if fine else f"process: {process.observed}")
    parts.append(f"log: {look.last_stage.row.name if look.last_stage else 'no stage yet'}")
    for signal in look.signals.values():
        if signal.name in ("process", "log") or signal.observed.startswith("not asked: "):
            continue
        parts.append(f"{signal.name}: {'ok' if signal.state == PASSED else signal.observed}")
    return f"{name}: {', '.join(parts)}"


def wait_all(watches: Sequence[Watch], budgets: Mapping[str, float], reporter: Reporter | None = None) -> dict[str, Outcome]:
    """Run every watch to its end, each within its own budget in seconds; instance → outcome."""
    outcomes: dict[str, Outcome] = {}
    if not watches:
        return outcomes
    with ThreadPoolExecutor(max_workers=len(watches)) as pool:
        running = {pool.submit(watch.run, budgets[watch.name]): watch for watch in watches}
        while running:
            done, _rest = wait_for(running, timeout=0.5, return_when=FIRST_COMPLETED)
            for future in done:
                outcomes[running.pop(future).name] = future.result()
            if reporter:
                reporter.tick(watches, outcomes)
    return outcomes


def result(entry: Mapping[str, Any], outcome: Outcome) -> dict[str, Any]:
    """One instance's part of a module's result: the same keys on every path."""
    look = outcome.look
    kept = look.proof or {}
    stages = [hit.as_dict(look.started) for hit in look.stages]
    identity = look.signals.get("identity")
    return {
        "instance": entry["instance"],
        "host": entry.get("host", ""),
        "unit": entry["unit"],
        "role": entry["role"],
        "group": entry.get("group", ""),
        **outcome.verdict.as_dict(),
        "invocation": look.invocation,
        "restarts": look.unit.n_restarts,
        "seconds": outcome.seconds,
        "waited": round(outcome.waited, 3),
        "at": round(look.at, 3),
        # The start-up lines of a run of weeks have left the journal; its proof has kept what they said.
        "stages": kept["stages"] if kept and len(stages) < len(kept["stages"]) else stages,
        "resolved": dict(identity.details.get("resolved", {})) if identity else {},
        "proof": "",
        "proved_at": kept.get("proved_at"),
        "signals": {name: signal.as_dict() for name, signal in look.signals.items()},
        "last_lines": list(look.last_lines),
    }
