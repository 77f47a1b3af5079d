"""What docstrings and comments name is there: a module as `folder.module`, and in a module's first words all that they name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP = Path(__file__).parents[3] / "hub" / "mlp_hub"
DOTTED = re.compile(r"`([a-z_]\w*(?:\.[a-z_]\w*)+)`")
PLAIN = re.compile(r"`([a-z_][a-z_0-9]*)`")
ENDINGS = {"py", "json", "go"}
NO_NAMES = {"some_name", "fair", "maxmin", "quota.cpu"}  # an example, policies, a key of scenarios
TEXTS = {path: path.read_text() for path in TOP.rglob("*.py")}
MODULES = {path.relative_to(TOP).with_suffix("").parts: path for path in TEXTS}
MODULES |= {parts[:-1]: path for parts, path in MODULES.items() if parts[-1] == "__init__" and parts[:-1]}
NAMES = {part for parts in MODULES for part in parts}
DEFINED = {
    name
    for text in TEXTS.values()
    for name in re.findall(r"^ *(?:async )?(?:def )?(\w+)[:(]", text, re.MULTILINE)
}


def is_there(name: str) -> bool:
    """Say whether a dotted name is the end of a module's, with a name that stands in it."""
    parts = tuple(name.removeprefix("mlp_hub.").split("."))
    for module, path in MODULES.items():
        if module[-len(parts) :] == parts:
            return True
        if module[-len(parts) + 1 :] == parts[:-1] and re.search(rf"\b{parts[-1]}\b", TEXTS[path]):
            return True
    return False


def dotted() -> Iterator[tuple[str, str]]:
    for path, text in TEXTS.items():
        for name in DOTTED.findall(text):
            if (
                name not in NO_NAMES
                and name.split(".")[0] in {*NAMES, "mlp_hub"}
                and name.rsplit(".")[-1] not in ENDINGS
            ):
                yield str(path.relative_to(TOP)), name


def plain() -> Iterator[tuple[str, str]]:
    for path, text in TEXTS.items():
        said = ast.get_docstring(ast.parse(text), clean=False) or ""
        known = {*re.findall(r"\w+", text.replace(said, "", 1)), *NAMES, *DEFINED, *NO_NAMES}
        for name in PLAIN.findall(said):
            if name not in known:
                yield str(path.relative_to(TOP)), name


@pytest.mark.parametrize(("where", "name"), sorted(set(dotted())))
def test_a_dotted_name_is_a_module_or_is_defined_in_one(where: str, name: str) -> None:
    assert is_there(name)


def test_names_in_a_modules_first_words_are_defined_in_it_or_are_modules() -> None:
    assert sorted(plain()) == []
