"""Bodies and query strings into structs, and what is wrong with them in words a person can act on."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from msgspec.inspect import LiteralType

from mlp_api.apps.apps import MODEL_OR_NONE_PATTERN, REPLICAS_PATTERN
from mlp_api.jobs.jobs import (
    AUTO_PATTERN,
    COMMIT_PATTERN,
    JOB_NAME_PATTERN,
    JOB_PATTERN,
    PARAM_PATTERN,
    RANGE_PATTERN,
    SOURCE_PATTERN,
    VARIABLE_PATTERN,
)
from mlp_api.jobs.runs import TAG_PATTERN
from mlp_api.jobs.sweeps import SWEEP_NAME_PATTERN
from mlp_api.platform.notices import CLOCK_PATTERN
from mlp_api.stored.datasets import DATASET_PATTERN, ONCE_PATTERN
from mlp_api.stored.secrets import KEY_PATTERN
from mlp_api.types import CURSOR_PATTERN, LINE_PATTERN, NAME_PATTERN
from mlp_hub.domain.errors import Reason, Refused
from mlp_language.message import Message, msg, verbatim

SHOWN = 60
"""Safety: characters of a bad value that are repeated in the answer: a long one does not come back whole."""
TAKEN_APART = 64 << 10
"""Safety: bytes of a body, or a part of one, that are taken apart to show what is wrong: objects take thirty times as many."""
MOST_CHOICES = 20
"""Tuning: values of a field up to which an answer names them all, so that a reader can take them in."""
JSON_DEPTH = 32
"""Limit of requests: nested levels of a body."""
READ_BEFORE = frozenset({"_xsrf", "zone", "language"})
"""Parameters of every route that are read before the handler: data that a browser cannot put in a header."""
JOB_NAME_WORDS = msg(
    "letters, digits, -, _ and ., beginning with a letter, a digit or _, at most 50 characters, such as lr-0.001"
)
PATTERN_WORDS = {
    NAME_PATTERN: msg(
        "a to z, 0 to 9 and -, beginning with a letter and ending with a letter or digit, at most 50 characters"
    ),
    MODEL_OR_NONE_PATTERN: msg("NAME or NAME@VERSION of a model, or empty if a command needs none"),
    REPLICAS_PATTERN: msg('a whole number such as 2 (in JSON without quotes), or MIN:MAX such as "0:2"'),
    DATASET_PATTERN: msg("a to z, 0 to 9, - and ., beginning with a letter, at most 50 characters"),
    KEY_PATTERN: msg("letters, digits and _, not beginning with a digit, at most 64 characters"),
    CLOCK_PATTERN: msg("a time of day such as 22:00"),
    ONCE_PATTERN: msg("digits and a to f: a hexadecimal number"),
    JOB_NAME_PATTERN: JOB_NAME_WORDS,
    SWEEP_NAME_PATTERN: msg(
        "letters, digits, -, _ and ., beginning with a letter, a digit or _, at most 43 characters"
    ),
    JOB_PATTERN: msg("NAME or NAME@RUN; NAME has {name}", name=JOB_NAME_WORDS),
    RANGE_PATTERN: msg('a whole number such as 4 (in JSON without quotes), or MIN:MAX such as "2:8"'),
    AUTO_PATTERN: msg("a whole number of MiB such as 1024 (in JSON without quotes), or auto"),
    PARAM_PATTERN: msg("letters, digits, _, . and -, beginning with a letter or _, at most 64 characters"),
    VARIABLE_PATTERN: msg("letters, digits and _, not beginning with a digit, at most 128 characters"),
    LINE_PATTERN: msg("one line of text without control characters"),
    CURSOR_PATTERN: msg("the X-Next-Cursor of the page before"),
    TAG_PATTERN: msg('one word of at most 50 characters without spaces, commas and "'),
    COMMIT_PATTERN: msg("a commit of git: 40 or 64 digits and letters a to f"),
    SOURCE_PATTERN: msg("RANK.RESTART.RANDOM such as 0.0.k3x9"),
}
_KIND_WORDS = {
    "str": msg("a text"),
    "int": msg("a whole number"),
    "float": msg("a number"),
    "bool": msg("true or false"),
    "object": msg("an object"),
    "array": msg("a list"),
    "null": msg("null"),
}
_SIZES = {
    ("str", "<="): msg("at most {n} characters long"),
    ("str", ">="): msg("at least {n} characters long"),
    ("array", "<="): msg("at most {n} entries long"),
    ("array", ">="): msg("at least {n} entries long"),
}
_BOUNDS = {
    ">=": msg("at least {bound}"),
    "<=": msg("at most {bound}"),
    ">": msg("above {bound}"),
    "<": msg("below {bound}"),
}
_EXPECTED = re.compile(r"^Expected `([^`]+)`, got `([^`]+)`")
_BOUND = re.compile(r"^Expected `\w+` (>=|<=|>|<) (\S+)")
_LENGTH = re.compile(r"^Expected `(\w+)` of length (>=|<=) (\d+)")
_REGEX = re.compile(r"^Expected `str` matching regex '(.*)'", re.DOTALL)
_UNKNOWN = re.compile(r"^Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"^Object missing required field `(.*)`", re.DOTALL)
_AT = re.compile(r" - at (?:`key` in )?`\$([^`]*)`$")
_STEP = re.compile(r"\.([A-Za-z_]\w*)|\[(\d+)\]|(\[\.\.\.\])")
_INT = re.compile(r"-?[0-9]{1,18}")
_ENCODER = json.JSONEncoder(ensure_ascii=False)
_FLOAT = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?([eE][+-]?[0-9]{1,3})?")


def body(raw: bytes, kind: Any) -> Any:
    """Decode a JSON body into a struct; raise Refused(Invalid) naming field, value and what would be right."""
    try:
        return _decoder(kind).decode(raw)
    except msgspec.ValidationError as err:
        raise Refused(Reason.INVALID, explain(str(err), kind, lambda: _generic(raw))) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as err:
        if not raw.strip():
            raise Refused(Reason.INVALID, msg("the body is empty; a JSON object is expected")) from None
        raise Refused(
            Reason.INVALID, msg("the body is not JSON ({syntax})", syntax=_syntax(str(err)))
        ) from None
    except RecursionError:
        raise Refused(
            Reason.INVALID, msg("the body is nested deeper than {n} levels", n=JSON_DEPTH)
        ) from None


def query(raw: str, kind: Any) -> Any:
    """Decode a query string into a struct; unknown and repeated parameters are refused."""
    if not raw:
        return kind() if kind is not None else None
    try:
        pairs = parse_qsl(
            raw, keep_blank_values=True, strict_parsing=True, errors="strict", max_num_fields=100
        )
    except ValueError:
        raise Refused(
            Reason.INVALID, msg("the query {raw} cannot be read; it must be NAME=VALUE&...", raw=clip(raw))
        ) from None
    known = _query_kinds(kind) if kind is not None else {}
    values: dict[str, Any] = {}
    for name, text in pairs:
        if name in READ_BEFORE:
            continue
        if name not in known:
            may = _known(known) if known else msg("this route takes no parameters")
            raise Refused(
                Reason.INVALID, msg("parameter {name} does not exist; {may}", name=clip(name), may=may)
            )
        if name in values:
            raise Refused(
                Reason.INVALID, msg("parameter {name} is given twice; it may be given once", name=name)
            )
        values[name] = _literal(text, known[name])
    if kind is None:
        return None
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as err:
        raise Refused(Reason.INVALID, explain(str(err), kind, lambda: values)) from None


def explain(err: str, kind: Any, load: Callable[[], Any]) -> Message:
    """Rewrite msgspec's message: which field, which value, what would be right."""
    at = _AT.search(err)
    path, text = (at[1], err[: at.start()]) if at else ("", err)
    where: str | Message = path.lstrip(".") or msg("the body")
    if found := _UNKNOWN.match(text):
        if path:
            return msg("{where} has no field {name}", name=clip(found[1]), where=where)
        known = _known(kind.__struct_encode_fields__)
        return msg("field {name} does not exist; {known}", name=clip(found[1]), known=known)
    if found := _MISSING.match(text):
        return msg("{name} is missing; it is required", name=f"{path.lstrip('.')}." * bool(path) + found[1])
    right = _right(text)
    if "`key` in" in err:
        return msg("a key of {where} is wrong; it must be {right}", where=where, right=right)
    if "Invalid enum value" in text and (choices := _choices(kind, path)):
        right = msg("one of {choices}", choices=", ".join(choices))
    try:
        value = _value_at(load(), path)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):  # a later part is not JSON
        value = None
    if value is None:
        return msg("{where} is wrong; it must be {right}", where=where, right=right)
    return msg("{where} is {value}; it must be {right}", where=where, value=value, right=right)


