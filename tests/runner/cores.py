# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ansible-core versions that the collection supports, and how to do something with each of them."""

from __future__ import annotations

from collections.abc import Callable

from runner import venvs
from runner.errors import RunnerError

CORES = {"ansible-2.19": ("3.9",), "ansible-2.21": ("3.13",)}
"""Environment of each supported ansible-core, with the Python versions of managed hosts that its unit tests run on beside
the controller's own: the oldest that is supported and a new one. Every further pair would repeat what these show."""


def each(run: Callable[[str], int]) -> int:
    """Call I(run) with every environment that this machine has a Python for; return the highest status it gave.

    One that it has none for is named and left out; having none at all is an error.
    """
    statuses: list[int] = []
    for core in CORES:
        if venvs.interpreter(core) is None:
            print(f"{core}: not run, no Python {' or '.join(venvs.supported(core))} here", flush=True)
            continue
        print(f"{core}:", flush=True)
        statuses.append(run(core))
    if not statuses:
        raise RunnerError("no ansible-core could be run: none of the Python versions they need runs here.")
    return max(statuses)
