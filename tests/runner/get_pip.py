# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stand-in for the pip bootstrap script that C(ansible-test --venv) downloads.

ansible-test runs C(get_pip_VERSION.py) from its cache in an environment without pip and downloads it from a host of its
own where it is missing. This one needs no download: Python's own ensurepip brings a pip, which then installs the version
that was asked for, under the user's own pip settings. The runner lays it into the cache of its private home directory only.
"""

from __future__ import annotations

import subprocess
import sys

NOT_PIPS_OWN = ("--no-setuptools", "--no-wheel")
"""Options of the real script that pip does not know. It installs neither package unless told to, as ensurepip."""


def main() -> int:
    """Install pip as the arguments say; return pip's exit status."""
    # A process of its own: ensurepip switches pip's settings off in the process that it runs in.
    subprocess.run([sys.executable, "-m", "ensurepip"], check=True, stdout=subprocess.DEVNULL)
    wanted = [argument for argument in sys.argv[1:] if argument not in NOT_PIPS_OWN]
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", *wanted]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
