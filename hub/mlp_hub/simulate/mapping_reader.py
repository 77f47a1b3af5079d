"""Reader of one mapping of a scenario by its form, with the correction of each wrong key."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, get_args, get_origin

import msgspec
from msgspec import UNSET

from mlp_hub.simulate.errors import Faults
from mlp_hub.simulate.forms import LARGEST, Form, Key, keys_of
from mlp_hub.simulate.text import Lined

F = TypeVar("F", bound=Form)


def shown(value: object) -> str:
    """Write a value for a message: short, whatever it is."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and abs(value) > LARGEST**2:
        return "a number of many digits"
    text = f'"{value}"' if isinstance(value, str) else str(value)
    text = text if text.isprintable() else repr(text)
    return text if len(text) <= 60 else f"{text[:57]}..."


def alike(word: str, words: Collection[str]) -> str:
    """Return what to add to a message about an unknown word: the one that was probably meant, or what there is."""
    near = difflib.get_close_matches(word[:100], words if len(words) <= 10_000 else (), 1)
    if near:
        return f"; did you mean {near[0]}?"
    return f"; there is {', '.join(sorted(words))}" if 0 < len(words) <= 12 else ""


@dataclass(slots=True)
class Part(Generic[F]):
    """One mapping of a scenario: its place, what is given there, and the form that was read from it."""

    faults: Faults
    place: str
    given: dict[Any, Any]
    form: F

    def wrong(self, key: str, what: str) -> None:
        """Note a fault of one key, or of one below it (`quota.cpu`)."""
        note(self.faults, self.place, self.given, key, what)


def note(faults: Faults, place: str, given: object, key: object, what: str) -> None:
    """Note a fault of one key of a mapping, with its line where the text had lines."""
    name = key if isinstance(key, str) and key.isprintable() else shown(key)
    path = f"{place}.{name}" if place else name
    line = given.lines.get(name.partition(".")[0]) if isinstance(given, Lined) else None
    faults.add(f"line {line}, {path}" if line else path, what)


def take(form: type[F], value: object, place: str, faults: Faults) -> Part[F] | None:
    """Read a mapping by a form; None if it is not a mapping.

    All errors go to `faults`, and a default replaces each so that reading continues.
    """
    if not isinstance(value, dict):
        first = next(info.encode_name for info, _ in keys_of(form))
        faults.add(place, f"{shown(value)} is no mapping; write its keys as in {{{first}: ...}}")
        return None
    try:
        return Part(faults, place, value, msgspec.convert(value, form))
    except msgspec.ValidationError:
        pass
    try:
        return Part(faults, place, value, msgspec.convert(_whole(value), form))
    except msgspec.ValidationError:
        return Part(faults, place, value, _key_by_key(form, value, place, faults))


def _key_by_key(form: type[F], given: dict[Any, Any], place: str, faults: Faults) -> F:
    known = {info.encode_name: (info, key) for info, key in keys_of(form)}
    for name in given:
        if name not in known:
            hint = alike(str(name), known)
            note(faults, place, given, name, f"there is no such key here{hint}")
    read: dict[str, Any] = {}
    for name, (info, key) in known.items():
        if name in given:
            good, bad = _sieved(_whole(given[name]), info.type)
            for path, value in bad:
                note(faults, place, given, name + path, _wrong(value, info.type, key))
        else:
            good = UNSET
            if info.required:
                note(faults, place, given, name, f"is missing: {key.meaning}")
        if good is not UNSET:
            read[info.name] = good
        elif info.required:  # nothing of its kind: no text, 0, an empty list
            kind = info.type.__origin__
            read[info.name] = (get_origin(kind) or kind)()
    return form(**read)


def _sieved(value: object, kind: Any) -> tuple[Any, list[tuple[str, object]]]:
    """Return what can be read of a value, UNSET for nothing, and what cannot, by its path."""
    try:
        return msgspec.convert(value, kind), []
    except msgspec.ValidationError:
        inner = kind.__origin__
        if not isinstance(value, dict) or dict not in {get_origin(t) for t in (inner, *get_args(inner))}:
            return UNSET, [("", value)]
    good: dict[Any, Any] = {}
    bad: list[tuple[str, object]] = []
    for key, entry in value.items():
        try:
            good.update(msgspec.convert({key: entry}, kind))
        except msgspec.ValidationError:
            bad.append((f".{key if isinstance(key, str) else shown(key)}", entry))
    return good, bad or [("", value)]


def _whole(value: object) -> object:
    """Return whole numbers that are written with a point as such."""
    if isinstance(value, dict):
        return {k: _whole(v) for k, v in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _wrong(value: object, kind: Any, key: Key) -> str:
    found = msgspec.inspect.type_info(kind)
    most = max((getattr(t, "le", None) or 0 for t in getattr(found, "types", (found,))), default=0)
    if most > 1 and isinstance(value, int | float) and value > most:  # of a version it is no bound
        return f"{shown(value)} is too much; the most is {most:.0f}"
    example = f', in quotes as "{value}"' if key.takes == "text" and isinstance(value, int | float) else ""
    return f"{shown(value)} is wrong here; it takes {key.takes.replace('`', '')}{example}"
