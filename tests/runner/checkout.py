# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of a git checkout."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from runner.errors import RunnerError


def files(checkout: Path, *below: str) -> list[str]:
    """Return the files that git tracks or would add, relative to the checkout and sorted: what a commit of all would hold.

    I(below) limits them to directories. Links are files. Raises RunnerError where there is no git checkout.
    """
    listing = ["git", "-C", str(checkout), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *below]
    try:
        answer = subprocess.run(listing, capture_output=True, check=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise RunnerError(f"git cannot list the files of {checkout} ({error}); this needs a git checkout.") from error
    return [name for name in sorted(set(answer.split("\0"))) if name and os.path.lexists(checkout / name)]
