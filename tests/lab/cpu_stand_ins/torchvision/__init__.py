# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Import-only stand-in for torchvision, whose published wheels need a CUDA build of torch.

SGLang imports names from it for image models; a text model calls none of them, and a call fails loudly.
"""

from __future__ import annotations

import enum
import importlib.abc
import importlib.machinery
import sys
import types
from typing import Any, Optional, Sequence

__version__ = "0.28.0"


class _Anything:
    """Can be made, subclassed and passed on, but not called."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        pass

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        raise RuntimeError("torchvision is a stand-in on this CPU host: it can be imported, not used")

    def __init_subclass__(cls, **_kwargs: Any) -> None:
        super().__init_subclass__()


# The one value that is looked at on import: its members are compared.
_INTERPOLATION_MODE = enum.Enum(  # type: ignore[misc]
    "InterpolationMode",
    {name.upper().replace("-", "_"): name for name in ("nearest", "nearest-exact", "bilinear", "bicubic", "box", "hamming", "lanczos")},
)


class _Module(types.ModuleType):
    """A module that has every public name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value: Any
        if name == "InterpolationMode":
            value = _INTERPOLATION_MODE
        elif name[0].isupper():
            value = type(name, (_Anything,), {})
        else:
            value = _Anything()
        setattr(self, name, value)
        return value


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every sub-module of torchvision."""

    def find_spec(
        self, name: str, path: Optional[Sequence[str]] = None, target: Optional[types.ModuleType] = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        if name.startswith("torchvision."):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        module.__path__ = []


sys.meta_path.insert(0, _Finder())
