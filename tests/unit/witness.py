# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that a test makes up: units, journal, sockets, answers, and a clock that only waiting moves."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable

from ansible_collections.plumbline.sglang.plugins.module_utils.host.gpus import GpuReport
from ansible_collections.plumbline.sglang.plugins.module_utils.host.http import REFUSED, HttpError, Response
from ansible_collections.plumbline.sglang.plugins.module_utils.host.journal import Record
from ansible_collections.plumbline.sglang.plugins.module_utils.host.local import LocalHost
from ansible_collections.plumbline.sglang.plugins.module_utils.host.procfs import Listener, Task
from ansible_collections.plumbline.sglang.plugins.module_utils.host.storage import BytesRead
from ansible_collections.plumbline.sglang.plugins.module_utils.host.systemd import UnitState
from ansible_collections.plumbline.sglang.plugins.module_utils.signals.base import Context
from ansible_collections.plumbline.sglang.plugins.module_utils.signals.log_view import LogView
from ansible_collections.plumbline.sglang.plugins.module_utils.snapshots.safetensors import Tensor
from ansible_collections.plumbline.sglang.plugins.module_utils.snapshots.weights import Weights, WeightsError

CAPTURES = Path(__file__).parent / "fixtures" / "captures"
RUN = "aaaa0000aaaa0000aaaa0000aaaa0000"
OTHER_RUN = "bbbb0000bbbb0000bbbb0000bbbb0000"
STARTED = 1000.0
PID, CHILD, STRANGER = 4298, 4574, 666
DIGEST = "d" * 64
ADDRESS = "127.0.0.1"
MODEL = "/srv/models/tiny-llama"
SHARD = f"{MODEL}/model.safetensors"
GIB = 1 << 30
#: What /generate answers (srt/managers/tokenizer_manager.py: text and meta_info), as far as anybody reads it.
TOKEN = json.dumps({"text": "!", "meta_info": {"completion_tokens": 1}}).encode()


def capture(name: str) -> str:
    """A captured text."""
    return (CAPTURES / name).read_text(encoding="utf-8", errors="replace")


def body(name: str, request: str) -> Any:
    """The JSON body that ``request`` (``GET /workers``) got in a capture of endpoints."""
    block = capture(name).split(f"\n=== {request} body=None\n", 1)[1].split("\n\n", 1)[1]
    return json.loads(block.split("\n", 1)[0])


def exposition(name: str) -> str:
    """The text of ``/metrics`` in a capture of endpoints."""
    block = capture(name).split("\n=== GET /metrics body=None\n", 1)[1].split("\n\n", 1)[1]
    return block.split("\n\n===", 1)[0]


def records(text: str, at: float = STARTED, step: float = 0.0, pid: int = PID, invocation: str = RUN) -> list[Record]:
    """A log as journal records, ``step`` seconds apart."""
    lines = [line for line in text.split("\n") if line.strip()]
    return [Record(line, at + step * number, 0.0, pid, invocation) for number, line in enumerate(lines)]


def entry(role: str = "prefill", **changes: Any) -> dict[str, Any]:
    """A plan entry of the captured servers."""
    ports = {"prefill": 30000, "decode": 30002, "router": 30001}
    prefill = {"host": "h1", "instance": "prefill-g-a", "address": ADDRESS, "port": 30000, "url": f"http://{ADDRESS}:30000", "bootstrap_port": 8998}
    decode = {**prefill, "instance": "decode-g-a", "port": 30002, "url": f"http://{ADDRESS}:30002", "bootstrap_port": None}
    made: dict[str, Any] = {
        "instance": f"{role}-g-a",
        "unit": f"sglang-{role}-g-a.service",
        "role": role,
        "group": "g",
        "name": "a",
        "host": "h1",
        "address": ADDRESS,
        "port": ports[role],
        "url": f"http://{ADDRESS}:{ports[role]}",
        "bootstrap_port": 8998 if role == "prefill" else None,
        "ports": [],
        "device": "cpu",
        "gpus": [],
        "model": {"name": "tiny-llama", "path": MODEL} if role != "router" else None,
        "served_name": "/srv/models/tiny-llama",
        "argv": argv(role),
        "environment": {},
        "credentials": [],
        "peers": {"prefill": [prefill], "decode": [decode], "router": []},
        "expect": {},
        "start_budget_seconds": 1800,
        "render": {"digest": DIGEST},
    }
    if role != "router":
        made["expect"] = {
            "served_name": "/srv/models/tiny-llama",
            "model_path": "/srv/models/tiny-llama",
            "disaggregation_mode": role,
            "version": "0.5.23",
            "tp_size": 1,
            "pp_size": 1,
            "nnodes": 1,
            "transfer_backend": "mooncake_tcp",
        }
    return {**made, **changes}


def argv(role: str) -> list[list[str]]:
    """The argv with which the captured server was started."""
    if role == "router":
        return [["--pd-disaggregation"]]
    flags = re.split(r" (?=--)", body(f"{role}_endpoints.txt", "GET /server_info")["launch_command"])
    return [flag.split(" ") for flag in flags]


