# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The error that the runner's commands report without a traceback."""

from __future__ import annotations


class RunnerError(Exception):
    """Something that the developer can mend; the message says what was seen and what to do."""
