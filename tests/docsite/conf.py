# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of Sphinx for the pages that antsibull-docs writes. Nothing is fetched: what Ansible's own site has is named in elsewhere.rst."""

project = "plumbline.sglang"
extensions = ["sphinx_antsibull_ext"]
html_theme = "alabaster"
highlight_language = "YAML+Jinja"
pygments_style = "ansible"
default_role = "any"
# A reference that leads nowhere is a warning, and a warning fails.
nitpicky = True
