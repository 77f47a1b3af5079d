"""Search for runs: a line such as `lr<0.1 accuracy>=0.9 tag=baseline state=finished digits`; pure.

The line is parsed into terms. A term is `NAME OP VALUE`. A word without an operator is looked for
in names, tags and notes. All terms must hold. Regular expressions are not possible, so the cost of
a term is known.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import NoReturn

from mlp_hub.domain.errors import Reason, Refused
from mlp_language.message import Message, msg

MOST_TERMS = 20
"""Limit of runs: terms of one search."""
LONGEST_QUERY = 1000
"""Limit of runs: characters of one search."""
_SHOWN = 60
TEXTS = ("name", "tag", "note", "tenant", "user", "state", "sweep")
"""Fields that are compared as text."""
NUMBERS = ("run", "duration", "core_hours", "cpu_peak", "ram_peak")
"""Fields of a run that are numbers, in addition to its parameters and metrics."""
ALIASES = {"team": "tenant"}
"""Words of pages for fields; a parameter of such a name is `param.team`."""
KINDS = ("param", "metric", "best")
"""Prefixes of a name before a dot: `param.lr`, `metric.loss` (the last value), `best.loss`."""
_TOKEN = re.compile(r'(?:"[^"]*"|[^\s"])+')
_TERM = re.compile(r'("[^"]+"|[^\s"<>=!~]+)(<=|>=|!=|==|=~|!~|=|<|>|~)(.*)', re.DOTALL)
_SPAN = re.compile(r"([0-9]+(?:\.[0-9]+)?)(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, slots=True)
class Term:
    """One condition: `kind` is of TEXTS, NUMBERS or KINDS, `any` (parameter or last value of a metric) or `words`."""

    kind: str
    name: str
    op: str  # <, <=, >, >=, =, !=
    text: str
    number: float | None


@dataclass(frozen=True, slots=True)
class RunOrder:
    """Order of runs; `kind` as in a term, and also `submitted` or `finished`."""

    kind: str
    name: str = ""
    down: bool = True


def parse(line: str) -> tuple[Term, ...]:
    """Read a search; raise `Refused` naming what is wrong and what is right."""
    if len(line) > LONGEST_QUERY:
        _refuse(msg("the search is {n} characters; at most {most}", n=len(line), most=LONGEST_QUERY))
    _check_plain(line)
    if line.count('"') % 2:
        _refuse(msg('a " in the search has no closing "; write "two words" or leave it out'))
    tokens = _TOKEN.findall(line)
    if len(tokens) > MOST_TERMS:
        _refuse(msg("the search has {n} conditions; at most {most}", n=len(tokens), most=MOST_TERMS))
    return tuple(_term(token) for token in tokens)


def _term(token: str) -> Term:
    found = _TERM.fullmatch(token)
    if found is None:
        if token[0] in "<>=!~":
            _refuse(
                msg(
                    "{given} compares nothing: write no spaces around <, =, >; for example lr<0.1",
                    given=_clip(token),
                )
            )
        return Term("words", "", "=", _plain(token), None)
    name, op, value = _plain(found[1]), found[2], _plain(found[3])
    if "~" in op:
        _refuse(
            msg(
                "{given}: regular expressions are not supported; write name=digits-* or a word to search for",
                given=_clip(token),
            )
        )
    if not value:
        _refuse(
            msg(
                "{given} compares with nothing; write lr<0.1, tag=baseline or state=running",
                given=_clip(token),
            )
        )
    kind, name = kind_of(name)
    op = "=" if op == "==" else op
    number = _number(value, span=kind == "duration")
    if kind in TEXTS and op not in {"=", "!="}:
        _refuse(msg("{given}: a text can only be compared by = or !=", given=_clip(token)))
    if number is None and (op not in {"=", "!="} or kind in NUMBERS):
        right = f"{name or kind}{op}0.1"
        _refuse(
            msg(
                "{given} compares with {value}, which is not a number; write {right}",
                given=_clip(token),
                value=_clip(value),
                right=right,
            )
        )
    return Term(kind, name, op, value, number)


def kind_of(name: str) -> tuple[str, str]:
    """Return what a name in a search or an order means: its kind, and the parameter's or metric's name."""
    name = ALIASES.get(name, name)
    if name in TEXTS or name in NUMBERS:
        return name, ""
    kind, dot, own = name.partition(".")
    if dot and own and kind in KINDS:
        return kind, own
    return "any", name


def parse_order(text: str) -> RunOrder:
    """Read an order: a column, with - before it from the highest down."""
    _check_plain(text)
    down = text.startswith("-")
    name = _plain(text.removeprefix("-"))
    if not name:
        _refuse(
            msg(
                "{given} is not a column; write -submitted, duration, metric.loss or -best.accuracy",
                given=_clip(text),
            )
        )
    if name in {"submitted", "finished"}:
        return RunOrder(name, "", down)
    kind, own = kind_of(name)
    if kind == "tag":
        _refuse(msg("runs cannot be sorted by tags, because a run can have several"))
    if kind == "sweep":
        _refuse(msg("runs cannot be sorted by their sweep; write sweep=NAME in the search"))
    return RunOrder(kind, own, down)


def _check_plain(text: str) -> None:
    if "\0" in text:
        _refuse(msg("{given} has a NUL character, which no searched text has", given=_clip(text)))


def _number(text: str, *, span: bool) -> float | None:
    found = _SPAN.fullmatch(text) if span else None
    if found:
        return float(found[1]) * _SECONDS[found[2]]
    if not re.fullmatch(r"[+-]?[0-9]{0,30}\.?[0-9]{0,30}([eE][+-]?[0-9]{1,3})?", text):
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _plain(text: str) -> str:
    return text.replace('"', "")


def _clip(text: str) -> str:
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[:_SHOWN])
    return shown if len(text) <= _SHOWN else f"{shown}..."


def _refuse(text: Message) -> NoReturn:
    raise Refused(Reason.INVALID, text)
