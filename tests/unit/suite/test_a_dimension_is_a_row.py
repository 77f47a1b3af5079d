"""How many places a dimension has that is only counted, as the size of /dev/shm, and which ones a new dimension needs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mlp_hub.domain.dimensions import COUNTED, ON_NODES

ROOT = Path(__file__).parents[3]
ROWS = {"hub/mlp_hub/domain/dimensions.py", "widgets/src/core/format/dimensions.ts"}
ACTS = {
    "shm": {
        "hub/mlp_hub/executors/kubernetes/gang/pods.py",
        "hub/mlp_hub/executors/local/prepare.py",
        "hub/mlp_hub/sandbox/shim/diagnosis/outcome.py",
        "hub/mlp_hub/sandbox/shim/view.py",
        "hub/mlp_hub/sandbox/spec.py",
        "hub/mlp_hub/service/lifecycle/messages.py",
    },
}
"""Modules that name a counted dimension because it acts there."""
MADE = {"extensions/mlp/terms.py", "widgets/src/core/format/terms.ts"}
COUNTED_AT = {
    "hub/mlp_hub/executors/local/node.py": "the capacity of this machine",
    "hub/mlp_hub/executors/kubernetes/nodes/amounts.py": "the capacity of a cluster's nodes, and what pods take of it",
}
"""Modules that name each dimension of nodes."""


def names(path: Path, dimension: str) -> bool:
    """Whether a module names a dimension."""
    return bool(re.search(rf"(?<!/dev/)\b{dimension}(?:s|_mib)?\b", path.read_text(encoding="utf-8")))


def test_each_counted_dimension_lists_where_it_acts() -> None:
    assert {*ACTS} == {*COUNTED}, "list in ACTS the modules where it acts (CONTRIBUTING.md, A dimension)"


@pytest.mark.parametrize("dimension", ACTS)
def test_a_counted_dimension_is_named_in_two_rows_and_where_it_acts(dimension: str) -> None:
    sources = [
        path
        for folder, endings in (("hub", "py"), ("extensions", "py"), ("widgets/src", "ts*"))
        for path in (ROOT / folder).rglob(f"*.{endings}")
    ]
    named = {str(path.relative_to(ROOT)) for path in sources if names(path, dimension)}
    assert named == ROWS | ACTS[dimension] | MADE


def test_executors_count_each_dimension_of_nodes() -> None:
    lacking = [
        f"{dimension}: {path}, {purpose}"
        for dimension in ON_NODES
        for path, purpose in COUNTED_AT.items()
        if not names(ROOT / path, dimension)
    ]
    assert not lacking, "a job that asks for it finds no node"


def test_each_counted_dimension_is_in_the_page_about_quotas() -> None:
    page = (ROOT / "docs/how-to/tenants.md").read_text(encoding="utf-8")
    assert not [d for d in COUNTED if f"`{d}`" not in page or f"`--{d}`" not in page]
