# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How facts are read from a host: what systemd, the journal, /proc and HTTP servers give, in their odd forms too."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.host import http, journal, procfs, systemd
from ansible_collections.plumbline.sglang.plugins.module_utils.host.command import CommandError, Completed, run
from ansible_collections.plumbline.sglang.plugins.module_utils.host.credentials import Credential, CredentialError, Redactor

# --- systemd ----------------------------------------------------------------------------------------------------------

SHOWN = """LoadState=loaded
ActiveState=failed
SubState=failed
Result=exit-code
InvocationID=25d1099bad6c46d6811416f740e3cda8
MainPID=0
NRestarts=2
ControlGroup=
ExecMainPID=732
ExecMainCode=1
ExecMainStatus=3
ExecMainStartTimestampMonotonic=2750431221
ExecMainExitTimestampMonotonic=2790431221
NeedDaemonReload=yes
"""


def test_a_unit_state_from_what_systemctl_shows() -> None:
    state = systemd.show("x.service", lambda argv: Completed(0, SHOWN, ""))
    assert (state.state, state.n_restarts, state.exec_main_start, state.need_daemon_reload) == ("failed/failed", 2, 2750.431221, True)
    assert state.exit_text() == "exited with status 3"
    killed = systemd.parse_show("x.service", SHOWN.replace("Code=1", "Code=2").replace("Status=3", "Status=9"))
    assert killed.exit_text() == "killed by SIGKILL"


def test_a_running_unit_has_no_exit() -> None:
    text = SHOWN.replace("MainPID=0", "MainPID=732").replace("ExecMainCode=1", "ExecMainCode=0")
    assert systemd.parse_show("x.service", text).exit_text() == ""


@pytest.mark.parametrize(
    "answer", [Completed(1, "", "Failed to connect to bus: No such file or directory"), CommandError("systemctl is not installed on this host")]
)
def test_systemd_that_cannot_be_asked_is_an_error_that_says_why(answer: Any) -> None:
    def runner(argv: Sequence[str]) -> Completed:
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    with pytest.raises(systemd.SystemdError, match=r"bus|not installed"):
        systemd.show("x.service", runner)


def test_a_program_that_hangs_or_is_missing_is_named() -> None:
    with pytest.raises(CommandError, match="did not end"):
        run(["sleep", "5"], timeout=0.1)
    with pytest.raises(CommandError, match="no-such-program is not installed"):
        run(["no-such-program"])


# --- journal ----------------------------------------------------------------------------------------------------------


def line(message: Any, **fields: Any) -> bytes:
    stamps = {"__CURSOR": "c1", "__MONOTONIC_TIMESTAMP": "1500000", "__REALTIME_TIMESTAMP": "2000000"}
    return json.dumps({**stamps, "_PID": "7", "MESSAGE": message, **fields}).encode()


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("plain", "plain"),
        (list(b"\x1b[32mgreen\x1b[0m"), "\x1b[32mgreen\x1b[0m"),
        ([0xFF, 0x41], "\ufffdA"),
        (["one", [0x32]], "one\n2"),
        (None, ""),
    ],
)
def test_messages_in_every_form_that_journalctl_gives(message: Any, text: str) -> None:
    record = journal.parse_line(line(message, _SYSTEMD_INVOCATION_ID="i"))
    assert record == journal.Record(text, 1.5, 2.0, 7, "i", "c1")


def test_what_is_no_record_is_passed_over() -> None:
    for text in (b"", b"-- No entries --", b'{"MESSAGE": "cut', b"[1]"):
        assert journal.parse_line(text) is None


def test_lines_of_a_message_with_newlines_and_a_repainted_bar() -> None:
    assert list(journal.lines_of("a\n\n  10%\r  20%\r\nb\r")) == ["a", "  10%", "  20%", "b"]


def program(path: Path, name: str, text: str) -> None:
    path.mkdir(exist_ok=True)
    (path / name).write_text(f"#!/bin/sh\n{text}\n")
    (path / name).chmod(0o755)


