"""The rooms of `mlp`: no circle of imports, and no folder with too many files."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import mlp

TOP = Path(mlp.__file__).parent
MOST_FILES = 20


def name(path: Path) -> str:
    parts = path.relative_to(TOP.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name(path): path for path in sorted(TOP.rglob("*.py"))}


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


def test_no_folder_has_too_many_files() -> None:
    files = {
        folder: len([f for f in folder.iterdir() if f.is_file()])
        for folder in (TOP, *TOP.rglob("*"))
        if folder.is_dir() and folder.name != "__pycache__"
    }
    assert {folder: n for folder, n in files.items() if n > MOST_FILES} == {}
