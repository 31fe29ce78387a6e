# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Flags read from source, and the catalogue made by it."""

from __future__ import annotations

from ansible_collections.plumbline.sglang.plugins.module_utils.planning.flag_catalogue import CATALOGUE
from ansible_collections.plumbline.sglang.plugins.module_utils.planning.flag_source import BARE, VALUE, read
from ansible_collections.plumbline.sglang.plugins.module_utils.planning.launch import ALIASES, default_args

# The forms in which sglang 0.5.23 declares its flags.
FIELDS = """
class Parallel(Struct):
    nccl_port: A[Optional[int], "help"] = None
    tp_size: A[int, Arg(help="x", aliases=["--tensor-parallel-size"])] = 1
    enable_metrics: A[bool, "help"] = False
    enable_lora: A[Optional[bool], "help"] = None
    enable_tf32: A[Optional[bool], Arg(help="x", action=argparse.BooleanOptionalAction)] = None
    lora_paths: A[Optional[list], Arg(help="x", action=LoRAPathAction)] = None
    fp8_backend: A[str, Arg(help="x", cli_name="--fp8-gemm-backend")] = "auto"
    hidden: A[bool, Arg(help="x", no_cli=True)] = False
    not_a_flag: int = 0
"""
CALLS = """
def add_cli_args(parser, prefix=""):
    parser.add_argument("--config", type=str, help="x")
    parser.add_argument("--old", action=DeprecatedStoreTrueAction, new_flag="--new")
    parser.add_argument(f"--{prefix}policy", f"--{prefix}policy-alias", type=str)
    group.add_argument(f"--{prefix}dp-aware", action="store_true")
    group.add_argument(f"--{prefix}recover", action=argparse.BooleanOptionalAction)
    parser.add_argument("positional")
"""


def test_declared_fields() -> None:
    assert read([FIELDS]) == {
        "nccl-port": VALUE,
        "tp-size": VALUE,
        "tensor-parallel-size": VALUE,
        "enable-metrics": BARE,
        "enable-lora": BARE,
        "enable-tf32": BARE,
        "no-enable-tf32": BARE,
        "lora-paths": VALUE,
        "fp8-gemm-backend": VALUE,
    }


def test_added_arguments() -> None:
    assert read([CALLS]) == {
        "config": VALUE,
        "old": BARE,
        "policy": VALUE,
        "policy-alias": VALUE,
        "dp-aware": BARE,
        "recover": BARE,
        "no-recover": BARE,
    }


def test_the_catalogue_holds_what_the_plan_itself_uses() -> None:
    bare, valued = CATALOGUE["sglang", "0.5.23"]
    assert set(ALIASES) | set(ALIASES.values()) <= valued
    for package, version, role in (("sglang", "0.5.23", "prefill"), ("smg", "1.13.0", "router"), ("sglang-router", "0.3.2", "router")):
        bare, valued = CATALOGUE[package, version]
        for flag, value in default_args(role, package).items():
            assert flag in (bare if value is True else valued), (package, flag)


def test_every_flag_either_stands_alone_or_takes_values() -> None:
    assert all(not bare & valued for bare, valued in CATALOGUE.values())
    assert {release: len(bare | valued) for release, (bare, valued) in CATALOGUE.items()} == {
        ("sglang", "0.5.23"): 559,
        ("smg", "1.13.0"): 222,
        ("sglang-router", "0.3.2"): 98,
    }
