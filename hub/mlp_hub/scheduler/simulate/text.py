"""From YAML or JSON text to plain values, strictly.

YAML as its version 1.2 has it (core schema): `2:4` is text and no number of base 60, `no` is text, dates are text.
Keys given twice are faults in both notations, tags are faults, and nesting is bounded: the composer of PyYAML is
recursive and a deep file would end the process, so values are built here from the parser's events.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from mlp_hub.scheduler.simulate.errors import Faults, ScenarioError

DEEPEST = 32
"""A scenario is five levels deep; beyond so many it is no scenario."""

_INT = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INF = re.compile(r"([-+]?)(\.inf|\.Inf|\.INF)")
_NAN = (".nan", ".NaN", ".NAN")
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_STR_TAG = "tag:yaml.org,2002:str"
_LONGEST_NUMBER = 400  # Python refuses to read whole numbers of thousands of digits, and nobody means them


def parse(text: str) -> Any:
    """Return what the text says: dicts, lists, text, numbers, true, false and None.

    Raises `ScenarioError` where it is neither JSON nor YAML.
    """
    if text.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(text, object_pairs_hook=_pairs)
        except (ValueError, RecursionError):
            pass  # YAML's flow notation perhaps, or its parser tells the fault with its line
    return _yaml(text)


class _GivenTwiceError(ValueError):
    pass


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _GivenTwiceError
    return found


def _yaml(text: str) -> Any:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C parser where PyYAML was built with it
    faults = Faults()
    try:
        value = _Builder(faults).build(yaml.parse(text, Loader=loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        what = " ".join(part for part in (error.context, error.problem) if part)
        raise ScenarioError((f"{place}: this is neither YAML nor JSON: {what}".removeprefix(": "),)) from None
    except yaml.YAMLError as error:
        raise ScenarioError((f"this is neither YAML nor JSON: {' '.join(str(error).split())}",)) from None
    faults.check()
    return value


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end is not read yet."""

    value: dict[Any, Any] | list[Any]
    key: Any = None
    has_key: bool = False


@dataclass(slots=True)
class _Builder:
    """Builds values from the parser's events, with a stack of its own."""

    faults: Faults
    stack: list[_Open] = field(default_factory=list)
    anchors: dict[str, Any] = field(default_factory=dict)
    root: Any = None
    documents: int = 0

    def build(self, events: Any) -> Any:
        for event in events:
            match event:
                case yaml.DocumentStartEvent():
                    self.documents += 1
                    if self.documents == 2:
                        self._fault(event, "a second document begins; a scenario is one document")
                case yaml.ScalarEvent():
                    self._anchor(event, value := self._scalar(event))
                    self._put(event, value)
                case yaml.AliasEvent():
                    if event.anchor not in self.anchors:
                        self._fault(event, f"there is no &{event.anchor} before this")
                        self.faults.check()
                    self._put(event, self.anchors[event.anchor])
                case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                    self._open(event)
                case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                    self.stack.pop()
                case _:
                    pass
        return self.root

    def _open(self, event: Any) -> None:
        if event.tag is not None and not event.implicit:
            self._fault(event, f"tags like {event.tag} are not known here; leave it out")
        value: dict[Any, Any] | list[Any] = {} if isinstance(event, yaml.MappingStartEvent) else []
        self._put(event, value)
        self._anchor(event, value)
        self.stack.append(_Open(value))
        if len(self.stack) > DEEPEST:
            self._fault(event, f"nested more than {DEEPEST} deep, which no scenario is")
            self.faults.check()

    def _put(self, event: Any, value: Any) -> None:
        if not self.stack:
            if self.documents < 2:
                self.root = value
            return
        top = self.stack[-1]
        if isinstance(top.value, list):
            top.value.append(value)
        elif not top.has_key:
            if isinstance(value, dict | list):
                self._fault(event, "a list or a mapping cannot be a key")
                self.faults.check()
            if value in top.value:
                self._fault(event, f"the key {value} is given twice here; give it once")
            top.key, top.has_key = value, True
        else:
            top.value[top.key] = value
            top.has_key = False

    def _anchor(self, event: Any, value: Any) -> None:
        if event.anchor is not None:
            self.anchors[event.anchor] = value

    def _scalar(self, event: Any) -> Any:
        text: str = event.value
        if event.tag not in (None, _STR_TAG, "!"):
            self._fault(event, f"tags like {event.tag} are not known here; leave it out")
        if event.tag is not None or not event.implicit[0]:
            return text
        return plain(text)

    def _fault(self, event: Any, what: str) -> None:
        mark = event.start_mark
        self.faults.add(f"line {mark.line + 1}, column {mark.column + 1}", what)


def plain(text: str) -> Any:
    """Return what unquoted text means in YAML 1.2's core schema."""
    if text in _WORDS:
        return _WORDS[text]
    if len(text) > _LONGEST_NUMBER or text[0] not in "+-.0123456789":
        return text
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if inf := _INF.fullmatch(text):
        return -math.inf if inf[1] == "-" else math.inf
    return math.nan if text in _NAN else text
