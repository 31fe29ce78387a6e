# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys from credential files, and text without them.

A key lives in a file that only root and the service group may read. It is read at the moment it is used, goes into one
request header, and appears in no text, no exception and no ``repr`` of this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

#: Names under which the engine keeps secrets (srt/server_args.py: api_key, admin_api_key, ssl_keyfile_password).
SECRET_FIELDS = ("api_key", "admin_api_key", "ssl_keyfile_password")
#: The same as flags. argparse accepts any unambiguous beginning of a flag, hence prefixes.
SECRET_FLAG_PREFIXES = ("--api-k", "--admin-api", "--ssl-keyfile-p")

HIDDEN = "<hidden>"
_NAMES = "|".join(SECRET_FIELDS)
_PATTERNS = (
    # a dict's repr or JSON, as in the engine's `server_args={...}`
    (re.compile(rf"""((?:['"])(?:{_NAMES})['"]\s*:\s*)(?:'[^']*'|"[^"]*")"""), rf"\1{HIDDEN}"),
    # a dataclass's repr, as releases before 0.5.20 print it
    (re.compile(rf"""(\b(?:{_NAMES})=)(?:'[^']*'|"[^"]*")"""), rf"\1{HIDDEN}"),
    (re.compile(r"(--(?:api-key|admin-api-key|ssl-keyfile-password)[= ])\S+"), rf"\1{HIDDEN}"),
    (re.compile(r"(?i)(\bbearer\s+)[^\s'\"]+"), rf"\1{HIDDEN}"),
    (re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*://)[^/@\s]+@"), rf"\1{HIDDEN}@"),
)


class CredentialError(Exception):
    """A credential file is missing, unreadable or no key. The text names the file, never what it holds."""


class Credential:
    """A key by the path of its file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"Credential({self.path!r})"

    def read(self) -> str:
        """The key: the file's content without the white space around it.

        :raises CredentialError: where there is no readable, one-line, printable ASCII key.
        """
        try:
            with open(self.path, "rb") as file:
                key = file.read(65536).strip()
        except OSError as error:
            raise CredentialError(f"the credential file {self.path} cannot be read: {error.strerror}") from None
        # An HTTP header must not be broken by a key, and http.client would quote a bad one in its exception.
        if not key or not all(0x21 <= byte <= 0x7E for byte in key):
            raise CredentialError(f"the credential file {self.path} does not hold one printable ASCII word")
        return key.decode("ascii")


class Redactor:
    """Takes secrets out of text: known values wherever they stand, and whatever stands behind a secret's name."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        # The longest first, so that a key that begins with another one goes whole.
        self._values = sorted({value for value in values if value}, key=len, reverse=True)

    def __repr__(self) -> str:
        return f"Redactor({len(self._values)} values)"

    @classmethod
    def of(cls, paths: Iterable[str]) -> Redactor:
        """A redactor for the keys in these credential files; a file that cannot be read adds nothing."""
        values = []
        for path in paths:
            try:
                values.append(Credential(path).read())
            except CredentialError:
                continue
        return cls(values)

    def text(self, text: str) -> str:
        """``text`` without secrets."""
        for value in self._values:
            text = text.replace(value, HIDDEN)
        for pattern, replacement in _PATTERNS:
            text = pattern.sub(replacement, text)
        return text


def without_secret_flags(words: Iterable[str]) -> list[str]:
    """Words of a command line without secret flags and their values; the value of ``--watermark-config`` is hidden."""
    kept: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word.startswith(SECRET_FLAG_PREFIXES):
            skip = "=" not in word
        elif kept and kept[-1] == "--watermark-config":
            kept.append(HIDDEN)
        else:
            kept.append(word)
    return kept
