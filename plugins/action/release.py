# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Installs a release and shows how far it is."""

from __future__ import annotations

from ansible_collections.plumbline.sglang.plugins.plugin_utils.streaming import StreamingAction


class ActionModule(StreamingAction):
    MODULE = "plumbline.sglang.release"
