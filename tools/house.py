"""Print figures of how the tree is kept, for one tree or several beside each other: `python tools/house.py . ../older`.

A figure counts places, not quality: it shows where the next change will touch many files, and what has grown.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "languages"))
import english  # type: ignore[import-not-found]

PRODUCT = ("hub", "extensions", "spawner")
FOLDER = 20
"""Python files that a folder of the product may hold."""
PLACES = ("note", "tensorboard", "checkpoint_every", "leavers", "lending_limit", "core_hours", "shm")
"""Fields of jobs, tenants and runs, each followed through the product."""
NUMBER = re.compile(r"^(?:Tuning|Safety|Given|Contract|Limit)\b")
EXECUTOR_ASKED = re.compile(r"\bruns\.cluster\b")


class Tree:
    """The Python files of a tree's product, parsed once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        found = (path for folder in PRODUCT for path in (root / folder).rglob("*.py"))
        self.texts = {path: path.read_text(encoding="utf-8") for path in sorted(found)}
        self.parsed = {path: ast.parse(text) for path, text in self.texts.items()}
        self.modules = {self._name(path): path for path in self.texts}

    def files_with(self, *words: str) -> int:
        """Count the files that have each of these words as a whole word."""
        patterns = [re.compile(rf"\b{word}\b") for word in words]
        return sum(all(pattern.search(text) for pattern in patterns) for text in self.texts.values())

    def folders(self) -> Counter[str]:
        """Count the Python files of each folder. Database revisions are a sequence, not a folder to search."""
        count: Counter[str] = Counter()
        for path in self.texts:
            if "versions" not in path.parts and path.name != "__init__.py":
                count[str(path.parent.relative_to(self.root))] += 1
        return count

    def classes(self) -> Iterator[ast.ClassDef]:
        """Return the classes at the top of each module."""
        for tree in self.parsed.values():
            yield from (node for node in tree.body if isinstance(node, ast.ClassDef))

    def exceptions_outside_trees(self) -> int:
        """Count the exceptions that derive from Python's own and not from one of the product's."""
        own = {node.name for node in self.classes()}
        count = 0
        for node in self.classes():
            bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
            builtin = {base for base in bases if base.endswith(("Error", "Exception")) and base not in own}
            count += bool(builtin) and not bases & own
        return count

    def numbers(self) -> int:
        """Count the documented numbers at the top of modules."""
        return sum(
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
            and bool(NUMBER.match(node.value.value))
            for tree in self.parsed.values()
            for node in tree.body
        )

    def largest_circle(self) -> int:
        """Return how many modules import each other in the largest circle, 0 where there is none.

        Imports within functions count too; those for types only do not.
        """
        graph = {
            name: {
                target for target in self._imports(path, name) if target in self.modules and target != name
            }
            for name, path in self.modules.items()
        }
        reached = {name: _reached(graph, name) for name in graph}
        return max(sum(name in reached[other] for other in reached[name]) for name in graph)

    def _name(self, path: Path) -> str:
        return ".".join(path.relative_to(self.root).with_suffix("").parts[1:]).removesuffix(".__init__")

    def _imports(self, path: Path, name: str) -> Iterator[str]:
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        waiting: list[ast.AST] = [self.parsed[path]]
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                waiting += node.orelse
                continue
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
                module = ".".join([*above, *filter(None, [node.module])])
                for alias in node.names:
                    submodule = f"{module}.{alias.name}"
                    yield submodule if submodule in self.modules else module
            waiting += ast.iter_child_nodes(node)


def _reached(graph: dict[str, set[str]], start: str) -> set[str]:
    """Return the modules that a module imports, also by others; itself only by a circle."""
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        fresh = graph[waiting.pop()] - reached
        reached |= fresh
        waiting += fresh
    return reached


def figures(root: Path) -> dict[str, str]:
    """Return each figure of a tree by its name."""
    tree = Tree(root)
    folders = tree.folders()
    fullest, most = folders.most_common(1)[0]
    twice = sum(count > 1 for count in Counter(node.name for node in tree.classes()).values())
    found = {
        "Python files of the product": str(len(tree.texts)),
        "lines": str(sum(text.count("\n") for text in tree.texts.values())),
        f"folders above {FOLDER} files": str(sum(count > FOLDER for count in folders.values())),
        "fullest folder": f"{fullest}, {most}",
        "modules in the largest circle of imports": str(tree.largest_circle()),
        "class names that stand twice": str(twice),
        "exceptions outside the trees": str(tree.exceptions_outside_trees()),
        "documented numbers": str(tree.numbers()),
        "files that ask for the executor by name": str(
            sum(bool(EXECUTOR_ASKED.search(text)) for text in tree.texts.values())
        ),
        "files with cpu, gpu and ram": str(tree.files_with("cpu", "gpu", "ram")),
        **{f"files with {name}": str(tree.files_with(name)) for name in PLACES},
    }
    english.ROOT = root
    english.CATALOGUES = root / "hub/mlp_language/locale/zh_CN/LC_MESSAGES"
    for place, texts in english.PLACES.items():
        count, marked, _ = english.share(texts())
        found[f"{place} with a mark"] = f"{100 * marked / count:.1f} % of {count}"
    return found


def main(roots: list[Path]) -> None:
    """Print the figures of these trees beside each other."""
    tables = [figures(root) for root in roots]
    for name in tables[0]:
        print(f"{name:42}", *(f"{table[name]:>36}" for table in tables))  # noqa: T201 - a tool of `make`


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:] or ["."]])
