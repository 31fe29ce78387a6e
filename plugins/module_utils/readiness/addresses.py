# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses of servers that somebody typed: what is wrong with one, before it is asked. Pure."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit


def normal(url: str) -> str:
    """A server's address without the slash that some releases append."""
    return str(url).rstrip("/")


def bad_address(what: str, url: Any, path: bool = False) -> str:
    """Why ``url`` is not ``http://address:port``; empty where it is. ``path``: one may follow.

    The text does not repeat an address that holds a user or a password.
    """
    if not isinstance(url, str) or not url:
        return f"{what} is {url!r}, expected http://address:port"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return f"{what} is no address ({error}), expected http://address:port"
    if "@" in parts.netloc:
        return f"{what} holds a user or a password; expected http://address:port, and the key in the file of credential_path"
    if parts.scheme != "http" or not parts.hostname or not port or " " in url:
        return f"{what} is {url!r}, expected http://address:port"
    if (not path and parts.path not in ("", "/")) or parts.query or parts.fragment:
        return f"{what} is {url!r}, expected http://address:port and nothing behind it"
    return ""
