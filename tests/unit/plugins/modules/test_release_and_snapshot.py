# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the modules release and model_snapshot return on every path, as their documentation has it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.plumbline.sglang.plugins.module_utils.problem import Problem
from ansible_collections.plumbline.sglang.plugins.modules import model_snapshot, release


class Ended(Exception):
    """The module gave its result."""


def run(monkeypatch: pytest.MonkeyPatch, module: Any, params: dict[str, Any]) -> dict[str, Any]:
    given: dict[str, Any] = {}

    def end(**result: Any) -> None:
        given.update(result)
        raise Ended

    fake = SimpleNamespace(params=params, check_mode=False, fail_json=end, exit_json=end, warn=lambda text: None)
    monkeypatch.setattr(module, "AnsibleModule", lambda **options: fake)
    with pytest.raises(Ended):
        module.main()
    return given


def failing(error: Exception) -> Any:
    def call(*_arguments: Any, **_options: Any) -> None:
        raise error

    return call


ERRORS = pytest.mark.parametrize("error", [OSError(28, "No space left on device"), Problem("it", "No space left on device", "room", "make room")])


@ERRORS
def test_a_release_that_fails_says_what_next(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    monkeypatch.setattr(release, "Releases", lambda *arguments: SimpleNamespace(ensure=failing(error)))
    described = {"id": "x-1", "path": "/opt/x-1", "python": None}
    result = run(monkeypatch, release, {"release": described, "full_check": False, "progress_file": None})
    assert "No space left on device" in result["seen"]
    assert result["expected"] and result["next"] and result["id"] == "x-1"


def snapshot(monkeypatch: pytest.MonkeyPatch, inspect: Any) -> dict[str, Any]:
    store = SimpleNamespace(path="/srv/tiny", inspect=inspect, refresh=lambda source: None)
    monkeypatch.setattr(model_snapshot, "Store", lambda *arguments: store)
    params = {"model": {"name": "tiny"}, "manifest_directory": "/m", "service_user": "sglang", "phase": "inspect", "source": [], "full_check": False}
    return run(monkeypatch, model_snapshot, {**params, "progress_file": None})


@ERRORS
def test_a_snapshot_that_fails_says_what_next(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    result = snapshot(monkeypatch, failing(error))
    assert "No space left on device" in result["seen"]
    assert result["expected"] and result["next"] and result["name"] == "tiny"


@pytest.mark.parametrize("send", [[], ["config.json"]])
def test_what_is_sent_is_returned_where_something_is(monkeypatch: pytest.MonkeyPatch, send: list[str]) -> None:
    result = snapshot(monkeypatch, lambda source: {"current": not send, "send": send, "bytes": 7})
    assert result.get("send", []) == send
    assert ("send" in result) == bool(send)
    assert result["bytes"] == 7