@pytest.fixture(name="journalctl")
def _journalctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    return tmp_path


def test_one_invocation_is_read_after_a_cursor(journalctl: Path) -> None:
    program(journalctl / "bin", "journalctl", f"echo \"$@\" > {journalctl}/args; cat {journalctl}/out")
    (journalctl / "out").write_bytes(line("one") + b"\n" + line("two", __CURSOR="c2") + b"\n")
    assert [(record.message, record.cursor) for record in journal.read("abc", "c0")] == [("one", "c1"), ("two", "c2")]
    arguments = (journalctl / "args").read_text()
    assert "_SYSTEMD_INVOCATION_ID=abc" in arguments and "--after-cursor=c0" in arguments and "--all" in arguments


def test_nothing_found_is_no_error_and_a_complaint_is_one(journalctl: Path) -> None:
    program(journalctl / "bin", "journalctl", "exit 1")
    assert not list(journal.read("abc"))
    program(journalctl / "bin", "journalctl", "echo 'Hint: you are not seeing messages' >&2; exit 1")
    with pytest.raises(journal.JournalError, match="you are not seeing"):
        list(journal.read("abc"))


def test_an_empty_answer_is_told_from_a_journal_that_this_user_may_not_see(journalctl: Path) -> None:
    # With --output=json there is no hint and no error, only nothing.
    program(journalctl / "bin", "journalctl", "case $* in *json*) ;; *) echo 'Hint: You are currently not seeing messages from other users.' >&2;; esac")
    with pytest.raises(journal.JournalError, match="may not see"):
        list(journal.read("abc"))
    assert list(journal.read("abc", "c1")) == []


def test_a_follower_gives_whole_records_as_they_come_and_ends_what_it_started(journalctl: Path) -> None:
    program(journalctl / "bin", "journalctl", f"cat {journalctl}/pipe")
    os.mkfifo(journalctl / "pipe")
    follower = journal.Follower("abc", "x.service")
    with open(journalctl / "pipe", "wb", buffering=0) as pipe:
        assert follower.poll() == []
        whole = line("one") + b"\n"
        pipe.write(whole + line("two")[:20])
        records: list[journal.Record] = []
        while not records:
            records += follower.poll()
        assert [record.message for record in records] == ["one"]
        pipe.write(line("two")[20:] + b"\n")
        while len(records) < 2:
            records += follower.poll()
        assert records[1].message == "two"
        assert follower.alive
        follower.close()
        assert not follower.alive


def test_the_invocation_before_this_one() -> None:
    seen: list[Sequence[str]] = []

    def reader(argv: Sequence[str]) -> Iterator[journal.Record]:
        seen.append(argv)
        yield from [journal.Record("", invocation=name) for name in ("now", "now", "", "before", "older")]

    assert journal.previous_invocation("x.service", "now", reader) == "before"
    assert "--reverse" in seen[0] and "_SYSTEMD_UNIT=x.service" in seen[0]
    assert journal.previous_invocation("x.service", "now", lambda argv: iter([])) == ""


# --- processes and sockets --------------------------------------------------------------------------------------------


def test_pids_of_a_control_group_and_those_below(tmp_path: Path) -> None:
    for path, pids in (("system.slice/x.service", "10\n11\n"), ("system.slice/x.service/sub/deep", "12\n"), ("system.slice/y.service", "13\n")):
        (tmp_path / path).mkdir(parents=True, exist_ok=True)
        (tmp_path / path / "cgroup.procs").write_text(pids)
    assert procfs.cgroup_pids("/system.slice/x.service", str(tmp_path)) == {10, 11, 12}
    assert procfs.cgroup_pids("/gone.service", str(tmp_path)) == set()
    # An empty path would be the root of the tree, and so every process of the host.
    assert procfs.cgroup_pids("", str(tmp_path)) == set()


