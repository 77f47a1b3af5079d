"""From YAML or JSON text to plain values, strictly.

YAML as its version 1.2 has it (core schema): `2:4` is text and no number of base 60, `no` is text, dates are text. Keys
given twice are faults in both notations, tags are not known. Mappings of YAML remember the lines of their keys.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, ClassVar

import yaml

from mlp_hub.simulate.errors import ScenarioError

DEEPEST = 32
"""Upper bound of the depth of a scenario, which is five levels deep."""
_TAG = "tag:yaml.org,2002:"
_LONGEST_NUMBER = 400  # Python refuses to read whole numbers of thousands of digits, and nobody means them


class Lined(dict[Any, Any]):
    """A mapping with the line of each of its keys."""

    __slots__ = ("lines",)
    lines: dict[Any, int]


def parse(text: str) -> Any:
    """Return what the text says: dicts, lists, text, numbers, true, false and None.

    Raises `ScenarioError` where it is neither JSON nor YAML.
    """
    if text.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(text, object_pairs_hook=_pairs)
        except (ValueError, RecursionError):
            pass  # YAML's flow notation perhaps, or its parser tells the fault with its line
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - it makes plain values only
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        what = " ".join(part for part in (error.context, error.problem) if part)
        if not isinstance(error, _RefusedError):
            what = f"this is neither YAML nor JSON: {what}"
        raise ScenarioError((place + what,)) from None
    except yaml.YAMLError as error:
        raise ScenarioError((f"this is neither YAML nor JSON: {' '.join(str(error).split())}",)) from None


class _GivenTwiceError(ValueError):
    pass


class _RefusedError(yaml.MarkedYAMLError):  # type: ignore[misc]
    """YAML that a scenario does not use."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _GivenTwiceError
    return found


class _Loader(getattr(yaml, "CBaseLoader", yaml.BaseLoader)):  # type: ignore[misc]  # the C parser where PyYAML has it
    """Composes nodes with the tags of YAML 1.2's core schema, and makes plain values of them."""

    yaml_implicit_resolvers: ClassVar[dict[str | None, list[tuple[str, re.Pattern[str]]]]] = {}
    depth = 0

    def descend_resolver(self, current_node: yaml.Node | None, _current_index: object) -> None:
        """Bound the depth: the composer of PyYAML is recursive, and a deep file would end the process."""
        self.depth += 1
        if self.depth > DEEPEST and current_node is not None:
            what = f"this is nested more than {DEEPEST} deep, which no scenario is"
            raise _RefusedError(None, None, what, current_node.start_mark)

    def ascend_resolver(self) -> None:
        """Leave a level."""
        self.depth -= 1

    def construct_document(self, node: yaml.Node) -> Any:
        """Return the value of the whole text."""
        return _value(node, {})


for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", [*"tTfF"]),
    ("int", r"[-+]?[0-9]+", [*"-+0123456789"]),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", [*"-+.0123456789"]),
    ("float", r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", [*"-+."]),
):
    _Loader.add_implicit_resolver(_TAG + _tag, re.compile(rf"(?:{_pattern})\Z"), _first)


def _value(node: yaml.Node, anchored: dict[yaml.Node, Any]) -> Any:
    """Return the value of a node; one that occurs in several places, by its anchor, is one value."""
    if node in anchored:
        return anchored[node]
    if node.tag not in (*_READ, _TAG + "seq", _TAG + "map"):
        what = f"tags like {node.tag} are not known here; leave it out"
        raise _RefusedError(None, None, what, node.start_mark)
    if isinstance(node, yaml.ScalarNode):
        return node.value if len(node.value) > _LONGEST_NUMBER else _READ[node.tag](node.value)
    if isinstance(node, yaml.SequenceNode):
        found: list[Any] = []
        anchored[node] = found
        found.extend(_value(each, anchored) for each in node.value)
        return found
    mapping = Lined()
    mapping.lines = {}
    anchored[node] = mapping
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise _RefusedError(None, None, "a list or a mapping cannot be a key", key_node.start_mark)
        key = _value(key_node, anchored)
        if key in mapping:
            what = f"the key {key} is given twice here; give it once"
            raise _RefusedError(None, None, what, key_node.start_mark)
        mapping.lines[key] = key_node.start_mark.line + 1
        mapping[key] = _value(value_node, anchored)
    return mapping


_READ: dict[str, Callable[[str], Any]] = {
    _TAG + "null": lambda _: None,
    _TAG + "bool": lambda text: text[0] in "tT",
    _TAG + "int": int,
    _TAG + "float": lambda text: float(text.lower().replace(".inf", "inf").replace(".nan", "nan")),
    _TAG + "str": str,
}
"""Conversions of scalars by their tags."""
