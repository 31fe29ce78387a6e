#!/usr/bin/env bash
# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Molecule's scenarios, on a lab of their own: a lab that `make demo` left serving is not touched, its caches are shared.
#   tests/molecule.sh [ARGUMENTS OF molecule]       (default: test --all)

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
caches="${XDG_CACHE_HOME:-$HOME/.cache}"
export PLUMBLINE_LAB_CACHE="${PLUMBLINE_LAB_CACHE:-$caches/plumbline-lab}"
export PLUMBLINE_LAB_HOME="$caches/plumbline-lab-molecule"
export PLUMBLINE_LAB_SUBNET="${PLUMBLINE_MOLECULE_SUBNET:-10.89.79.0/24}"

tools=$(tests/venv molecule)
export PATH="$tools:$PATH"
tests/lab/lab wheelhouse
tests/lab/lab models tiny-llama
if [ $# -eq 0 ]; then set -- test --all; fi
# A scenario that failed or was interrupted half-way must not leave hosts behind, unless somebody works on it by hand.
if [ "$1" = test ]; then trap 'tests/lab/lab down' EXIT; fi
export MOLECULE_GLOB="molecule/*/molecule.yml"
molecule "$@"