def test_a_process_by_its_files(tmp_path: Path) -> None:
    process = tmp_path / "10"
    process.mkdir()
    (process / "cgroup").write_text("1:name=systemd:/a\n0::/system.slice/x.service\n")
    (process / "comm").write_text("sglang::schedul\n")
    (process / "environ").write_bytes(b"A=1\0B=x=y\0broken\0")
    assert procfs.cgroup_of(10, str(tmp_path)) == "/system.slice/x.service"
    assert procfs.command_of(10, str(tmp_path)) == "sglang::schedul"
    assert procfs.environment_of(10, str(tmp_path)) == {"A": "1", "B": "x=y"}
    assert procfs.cgroup_of(11, str(tmp_path)) == procfs.command_of(11, str(tmp_path)) == ""


TABLE = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0B4D590A:7530 00000000:0000 0A 00000000:00000000 00:00000000 00000000   998        0 111 1 0 100 0 0 10 0
   1: 0B4D590A:7530 0C4D590A:B3F2 01 00000000:00000000 00:00000000 00000000   998        0 112 1 0 100 0 0 10 0
   2: 00000000:7531 00000000:0000 0A 00000000:00000000 00:00000000 00000000   998        0 113 1 0 100 0 0 10 0
"""
TABLE6 = """  sl  local_address                         remote_address                        st tx rx tr tm uid timeout inode
   0: 00000000000000000000000000000000:7530 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 221 1 0
   1: 0000000000000000FFFF00000100007F:7530 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 222 1 0
"""


def test_listening_sockets_of_both_tables(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net/tcp").write_text(TABLE)
    (tmp_path / "net/tcp6").write_text(TABLE6)
    assert procfs.listeners(30000, str(tmp_path)) == [
        procfs.Listener("10.89.77.11", 30000, 111),
        procfs.Listener("::", 30000, 221),
        procfs.Listener("127.0.0.1", 30000, 222),
    ]
    (tmp_path / "net/tcp6").unlink()
    assert [item.inode for item in procfs.listeners(30001, str(tmp_path))] == [113]
    (tmp_path / "net/tcp").unlink()
    with pytest.raises(FileNotFoundError):
        procfs.listeners(30000, str(tmp_path))


def test_the_owner_of_a_real_socket() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        (found,) = procfs.listeners(port)
        assert procfs.socket_owners([found.inode]) == {found.inode: {os.getpid()}}
        assert procfs.socket_owners([found.inode], []) == {found.inode: set()}
    assert procfs.listeners(port) == []


# --- credentials ------------------------------------------------------------------------------------------------------


def test_a_key_is_read_stripped_and_never_shown(tmp_path: Path) -> None:
    file = tmp_path / "api-key"
    file.write_text("sk-planted-1\n")
    credential = Credential(str(file))
    assert credential.read() == "sk-planted-1"
    assert "sk-planted-1" not in repr(credential) + repr(Redactor(["sk-planted-1"]))


@pytest.mark.parametrize("content", ["", " \n", "two words", "sk-a\nsk-b", "sk-\u00e9"])
def test_what_is_no_key_is_refused_without_quoting_it(tmp_path: Path, content: str) -> None:
    file = tmp_path / "api-key"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(CredentialError, match="api-key") as caught:
        Credential(str(file)).read()
    assert "sk-" not in str(caught.value) and "words" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "server_args={'api_key': 'HIDE', 'port': 1}",
        'body {"admin_api_key": "HIDE"}',
        "ServerArgs(api_key='HIDE', port=1)",
        "--api-key HIDE --port 1",
        "--admin-api-key=HIDE",
        "Authorization: Bearer HIDE",
        "https://user:HIDE@index.example/simple",
        "a known value, sk-known-HIDE, anywhere",
    ],
)
def test_secrets_leave_no_trace_in_text(text: str) -> None:
    assert "HIDE" not in Redactor(["sk-known-HIDE"]).text(text)


def test_what_is_no_secret_stays() -> None:
    text = "Prefill batch, #new-token: 4, token usage: 0.00, api_key=None"
    assert Redactor(["sk-1"]).text(text) == text


# --- http -------------------------------------------------------------------------------------------------------------


class Server(BaseHTTPRequestHandler):
    """Answers by path; remembers what it was sent."""

    seen: ClassVar[list[tuple[str, dict[str, str], bytes]]] = []

    def do_GET(self) -> None:  # pylint: disable=invalid-name
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.seen.append((self.path, {name.lower(): value for name, value in self.headers.items()}, sent))
        if self.path == "/drip":
            self.send_response(200)
            self.end_headers()
            for _byte in range(100):
                self.wfile.write(b"x")
                self.wfile.flush()
                time.sleep(0.05)
            return
        if self.path == "/silent":
            time.sleep(3)
            return
        if self.path == "/garbage":
            self.wfile.write(b"220 smtp.example ESMTP\r\n")
            return
        self.send_response({"/moved": 302, "/locked": 401, "/busy": 503}.get(self.path, 200))
        self.send_header("Location", "/elsewhere")
        self.end_headers()
        self.wfile.write(b"x" * 5000 if self.path == "/large" else b'{"a": 1}')

    do_POST = do_GET

    def log_message(self, format: str, *args: Any) -> None:  # pylint: disable=redefined-builtin
        """Say nothing."""


class Quiet(ThreadingHTTPServer):
    """A client that goes away in the middle is what the tests are about."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing."""