def _known(names: Iterable[str]) -> Message:
    return msg("known here: {names}", names=", ".join(names))


def _choices(kind: Any, path: str) -> list[str]:
    """Return the words that a field takes, of a field that takes only some, and few enough to be read."""
    found = [msgspec.inspect.type_info(kind)]
    for name, index, _ in _STEP.findall(path):
        found = [within for info in found for part in _parts(info) for within in _within(part, name, index)]
    words = [
        str(v)
        for info in found
        for part in _parts(info)
        if isinstance(part, LiteralType)
        for v in part.values
    ]
    return words if len(words) <= MOST_CHOICES else []


def _parts(info: msgspec.inspect.Type) -> list[msgspec.inspect.Type]:
    """Return the types of which a value may have any, without what is noted about them."""
    plain = _plain(info)
    if isinstance(plain, msgspec.inspect.UnionType):
        return [part for one in plain.types for part in _parts(one)]
    return [plain]


def _within(info: msgspec.inspect.Type, name: str, index: str) -> list[msgspec.inspect.Type]:
    """Return the types that a value of this type has at a step of a path: in a field, at an index, or under any key."""
    match info:
        case msgspec.inspect.StructType() if name:
            return [field.type for field in info.fields if field.encode_name == name]
        case msgspec.inspect.TupleType() if index and int(index) < len(info.item_types):
            return [info.item_types[int(index)]]
        case msgspec.inspect.CollectionType() if index:
            return [info.item_type]
        case msgspec.inspect.DictType() if not name and not index:
            return [info.value_type]
    return []


