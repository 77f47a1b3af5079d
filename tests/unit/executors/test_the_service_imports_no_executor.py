"""The contract that keeps executors out of the service names each of them."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]
NAME = "The service knows executors by their interface"


def test_the_contract_names_each_executor() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (contract,) = [one for one in contracts if one["name"] == NAME]
    executors = {
        f"mlp_hub.executors.{path.parent.name}"
        for path in (ROOT / "hub/mlp_hub/executors").glob("*/__init__.py")
    }
    assert len(executors) > 2
    assert executors - set(contract["forbidden_modules"]) == set()
