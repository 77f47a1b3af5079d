"""The executors that a setting may name are those that can be made."""

from __future__ import annotations

import asyncio
from dataclasses import fields, replace
from pathlib import Path

import pytest

from mlp_hub.app import EXECUTORS, make_executor
from mlp_hub.settings import Settings, SettingsError


def test_every_executor_that_a_setting_may_name_is_in_the_table() -> None:
    (field,) = [field for field in fields(Settings) if field.name == "executor"]
    assert field.metadata["choices"] == tuple(EXECUTORS)


def test_each_is_made_under_its_own_name(tmp_path: Path) -> None:
    for name in EXECUTORS:
        settings = Settings.load({"MLP_HOME": str(tmp_path), "MLP_EXECUTOR": name})
        executor = make_executor(settings)
        assert executor.name == name
        asyncio.run(executor.close())


def test_one_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    settings = replace(Settings.load({"MLP_HOME": str(tmp_path)}), executor="cloud")
    with pytest.raises(SettingsError, match=r"'cloud'.* local, simulated"):
        make_executor(settings)