def clip(value: object, most: int = SHOWN) -> str:
    """Show a value of any size in a line of at most `most` characters, and `...` if there are more."""
    text = value if isinstance(value, str) else repr(value)
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[: most + 1])
    return text if len(text) <= most else text[:most] + "..."


def _right(text: str) -> Message:  # noqa: PLR0911 - one return a kind of error
    if (found := _EXPECTED.match(text)) and "datetime" not in text:
        return _either([_KIND_WORDS.get(k) or verbatim(k) for k in found[1].split(" | ")])
    if found := _LENGTH.match(text):
        size = _SIZES["str" if found[1] == "str" else "array", found[2]]
        return replace(size, args={"n": int(found[3])})
    if found := _BOUND.match(text):
        return replace(_BOUNDS[found[1]], args={"bound": found[2]})
    if found := _REGEX.match(text):
        pattern = found[1].replace("\\\\", "\\")
        return PATTERN_WORDS.get(pattern) or msg("like {pattern}", pattern=pattern)
    if text.startswith("Number out of range"):
        return msg("a finite number")
    if "datetime" in text:
        return msg("a time with its offset from UTC, such as 2030-01-31T08:00:00Z")
    if text.startswith("Invalid enum value"):
        return msg("one of the values that the documentation lists")
    return verbatim(text[:1].lower() + text[1:])


def _either(kinds: Sequence[Message]) -> Message:
    """Return "a number or null"."""
    first, *others = kinds
    for other in others:
        first = msg("{one} or {other}", one=first, other=other)
    return first


def _syntax(err: str) -> Message:
    if err.startswith("Input data was truncated"):
        return msg("it ends too early")
    return verbatim(err.removeprefix("JSON is malformed: "))


def _generic(raw: bytes) -> Any:
    """Return the content of a body. The parts of a large body are `Raw` until they are read. Raises the errors of msgspec."""
    return msgspec.json.decode(raw) if len(raw) <= TAKEN_APART else _level(msgspec.Raw(raw))


def _level(value: Any) -> Any:
    """Return an object or a list, of which each part is `Raw`; any other value as it is."""
    if not isinstance(value, msgspec.Raw):
        return value
    for kind in (dict[str, msgspec.Raw], list[msgspec.Raw]):
        with contextlib.suppress(msgspec.ValidationError):
            return msgspec.json.decode(value, type=kind)
    return msgspec.json.decode(value)


def _value_at(value: Any, path: str) -> str | None:
    for name, index, any_key in _STEP.findall(path):
        value = _level(value)
        if any_key:
            return None
        if name and isinstance(value, dict) and name in value:
            value = value[name]
        elif index and isinstance(value, list) and int(index) < len(value):
            value = value[int(index)]
        else:
            return None
    if isinstance(value, msgspec.Raw):
        raw = memoryview(value)
        if len(raw) > TAKEN_APART:
            return clip(bytes(raw[: 4 * SHOWN]).decode(errors="replace"))
        value = msgspec.json.decode(value)
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return clip(repr(value))
    text = ""
    for part in _ENCODER.iterencode(value):  # as far as it is shown, however long or deep it is
        text += part
        if len(text) > SHOWN:
            break
    return clip(text)


@lru_cache(maxsize=256)
def _decoder(kind: Hashable) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder[Any](kind)


@lru_cache(maxsize=256)
def _query_kinds(kind: Any) -> dict[str, frozenset[str]]:
    """Tell which JSON kinds each field takes, so that `2` becomes a number where a number is wanted."""
    found: dict[str, frozenset[str]] = {}
    for item in msgspec.structs.fields(kind):
        info = msgspec.inspect.type_info(item.type)
        parts = info.types if isinstance(info, msgspec.inspect.UnionType) else (info,)
        found[item.encode_name] = frozenset(type(_plain(part)).__name__ for part in parts)
    return found


def _plain(info: msgspec.inspect.Type) -> msgspec.inspect.Type:
    return info.type if isinstance(info, msgspec.inspect.Metadata) else info


def _literal(text: str, kinds: frozenset[str]) -> str | int | float | bool:
    if "BoolType" in kinds and text in ("1", "0", "true", "false"):
        return text in ("1", "true")
    if "IntType" in kinds and _INT.fullmatch(text):
        return int(text)
    if "FloatType" in kinds and _FLOAT.fullmatch(text):
        return float(text)
    return text
