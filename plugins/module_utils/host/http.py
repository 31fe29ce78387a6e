# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One HTTP request to a known address: no proxies, no redirects, a deadline for the whole of it, a limit on the answer.

The standard library alone. ``http.client`` follows no redirects and reads no proxy variables; its time-out is per read,
so a server that drips bytes could hold a caller for ever: here a timer closes the socket at the deadline.
"""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from .credentials import Credential

CONNECT_SECONDS = 3.0
TOTAL_SECONDS = 5.0
#: /server_info of 0.5.23 is 37 kB per data-parallel rank, /metrics some 60 kB per rank.
LIMIT_BYTES = 16 << 20

REFUSED = "refused"
TIMEOUT = "timeout"
UNREACHABLE = "unreachable"
BROKEN = "broken"
TOO_LARGE = "too large"


class HttpError(Exception):
    """No usable answer. ``kind`` is one of the constants above; the text is for people and holds no key."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


@dataclass(frozen=True)
class Response:
    """An answer, whatever its status. ``seconds`` is from the first byte sent to the last one read."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def refused_key(self) -> bool:
        """The server is alive and did not accept the key, or the lack of one."""
        return self.status in (401, 403)

    def text(self, limit: int = 200) -> str:
        """The beginning of the body as one line, for messages."""
        return " ".join(self.body[: limit * 4].decode("utf-8", "replace").split())[:limit]

    def json(self) -> Any:
        """The body as JSON.

        :raises HttpError: (``broken``) where it is none.
        """
        try:
            return json.loads(self.body)
        except ValueError:
            raise HttpError(BROKEN, f"the answer is not JSON: {self.text(80)!r}") from None


def _read(response: http.client.HTTPResponse, limit: int) -> bytes:
    body = response.read(limit + 1)
    if len(body) > limit:
        raise HttpError(TOO_LARGE, f"the answer is larger than {limit} bytes")
    return body


def _explain(error: Exception, late: bool, connect: float, total: float, connected: bool) -> HttpError:
    if late:
        return HttpError(TIMEOUT, f"no answer within {total:g} s")
    if isinstance(error, HttpError):
        return error
    if isinstance(error, ConnectionRefusedError):
        return HttpError(REFUSED, "connection refused")
    if isinstance(error, (socket.timeout, TimeoutError)):
        return HttpError(TIMEOUT, f"no answer within {total:g} s" if connected else f"no connection within {connect:g} s")
    if isinstance(error, http.client.HTTPException):
        return HttpError(BROKEN, f"not an HTTP answer ({type(error).__name__})")
    if connected:
        return HttpError(BROKEN, f"the connection broke ({getattr(error, 'strerror', None) or type(error).__name__})")
    return HttpError(UNREACHABLE, f"no connection ({getattr(error, 'strerror', None) or type(error).__name__})")


def request(
    url: str,
    *,
    method: str = "GET",
    payload: Any = None,
    headers: Mapping[str, str] | None = None,
    credential: Credential | None = None,
    connect: float = CONNECT_SECONDS,
    total: float = TOTAL_SECONDS,
    limit: int = LIMIT_BYTES,
) -> Response:
    """Send one request and read the whole answer.

    :param payload: sent as JSON where it is not None.
    :param credential: its key goes into the Authorization header.
    :param connect: seconds to connect. :param total: seconds for everything. :param limit: bytes of body accepted.
    :raises HttpError: for anything but a complete answer. :raises CredentialError: where the key cannot be read.
    """
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        raise HttpError(UNREACHABLE, f"only http:// addresses can be asked, not {url!r}")
    send = {"Accept": "application/json, text/plain;q=0.5, */*;q=0.1", "Connection": "close", **(headers or {})}
    body = None
    if payload is not None:
        body = json.dumps(payload).encode()
        send["Content-Type"] = "application/json"
    if credential is not None:
        send["Authorization"] = f"Bearer {credential.read()}"

    begun = time.monotonic()
    connection = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=min(connect, total))
    late = threading.Event()
    connected = False
    timer = None
    try:
        connection.connect()
        connected = True
        connection.sock.settimeout(total)

        def close(sock: socket.socket = connection.sock) -> None:
            late.set()
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(max(0.01, total - (time.monotonic() - begun)), close)
        timer.daemon = True
        timer.start()
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request(method, path, body=body, headers=send)
        answer = connection.getresponse()
        content = _read(answer, limit)
        # A body without a length ends where the connection ends, so a closed socket could pass for a whole answer.
        if late.is_set():
            raise HttpError(TIMEOUT, f"no answer within {total:g} s")
        return Response(
            answer.status, content, {name.lower(): value for name, value in answer.getheaders()}, time.monotonic() - begun
        )
    except (OSError, http.client.HTTPException, HttpError) as error:
        raise _explain(error, late.is_set(), connect, total, connected) from None
    finally:
        if timer:
            timer.cancel()
        connection.close()
