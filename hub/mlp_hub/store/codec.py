"""Values to text and back: the only place that writes JSON of a column. `rows` has which column is kept how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_type_hints

import msgspec

from mlp_hub.domain.resources import Pairs, Resources
from mlp_hub.domain.tenants.tenant import Lowering
from mlp_hub.domain.workload.booking import Shortfall
from mlp_language.message import NOTHING, Message, from_data, to_data

_Says = TypeVar("_Says", Lowering, Shortfall)

_pairs = msgspec.json.Decoder(Pairs)
_shares = msgspec.json.Decoder(tuple[tuple[str, Resources], ...])
_object = msgspec.json.Decoder(dict[str, Any])


def dumps(value: object) -> str:
    """Return the value as JSON text."""
    return _encoder.encode(value).decode()


def loads(text: str) -> Any:
    """Return what `dumps` was given, in JSON's own types."""
    return msgspec.json.decode(text)


def load_object(text: str) -> dict[str, Any]:
    """Return a JSON object."""
    return _object.decode(text)


def message_text(message: Message) -> str:
    """Return a message's column; empty where nothing is said."""
    # JSON escapes the NUL of a program's last words, which PostgreSQL cannot hold
    return dumps(to_data(message)) if message else ""


def message_of(column: str) -> Message:
    """Return the message of a column."""
    return from_data(_object.decode(column)) if column else NOTHING


def text(value: str) -> str:
    """Return what a text column can hold: PostgreSQL has no NUL, which a program's last words may have."""
    return value.replace("\0", "\ufffd")


PRINTABLE = (text, None)
"""How a field that may have a NUL is kept (`rows.Converters`)."""


def with_message(kind: type[_Says]) -> tuple[Callable[[_Says], str], Callable[[str], _Says]]:
    """Return what makes a column of a value that has a message among its fields, and the value of a column."""
    hints = get_type_hints(kind)

    def to(value: _Says) -> str:
        fields = {name: getattr(value, name) for name in hints}
        return dumps({**fields, "message": to_data(value.message)})

    def back(column: str) -> _Says:
        fields = _object.decode(column)
        said = {k: v if k == "message" else msgspec.convert(v, hints[k]) for k, v in fields.items()}
        return kind(**{**said, "message": from_data(fields["message"])})

    return to, back


def pairs_of(text: str | None) -> Pairs:
    """Return amounts by name: gpu thousandths by kind, or the counted dimensions."""
    return () if text is None else _pairs.decode(text)


def pairs_text(pairs: Pairs) -> str | None:
    """Return amounts by name as they are stored."""
    return dumps(pairs) if pairs else None


def shares_of(text: str | None) -> tuple[tuple[str, Resources], ...]:
    """Return what a request takes of which node."""
    return () if text is None else _shares.decode(text)


def _plain(value: object) -> object:
    """Turn mappings of other types (a read-only view, say) into what JSON has."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"cannot store a {type(value).__name__}")


_encoder = msgspec.json.Encoder(enc_hook=_plain)
