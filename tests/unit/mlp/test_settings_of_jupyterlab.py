"""Settings of JupyterLab that cannot be read count as not set, by a function of jupyterlab_server that is not public."""

from __future__ import annotations

import importlib
import json
import logging
import os
import warnings
from pathlib import Path
from typing import Any

import pytest

from mlp.notebook_server import lab_settings

MOVED = (
    "jupyterlab_server reads a user's settings elsewhere now: extensions/mlp/notebook_server/lab_settings.py must take the "
    "place of what does that today, or Lab's page stays empty where a setting cannot be read"
)
NAME = "@jupyterlab/apputils-extension:themes"
WHERE = Path("@jupyterlab", "apputils-extension")


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of jupyterlab_server, as it is again after the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what it imports
        served: Any = importlib.import_module("jupyterlab_server.settings_utils")
    assert hasattr(served, "_get_user_settings"), MOVED
    monkeypatch.setattr(served, "_get_user_settings", served._get_user_settings)
    lab_settings.tolerate(logging.getLogger("lab"))
    return served


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """The file of one setting; its directory is there, and its schema."""
    schema = tmp_path / "schemas" / WHERE / "themes.json"
    schema.parent.mkdir(parents=True)
    schema.write_text(json.dumps({"type": "object", "properties": {"theme": {"type": "string"}}}))
    file = tmp_path / "user" / WHERE / "themes.jupyterlab-settings"
    file.parent.mkdir(parents=True)
    return file


def read(served: Any, tmp_path: Path) -> Any:
    """Read all settings, as for each page of Lab."""
    found, _ = served.get_settings(str(tmp_path / "app"), str(tmp_path / "schemas"), str(tmp_path / "user"))
    return {one["id"]: one["settings"] for one in found["settings"]}


def test_the_public_way_to_read_settings_uses_the_function_that_is_replaced(
    served: Any, settings: Path, tmp_path: Path
) -> None:
    settings.write_text(json.dumps({"theme": "dark"}))
    assert read(served, tmp_path) == {NAME: {"theme": "dark"}}
    settings.write_text("{")
    try:
        assert read(served, tmp_path) == {NAME: {}}
    except Exception as error:
        raise AssertionError(MOVED) from error


@pytest.mark.parametrize("torn", [b"\0\0", b"[", b'"\xc3', b"\xff\xfe"])
def test_a_torn_setting_counts_as_not_set(served: Any, settings: Path, tmp_path: Path, torn: bytes) -> None:
    settings.write_bytes(torn)
    assert read(served, tmp_path) == {NAME: {}}


def test_a_named_pipe_counts_as_not_set_and_blocks_no_server(
    served: Any, settings: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    os.mkfifo(settings)
    assert read(served, tmp_path) == {NAME: {}}
    assert f"{settings} is not a file; it counts as not set" in caplog.text