def route(**changes: Any) -> bytes:
    """What a prefill's registry answers once every rank is in it (srt/disaggregation/common/conn.py:3209)."""
    fields = {"attn_tp_size": 1, "attn_cp_size": 1, "dp_size": 1, "pp_size": 1, "page_size": 1, "kv_cache_dtype": "auto", "prefill_http_port": 30000}
    return json.dumps({**fields, "target_tp_rank": None, **changes}).encode()


class Follow:
    """A follower of the made-up journal."""

    urgent = False

    def __init__(self, host: Host, invocation: str, cursor: str) -> None:
        self._host, self._invocation, self._cursor = host, invocation, cursor
        self._told = host.now
        self.alive = True

    def fileno(self) -> int:
        """There is nothing to wait on: the clock wakes everybody."""
        return -1

    def poll(self) -> list[Record]:
        """What has come since."""
        new = list(self._host.journal(self._invocation, self._cursor))
        self._cursor = new[-1].cursor if new else self._cursor
        words = [record for record in self._host.words if self._told < record.monotonic <= self._host.now]
        self._told = self._host.now
        return new + words

    def close(self) -> None:
        """Stop following."""
        self.alive = False


class Exit:
    """The end of a process, by hand."""

    urgent = False

    def __init__(self, host: Host, pid: int) -> None:
        self._host, self.pid = host, pid

    def fileno(self) -> int:
        """A descriptor in name only: the clock wakes everybody."""
        return 0

    @property
    def ended(self) -> bool:
        """Whether a test has ended it."""
        return self.pid in self._host.dead

    def close(self) -> None:
        """Nothing to give back."""


class Cgroup:
    """A control group that is empty once all its processes are dead."""

    urgent = True

    def __init__(self, host: Host, control_group: str) -> None:
        self._host, self.control_group = host, control_group

    def fileno(self) -> int:
        """A descriptor in name only."""
        return 0

    @property
    def emptied(self) -> bool:
        """Whether nobody is left."""
        return not self._host.cgroup_pids(self.control_group)

    def close(self) -> None:
        """Nothing to give back."""


