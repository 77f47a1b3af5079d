"""The page of the architecture lists each room of the largest packages, and no others."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/explanation/architecture.md").read_text()
OUTSIDE = PAGE.partition("Modules of `mlp` that are not")[2].partition("A package of")[0]
"""The text that names single modules of `mlp`."""
LISTS = {"mlp_hub.service": "service/", "mlp_hub.scheduler": "scheduler/", "mlp": "mlp/"}
LAYERS = {
    contract["containers"][0]: contract
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    if contract["type"] == "layers"
}


def listed(title: str) -> list[str]:
    """Return the rooms of a list: names in the second column, before its words."""
    (block,) = re.findall(rf"^{title} (.*?)(?:\n\n|\n```)", PAGE, re.DOTALL | re.MULTILINE)
    rows = [line[15:] if n else line.lstrip() for n, line in enumerate(block.splitlines())]
    found = (re.match(r"(?:[a-z_]+(?:, |$|(?= )))+", row) for row in rows)
    return [name for one in found if one for name in re.findall(r"[a-z_]+", one[0])]


@pytest.mark.parametrize("package", LISTS)
def test_the_page_lists_the_rooms_of_a_package(package: str) -> None:
    contract = LAYERS[package]
    rooms = {name for row in contract["layers"] for name in re.findall(r"\w+", row)} - {"__main__"}
    rooms |= set(contract.get("exhaustive_ignores", ()))
    single = set(re.findall(r"`([a-z_]+)`", OUTSIDE)) if package == "mlp" else set()
    assert sorted(rooms - single) == sorted(name for name in listed(LISTS[package]) if name not in single), (
        f"{LISTS[package]} in docs/explanation/architecture.md differs from the layers of pyproject.toml"
    )


def test_the_page_lists_the_rooms_of_the_front_end() -> None:
    block = PAGE.partition("lab            JupyterLab")[2].partition("```")[0]
    folders = [
        path for path in (ROOT / "widgets/src").glob("*/*") if path.is_dir() and path.parent.name != "styles"
    ]
    assert len(folders) > 15
    assert [path.name for path in folders if not re.search(rf"\b{path.name}\b", block)] == []


def test_the_table_lists_the_rooms_of_the_other_packages() -> None:
    rows = re.findall(r"^\| `(mlp_[a-z_/]+)` \| (.*) \|$", PAGE, re.MULTILINE)
    assert len(rows) > 8
    for package, text in rows:
        (top,) = [place for part in ("hub", "spawner") if (place := ROOT / part / package).is_dir()]
        rooms = {path.parent.name for path in top.glob("*/__init__.py")}
        assert rooms - set(re.findall(r"`([a-z_]+)`", text)) == set(), package
        layers = " ".join(LAYERS[package.replace("/", ".")]["layers"])
        assert rooms - set(re.findall(r"\w+", layers)) == set(), package
