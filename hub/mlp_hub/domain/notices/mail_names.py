"""Mail addresses without their names: readers see the domain only."""

from __future__ import annotations

import re

_PARTS = re.compile(r"\([^()]*\)|[^\s()]+")
"""Parts of a text that can be an address: the text in brackets, or a word. The pattern never looks back, so its time grows with the text only."""


def hidden(domain: str) -> str:
    """Return how an address of this domain is shown."""
    return f"***@{domain}"


def without_names(text: str) -> str:
    """Return a text in which each mail address is hidden, in brackets or alone. Hidden ones stay as they are."""
    return _PARTS.sub(_shown, text)


def _shown(found: re.Match[str]) -> str:
    part = found[0]
    begin = "(" if part.startswith("(") else ""
    name, _, domain = part[len(begin) :].rpartition("@")
    return begin + hidden(domain) if name and domain.strip(")") else part
