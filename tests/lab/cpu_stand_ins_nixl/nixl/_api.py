# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The real NIXL agent; "VRAM" means host memory here, because that is where a CPU engine keeps its KV cache."""

from nixl_cu12 import _api as _real
from nixl_cu12._api import *  # noqa: F401,F403  (stands in for the whole module)
from nixl_cu12._api import nixl_agent_config  # noqa: F401  (not in its __all__)


class nixl_agent(_real.nixl_agent):  # noqa: N801  (NIXL's own spelling)
    """The real agent, with one entry of its table of memory kinds changed."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.nixl_mems = dict(self.nixl_mems, VRAM=self.nixl_mems["DRAM"])
