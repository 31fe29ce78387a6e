# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lab's own cgroup: every process of every host is in it, which makes it the sure way to find and end them."""

from __future__ import annotations

from . import namespace, process
from .settings import Settings

# Deepest first, since a cgroup goes only after its children; twenty tries give killed processes a moment to leave.
_REMOVE = r"""
top=/sys/fs/cgroup$1
[ -d "$top" ] || exit 0
[ ! -e "$top/cgroup.kill" ] || echo 1 > "$top/cgroup.kill"
for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    find "$top" -depth -type d -exec rmdir {} + 2>/dev/null
    [ -d "$top" ] || exit 0
    sleep 0.1
done
echo "still there: $top" >&2
exit 1
"""


def remove(settings: Settings, holder: namespace.Holder) -> None:
    """End whatever still runs in the lab's cgroup and remove it."""
    process.capture(namespace.inside(holder, ["sh", "-c", _REMOVE, "sh", settings.cgroup]))
