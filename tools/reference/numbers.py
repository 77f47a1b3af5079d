"""Numbers that stay next to the code that uses them, by the mark of their docstring.

They buy speed, or protect.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import mlp_hub

ROOMS = ("api", "executors", "scheduler", "service")
MARKS = ("Tuning", "Safety", "Given")
"""Kinds of a number: a trade-off, a protection, or given.

A given number comes from a unit, a protocol or a format, or is a sign. It is not in a table.
"""
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
    """One of `MARKS`, or empty where its docstring begins with none."""
    text: str


def numbers() -> list[Number]:
    """Return the numbers of all rooms, by module."""
    top = Path(mlp_hub.__file__).parent
    files = sorted(file for room in ROOMS for file in (top / room).rglob("*.py"))
    return [n for file in files for n in _of(file, ".".join(file.relative_to(top).with_suffix("").parts))]


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
            return (mark, rest) if colon and mark in MARKS else ("", text)
    return "", ""
