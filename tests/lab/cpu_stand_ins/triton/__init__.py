# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stand-in for triton (1 GB): SGLang's own mock for platforms without it, since nothing compiles a kernel on a CPU.

SGLang installs that mock on macOS alone; here it is loaded from the installed SGLang, extended by the few names that
its CPU path looks at on import, and put in the place of this module.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any


def _load_stubs() -> ModuleType:
    """Load SGLang's platform stubs by path: importing sglang itself would import triton."""
    package = importlib.machinery.PathFinder.find_spec("sglang")
    if package is None or not package.submodule_search_locations:
        raise ImportError("the triton stand-in needs an installed sglang, and found none on sys.path")
    path = f"{package.submodule_search_locations[0]}/_platform_stubs.py"
    spec = importlib.util.spec_from_file_location("_sgl_platform_stubs", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"the triton stand-in cannot load {path}; it is made for SGLang 0.5.23")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class constexpr:  # noqa: N801  (triton's own spelling)
    """Holds a value; kernels would read it at compile time."""

    def __init__(self, value: Any = None) -> None:
        self.value = value


def _install() -> None:
    """Put the mock in the place of this module, in sys.modules."""
    stubs: Any = _load_stubs()
    del sys.modules["triton"]
    sys.meta_path.insert(0, stubs._TritonFinder())

    triton = stubs._make_mock("triton")
    triton.__version__ = "3.0.0"
    triton.cdiv = stubs._cdiv
    triton.next_power_of_2 = stubs._next_power_of_2
    triton.Config = stubs._Config

    triton.language = stubs._make_mock("triton.language")
    triton.language.constexpr = constexpr

    triton.runtime = stubs._make_mock("triton.runtime")
    triton.runtime.jit = stubs._make_mock("triton.runtime.jit")
    triton.runtime.jit.JITFunction = type("JITFunction", (), {})
    triton.runtime.jit.KernelInterface = type("KernelInterface", (stubs._StubBase,), {})
    triton.runtime.autotuner = stubs._make_mock("triton.runtime.autotuner")
    triton.runtime.autotuner.OutOfResources = type("OutOfResources", (Exception,), {})
    triton.runtime.autotuner.PTXASError = type("PTXASError", (Exception,), {})

    triton.compiler = stubs._make_mock("triton.compiler")
    triton.compiler.CompiledKernel = type("CompiledKernel", (stubs._StubBase,), {})


_install()