class Host(LocalHost):
    """Starts as a prefill that runs and listens on nothing, with an empty log."""

    def __init__(self, role: str = "prefill") -> None:
        self.now = STARTED
        self.state = UnitState(
            f"sglang-{role}-g-a.service", "loaded", "active", "running", "success", RUN, PID, control_group="/u", exec_main_pid=PID, exec_main_start=STARTED
        )
        self.log: list[Record] = []
        self.words: list[Record] = []
        self.processes = {PID: "/u", CHILD: "/u", STRANGER: "/user.slice"}
        self.names = {CHILD: "sglang::schedul"}
        self.parents: dict[int, int] = {}
        self.stopped: set[int] = set()
        self.files: dict[str, dict[str, Any]] = {}
        self.model = Weights(MODEL, {SHARD: GIB}, {"model.layers.0.w": Tensor("BF16", GIB)}, {"num_hidden_layers": 2})
        self.anonymous = {PID: GIB // 2, CHILD: 2 * GIB}
        self.cards = GpuReport(problem="no NVIDIA driver")
        self.cached: int | None = GIB
        self.storage = BytesRead(0, "/proc/PID/io of its processes")
        self.shows = 0
        self.environments: dict[int, dict[str, str]] = {PID: {"PATH": "/bin", "PLUMBLINE_RENDER": DIGEST}}
        self.sockets: dict[int, int] = {}
        self.visible = True
        self.answers: dict[str, Any] = {}
        self.asked: list[str] = []
        self.sent: list[Mapping[str, Any]] = []
        self.dead: set[int] = set()
        self.events: list[tuple[float, Callable[[Host], None]]] = []
        self.previous = ""
        self.probe_is_free = True

    # --- what a test says ---------------------------------------------------------------------------------------------

    def at(self, seconds: float, event: Callable[[Host], None]) -> None:
        """Let something happen ``seconds`` after the start."""
        self.events.append((STARTED + seconds, event))
        self.events.sort(key=lambda item: item[0])

    def unit_is(self, **changes: Any) -> None:
        """Change the unit's state."""
        self.state = replace(self.state, **changes)

    def systemd_says(self, text: str) -> None:
        """Let systemd say something of the unit now."""
        self.words.append(Record(text, self.now, 0.0, 1, about=self.state.unit))

    def says(self, text: str, pid: int = PID, invocation: str = RUN) -> None:
        """Let the run log something now."""
        self.log += records(text, self.now, pid=pid, invocation=invocation)

    def serves(self, role: str, url: str = "") -> None:
        """Let the captured server answer, ready, on its own socket."""
        port = entry(role)["port"]
        url = url or f"http://{ADDRESS}:{port}"
        self.sockets[port] = PID
        self.answers[f"{url}/ready"] = Response(200)
        self.answers[f"{url}/health"] = Response(200, seconds=1.0)
        self.answers[f"{url}/generate"] = Response(200, TOKEN, seconds=0.1)
        for path in ("/model_info", "/v1/models", "/server_info"):
            self.answers[url + path] = Response(200, json.dumps(body(f"{role}_endpoints.txt", f"GET {path}")).encode())
        if role == "prefill":
            self.sockets[8998] = PID
        self.answers[f"http://{ADDRESS}:8998/route"] = Response(200, route())

    # --- what is asked of it ------------------------------------------------------------------------------------------

    def unit(self, name: str) -> UnitState:
        self.shows += 1
        return self.state

    def journal(self, invocation: str, cursor: str = "") -> Iterator[Record]:
        first = int(cursor) if cursor else 0
        for number, record in enumerate(self.log, 1):
            if number > first and record.invocation == invocation and record.monotonic <= self.now:
                yield replace(record, cursor=str(number))

    def follow(self, invocation: str, unit: str, cursor: str = "") -> Any:
        return Follow(self, invocation, cursor)

    def previous_invocation(self, unit: str, current: str) -> str:
        return self.previous

    def cgroup_pids(self, control_group: str) -> set[int]:
        return {pid for pid, group in self.processes.items() if group == control_group and pid not in self.dead}

    def cgroup_of(self, pid: int) -> str:
        return self.processes.get(pid, "")

    def command_of(self, pid: int) -> str:
        return "python3"

    def tasks(self, pids: set[int]) -> list[Task]:
        return [Task(pid, self.names.get(pid, "python3"), "T" if pid in self.stopped else "S", self.parents.get(pid, PID)) for pid in sorted(pids)]

    def anonymous_bytes(self, pids: Sequence[int]) -> dict[int, int]:
        return {pid: self.anonymous[pid] for pid in pids if pid in self.anonymous}

    def gpus(self) -> GpuReport:
        return self.cards

    def weights(self, directory: str) -> Weights:
        if directory != self.model.directory:
            raise WeightsError(f"{directory} cannot be read: No such file or directory")
        return self.model

    def cached_bytes(self, files: Iterable[str]) -> int | None:
        return self.cached

    def file_system(self, path: str) -> str:
        return "ext4"

    def bytes_read(self, control_group: str) -> BytesRead:
        return self.storage

    def read_state(self, path: str) -> dict[str, Any] | None:
        return self.files.get(path)

    def write_state(self, path: str, content: Mapping[str, Any]) -> None:
        self.files[path] = dict(content)

    def environment_of(self, pid: int) -> dict[str, str]:
        return self.environments[pid]

    def listeners(self, port: int) -> list[Listener]:
        return [Listener(ADDRESS, port, port)] if port in self.sockets else []

    def socket_owners(self, inodes: Sequence[int], pids: set[int] | None = None) -> dict[int, set[int]]:
        shown = self.sockets if self.visible else {}
        return {inode: {shown[inode]} if inode in shown and (pids is None or shown[inode] in pids) else set() for inode in inodes}

    def watch_exit(self, pid: int) -> Any:
        return Exit(self, pid)

    def watch_cgroup(self, control_group: str) -> Any:
        return Cgroup(self, control_group)

    def request(self, url: str, **options: Any) -> Response:
        self.asked.append(url.partition("?")[0])
        self.sent.append(options)
        answer = self.answers.get(url.partition("?")[0], HttpError(REFUSED, "connection refused"))
        answer = answer(self) if callable(answer) else answer
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, Response)
        return answer

    @contextmanager
    def probing(self, unit: str) -> Iterator[bool]:
        yield self.probe_is_free

    def wait(self, sources: Sequence[Any], seconds: float) -> bool:
        """Go on to the next event, at most ``seconds``; True where one of the things waited for has news."""
        before = len([record for record in self.log + self.words if record.monotonic <= self.now])
        until = self.now + max(seconds, 0.001)
        if self.events and self.events[0][0] <= until:
            until = max(self.now, self.events[0][0])
        self.now = until
        while self.events and self.events[0][0] <= self.now:
            self.events.pop(0)[1](self)
        news = len([record for record in self.log + self.words if record.monotonic <= self.now]) > before
        return bool(sources) and (news or bool(self.dead))

    def monotonic(self) -> float:
        return self.now

    def utc(self) -> str:
        return "2026-11-30T21:41:05.000000Z"


def context(host: Host, role: str = "prefill", text: str = "", **changes: Any) -> Context:
    """What a signal is given on this host, after the run has logged ``text``; ``changes`` are those of the entry."""
    view = LogView(role)
    view.feed(records(text))
    deployment = changes.pop("deployment", False)
    invocation = changes.pop("invocation", RUN)
    proof = changes.pop("proof", None)
    return Context(entry(role, **changes), host, host.state, view, invocation, deployment, proof=proof)


def ready(role: str = "prefill") -> Host:
    """A host whose captured server answers."""
    host = Host(role)
    host.serves(role)
    return host
