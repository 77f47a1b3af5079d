"""Numbers at the top of modules, by the mark of their docstring.

`Limit of SUBJECT:` marks a number that users or operators meet: the reference page of limits lists it. All others are
documented where they are, and the page lists none of them.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

ROOMS = ("api", "executors", "scheduler", "service")
"""Rooms of the hub in which each number has a mark."""
PACKAGES = ("mlp", "mlp_api", "mlp_hub", "mlp_spawner")
"""Packages whose numbers can be limits."""
MARKS = ("Tuning", "Safety", "Given")
"""Kinds of a number inside the code: a trade-off, a protection, or given by a unit, a protocol or a format."""
LIMIT = "Limit of "
"""Mark of a number that people meet; its subject follows."""
_ARITHMETIC = (
    ast.BinOp,
    ast.UnaryOp,
    ast.Constant,
    ast.Name,
    ast.Attribute,
    ast.operator,
    ast.unaryop,
    ast.Load,
)


class Number(NamedTuple):
    """A number with a name at the top of a module."""

    module: str
    name: str
    value: str
    mark: str
    """One of `MARKS`, `LIMIT` with its subject, or empty if its docstring begins with neither."""
    text: str

    @property
    def subject(self) -> str:
        """Subject of a limit; empty for a number inside the code."""
        return self.mark.removeprefix(LIMIT) if self.mark.startswith(LIMIT) else ""


def numbers() -> list[Number]:
    """Return the numbers of `ROOMS`, by module."""
    inside = tuple(f"mlp_hub.{room}." for room in ROOMS)
    return [n for n in _all() if n.module.startswith(inside)]


def limits() -> list[Number]:
    """Return the numbers that people meet, of all packages, by module."""
    return [n for n in _all() if n.subject]


@cache
def _all() -> list[Number]:
    found: list[Number] = []
    for name in PACKAGES:
        top = Path(importlib.import_module(name).__file__ or "").parent
        for file in sorted(top.rglob("*.py")):
            parts = file.relative_to(top.parent).with_suffix("").parts
            found += _of(file, ".".join(parts).removesuffix(".__init__"))
    return found


def _of(file: Path, module: str) -> Iterator[Number]:
    source = file.read_text(encoding="utf-8")
    body = ast.parse(source).body
    for made, said in zip_longest(body, body[1:]):
        match made:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                if name.isupper() and _is_number(value):
                    mark, text = _marked(said)
                    yield Number(module, name, ast.get_source_segment(source, value) or "", mark, text)


def _is_number(value: ast.expr) -> bool:
    """Whether this is arithmetic with a number in it; another name for something else is none."""
    nodes = list(ast.walk(value))
    constants = [type(n.value) for n in nodes if isinstance(n, ast.Constant)]
    return all(isinstance(n, _ARITHMETIC) for n in nodes) and bool(constants) and {*constants} <= {int, float}


def _marked(said: ast.stmt | None) -> tuple[str, str]:
    match said:
        case ast.Expr(value=ast.Constant(value=str(text))):
            mark, colon, rest = " ".join(text.split()).partition(": ")
            return (mark, rest) if colon and (mark in MARKS or mark.startswith(LIMIT)) else ("", text)
    return "", ""
