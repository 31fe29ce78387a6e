# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stand-in for sgl_kernel on a CPU host, for which no wheel is published.

Holds only the `*_cpu` helpers that SGLang imports unguarded with SGLANG_USE_CPU_ENGINE=1. Sub-modules
(sgl_kernel.scalar_type, sgl_kernel.kvcacheio, …) stay absent, so that SGLang's own ImportError fall-backs apply.
"""

from __future__ import annotations

from typing import Any, Callable

__version__ = "0.4.10"


def assign_req_to_token_pool_cpu(req_pool_indices: Any, req_to_token: Any, start: Any, end: Any, out_cache_loc: Any, _width: Any) -> None:
    """Write each request's cache locations into its row of the table, as the kernel does."""
    taken = 0
    for row, first, last in zip(req_pool_indices.tolist(), start.tolist(), end.tolist()):
        count = last - first
        req_to_token[row, first:last] = out_cache_loc[taken : taken + count].to(req_to_token.dtype)
        taken += count


def __getattr__(name: str) -> Callable[..., Any]:
    """Give any other `*_cpu` name a function that can be imported, and fails loudly when it is called."""
    if not name.endswith("_cpu"):
        raise AttributeError(name)

    def stand_in(*_args: Any, **_kwargs: Any) -> Any:
        raise NotImplementedError(f"sgl_kernel is a stand-in on this CPU host and has no {name}")

    stand_in.__name__ = name
    return stand_in