@pytest.fixture(name="url", scope="module")
def _url() -> Iterator[str]:
    with Quiet(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_an_answer_whatever_its_status(url: str) -> None:
    assert http.request(f"{url}/ok").json() == {"a": 1}
    assert http.request(f"{url}/busy").status == 503
    assert http.request(f"{url}/locked").refused_key


def test_no_redirect_is_followed_and_no_proxy_is_used(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert http.request(f"{url}/moved").status == 302
    assert "/elsewhere" not in [path for path, _headers, _body in Server.seen]


def test_a_body_and_a_key_are_sent(url: str, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("sk-planted-2")
    http.request(f"{url}/post?a=1", method="POST", payload={"n": 1}, credential=Credential(str(key)), headers={"X-Request-Id": "r"})
    path, headers, sent = Server.seen[-1]
    assert (path, json.loads(sent), headers["x-request-id"]) == ("/post?a=1", {"n": 1}, "r")
    assert headers["authorization"] == "Bearer sk-planted-2"


@pytest.mark.parametrize(
    ("path", "kind", "options"),
    [
        ("/silent", http.TIMEOUT, {"total": 0.3}),
        ("/drip", http.TIMEOUT, {"total": 0.5}),
        ("/large", http.TOO_LARGE, {"limit": 4999}),
        ("/garbage", http.BROKEN, {}),
    ],
)
def test_what_is_no_whole_answer_in_time_is_an_error_of_its_kind(url: str, path: str, kind: str, options: dict[str, Any], tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("sk-planted-3")
    with pytest.raises(http.HttpError) as caught:
        http.request(url + path, credential=Credential(str(key)), **options)
    assert caught.value.kind == kind
    assert "sk-planted-3" not in repr(caught.value) + str(caught.value.__cause__) + str(caught.value.__suppress_context__)


def test_a_refused_connection_and_addresses_that_cannot_be_asked() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    for address, kind in ((f"http://127.0.0.1:{port}", http.REFUSED), ("https://127.0.0.1", http.UNREACHABLE), ("nonsense", http.UNREACHABLE)):
        with pytest.raises(http.HttpError) as caught:
            http.request(address)
        assert caught.value.kind == kind


def test_text_that_is_no_json_is_broken(url: str) -> None:
    with pytest.raises(http.HttpError, match="not JSON"):
        http.Response(200, b"OK").json()
