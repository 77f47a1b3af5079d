"""Removal of harmful characters from tenants' text before it becomes a message, a log or terminal line.

Escape sequences control a terminal, a carriage return overwrites text, and characters that change
the direction of writing make a text look like another one.
"""

from __future__ import annotations

import re

_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_UNSEEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff"
)
_DROPPED = re.compile(f"[{_UNSEEN}]")
_ESCAPED = re.compile(f"[{_UNSEEN}\n]")
_MARK = re.compile(r"@(?=[^\s\d@])|<(?=\S)|\](?=\()")
_NOTHING = "\N{ZERO WIDTH SPACE}"


def readable(text: str) -> str:
    """Drop what steers a terminal or turns the direction of writing; lines and tabs stay."""
    return _DROPPED.sub("", _SEQUENCE.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def one_line(text: str) -> str:
    """Make readable text of one line, the parts of which are set apart by ` | `."""
    return " | ".join(line.strip() for line in readable(text).splitlines() if line.strip())


def escaped(text: str) -> str:
    r"""Write such characters, and line ends, as a programmer does (`\n`, `\x1b`): nothing is lost or obeyed."""
    return _ESCAPED.sub(lambda found: repr(found[0])[1:-1], text)


def escaped_json(text: str) -> str:
    r"""Write such characters of a text in JSON as JSON does (`\u009b`): a reader gets the same values, a terminal obeys nothing."""
    return _DROPPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def calling_nobody(text: str) -> str:
    """Break the marks by which a chat calls all of its members, or hides the address of a link: `@all`, `<!channel>`, `[words](address)`.

    A character without width within the mark leaves the text readable.
    """
    return _MARK.sub(rf"\g<0>{_NOTHING}", text)


def storable(text: str) -> bool:
    """Tell whether every database and every wire takes a text: it has neither a NUL nor half a surrogate pair, which JSON may have."""
    return "\0" not in text and not any("\ud800" <= sign <= "\udfff" for sign in text)
