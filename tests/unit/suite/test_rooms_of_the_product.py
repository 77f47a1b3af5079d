"""Folders and imports of the product: no folder with too many files, and no circle of imports, late ones included."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TOPS = {
    "mlp": ROOT / "extensions/mlp",
    "mlp_api": ROOT / "hub/mlp_api",
    "mlp_hub": ROOT / "hub/mlp_hub",
    "mlp_spawner": ROOT / "spawner/mlp_spawner",
}
"""Packages of the product, without `mlp_language`: there a message imports its renderer for logs and debugging."""
MOST_FILES = 20
LARGER = {
    "hub/mlp_hub/store/migrations/versions": "one file for each change of the tables, in one line",
}


def name(path: Path, top: Path) -> str:
    parts = path.relative_to(top.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name(path, top): path for top in TOPS.values() for path in sorted(top.rglob("*.py"))}


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Give all below a node, those within functions too, without what only a type checker reads."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        yield child
        yield from statements(child)


def imports(source: str) -> set[str]:
    found: set[str] = set()
    for node in statements(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "an import names its module in full"
            of = str(node.module)
            found |= {full if (full := f"{of}.{alias.name}") in MODULES else of for alias in node.names}
    return found & MODULES.keys()


def test_no_module_imports_itself_by_way_of_others() -> None:
    tree = {module: imports(path.read_text()) - {module} for module, path in MODULES.items()}
    assert tree["mlp.cli"] >= {"mlp.cli.own", "mlp.cli.output"}, (
        "imports are found, those within functions too"
    )
    TopologicalSorter(tree).prepare()  # raises CycleError


@pytest.mark.parametrize("package", TOPS)
def test_no_folder_has_too_many_files(package: str) -> None:
    top = TOPS[package]
    files = {
        folder.relative_to(ROOT).as_posix(): len(list(folder.glob("*.py")))
        for folder in (top, *top.rglob("*"))
        if folder.is_dir() and "node_modules" not in folder.parts
    }
    assert {folder for folder, n in files.items() if n > MOST_FILES} <= LARGER.keys()
