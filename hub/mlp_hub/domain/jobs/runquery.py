"""Which runs: a line such as `lr<0.1 accuracy>=0.9 tag=baseline state=finished digits`, read into terms; pure.

A term is `NAME OP VALUE`; a word without one is looked for in names, tags and notes. All must hold. There are no regular
expressions: what a term may cost is known.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import NoReturn

from mlp_hub.domain.errors import Reason, Refused
from mlp_language.message import Message, msg

MOST_TERMS = 20
"""Safety: terms of one search: each is a look at the values of all runs that are left."""
LONGEST_QUERY = 1000
"""Safety: characters of one search."""
_SHOWN = 60
TEXTS = ("name", "tag", "note", "tenant", "user", "state", "sweep")
"""What is compared as text."""
NUMBERS = ("run", "duration", "core_hours", "cpu_peak", "ram_peak")
"""What of a run is a number besides its parameters and metrics."""
KINDS = ("param", "metric", "best")
"""What a name may begin with, and a dot: `param.lr`, `metric.loss` (the last value), `best.loss`."""
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
    """By what runs are sorted; `kind` as in a term, `submitted` or `finished` besides."""

    kind: str
    name: str = ""
    down: bool = True


def parse(line: str) -> tuple[Term, ...]:
    """Read a search; raise `Refused` naming what is wrong and what is right."""
    if len(line) > LONGEST_QUERY:
        _refuse(msg("the search is {n} characters; at most {most}", n=len(line), most=LONGEST_QUERY))
    _check_plain(line)
    if line.count('"') % 2:
        _refuse(msg('a " in the search is never closed; write "two words" or leave it out'))
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
                    "{given} compares nothing: no space goes around <, =, >; right: lr<0.1",
                    given=_clip(token),
                )
            )
        return Term("words", "", "=", _plain(token), None)
    name, op, value = _plain(found[1]), found[2], _plain(found[3])
    if "~" in op:
        _refuse(
            msg(
                "{given}: regular expressions are not searched by; right: name=digits-* or a word that is looked for",
                given=_clip(token),
            )
        )
    if not value:
        _refuse(
            msg(
                "{given} compares with nothing; right: lr<0.1, tag=baseline, state=running",
                given=_clip(token),
            )
        )
    kind, name = kind_of(name)
    op = "=" if op == "==" else op
    number = _number(value, span=kind == "duration")
    if kind in TEXTS and op not in {"=", "!="}:
        _refuse(msg("{given}: a text is compared by = or != only", given=_clip(token)))
    if number is None and (op not in {"=", "!="} or kind in NUMBERS):
        right = f"{name or kind}{op}0.1"
        _refuse(
            msg(
                "{given} compares with {value}, which is no number; right: {right}",
                given=_clip(token),
                value=_clip(value),
                right=right,
            )
        )
    return Term(kind, name, op, value, number)


def kind_of(name: str) -> tuple[str, str]:
    """Return what a name in a search or an order means: its kind, and the parameter's or metric's name."""
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
                "{given} is no column; right: -submitted, duration, metric.loss, -best.accuracy",
                given=_clip(text),
            )
        )
    if name in {"submitted", "finished"}:
        return RunOrder(name, "", down)
    kind, own = kind_of(name)
    if kind == "tag":
        _refuse(msg("runs are not sorted by their tags, of which one may have several"))
    if kind == "sweep":
        _refuse(msg("runs are not sorted by their sweep; right: sweep=NAME in the search"))
    return RunOrder(kind, own, down)


def _check_plain(text: str) -> None:
    if "\0" in text:
        _refuse(msg("{given} holds a NUL character, which nothing has that is searched", given=_clip(text)))


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
