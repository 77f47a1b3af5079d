"""Sentences on the wire: text for its reader, made when an answer is encoded, and the same as data.

A struct with a sentence has a `Text`, and a `Detail` of the same message next to it. The one
function that encodes answers hides in both the parts that the reader may not see. No other code has
to do it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlp_language.message import Message, Viewer, to_data
from mlp_language.render import Reader, render


class Localized:
    """A sentence, not yet for anybody."""

    __slots__ = ("message",)

    def __init__(self, message: Message) -> None:
        self.message = message

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.message == other.message

    __hash__ = None  # type: ignore[assignment] # what is said is compared, never looked up

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.message)!r})"


class Text(Localized):
    """A sentence that is read: on the wire it is text in its reader's language and time zone."""

    __slots__ = ()

    def __str__(self) -> str:
        return str(self.message)


class Detail(Localized):
    """The same as data: `id` is its English template, `args` what fills it, `plural` its form for an `n` that is not 1."""

    __slots__ = ()


def writer(reader: Reader, viewer: Viewer) -> Callable[[Any], Any]:
    """Return what turns texts and details of one answer into what goes over the wire for one reader.

    Many of an answer are alike: each message is hidden and written once.
    """
    hidden: dict[int, Message] = {}
    texts: dict[int, str] = {}

    def of(value: Any) -> Any:
        if not isinstance(value, Localized):
            raise TypeError(f"an answer cannot have a {type(value).__name__} in it")
        key = id(value.message)
        if key not in hidden:
            hidden[key] = viewer.hidden(value.message)
        if isinstance(value, Detail):
            return to_data(hidden[key])
        if key not in texts:
            texts[key] = render(hidden[key], reader)
        return texts[key]

    return of


def schema_of(kind: type) -> dict[str, Any]:
    """Return the JSON schema of a text or a detail."""
    if kind is Text:
        return {"type": "string"}
    if kind is Detail:
        return {
            "type": "object",
            "description": "The sentence as data: `id`, its English template, and its `args`.",
        }
    raise NotImplementedError
