"""Takes secrets and names out of texts: known ones by their values, others by their form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from typing import Any

GONE = "<secret>"
SHORTEST_SECRET = 6
"""Characters: shorter values occur in texts by chance."""
_FORMS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, flags), put)
    for pattern, flags, put in (
        (r"-----BEGIN [^-]*-----.*?(?:-----END [^-]*-----|\Z)", re.DOTALL, GONE),
        (r"(\w+://)[^/\s:@]*:[^\s@]*@", 0, rf"\1{GONE}@"),  # passwords of URLs
        (r"\beyJ[\w-]{8,}(?:\.[\w-]*){1,4}", 0, GONE),  # JSON web tokens
        (r"(?i)\b((?:proxy-)?authorization\W{1,4}(?:bearer|basic|token)?\s*)[^\s,;'\"]+", 0, rf"\1{GONE}"),
        (r"(?i)\b((?:set-)?cookie\W{1,4})[^\n]+", 0, rf"\1{GONE}"),
        (r"(?i)([\w-]*(?:password|passwd|secret|token|api[_-]?key|credential)[\w-]*[\"']?\s*[=:]\s*)(?:\"[^\"]*\"|'[^']*'|[^\s,;&\"']+)", 0, rf"\1{GONE}"),
        (r"(?<![\w/])[0-9a-fA-F]{32,}(?!\w)", 0, GONE),
        (r"(?<![\w/.-])(?=[\w+-]*\d)(?=[\w+-]*[A-Z])(?=[\w+-]*[a-z])[\w+-]{32,}={0,2}", 0, GONE),  # base64
        (r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", 0, "<address>"),
    )
)  # fmt: skip
_SECRET_KEY = re.compile(r"(?i)(password|passwd|secret|token|api_?key|credential)")
_TREES = re.compile(r"(/(?:homes|jobs|datasets|models|data|files|user|contents)/)[^\s\"',;)\]]+")
"""Paths of tenants: people choose the names after these."""
_CALLED = re.compile(
    r"(/(?:users|groups|tenants|members|joins|services|accounts|apps|sweeps|environments|runtimes|secrets|bookings|quota_requests"
    r"|tokens|keys|spawn|spawn-pending)/)([^\s/?:\"',;)\]]+)"
)
"""Names in paths of requests. A refused request has a line too, perhaps with the name of an object that does not exist."""
_TRIED = re.compile(r"(Failed login for )[^\n\[]*")
"""Names of failed logins: some are passwords in the wrong field."""
_REPLACED = re.compile(r"(?:[a-z]+-)+[0-9]+|mlp|hub|<.*")
_ADDRESS = re.compile(
    r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-fA-F:]*:[0-9a-fA-F:]+:[0-9a-fA-F:.]*)(?![\w.:])"
)
_WORD = re.compile(r"[^\W_][\w.@+-]*")
_JOINT = re.compile(r"([.@+_-]+)")


class Redactor:
    """`names` maps each known name to its replacement; `secrets` are values that may not appear in any form of the dump."""

    def __init__(self, names: Mapping[str, str], secrets: Iterable[str]) -> None:
        self._names = names
        found = sorted({s for s in secrets if len(s) >= SHORTEST_SECRET}, key=len, reverse=True)
        self._secrets = re.compile("|".join(map(re.escape, found))) if found else None
        self._addresses: dict[str, str] = {}

    def text(self, text: str) -> str:
        """Return a text without secrets and names."""
        if self._secrets is not None:
            text = self._secrets.sub(GONE, text)
        for form, put in _FORMS:
            text = form.sub(put, text)
        text = _TREES.sub(r"\1<path>", text)
        text = _ADDRESS.sub(self._address, text)
        text = _TRIED.sub(r"\1<name> ", _WORD.sub(self._word, text))
        return _CALLED.sub(
            lambda found: found[1] + (found[2] if _REPLACED.fullmatch(found[2]) else "<name>"), text
        )

    def value(self, value: Any) -> Any:
        """Return a JSON value with all of its texts, keys too, as `text` makes them. The text of a key that names a secret is left out whole."""
        match value:
            case str():
                return self.text(value)
            case Mapping():
                return {self.text(str(k)): self._field(str(k), v) for k, v in value.items()}
            case list() | tuple():
                return [self.value(item) for item in value]
            case _:
                return value

    def _field(self, key: str, value: Any) -> Any:
        return GONE if isinstance(value, str) and value and _SECRET_KEY.search(key) else self.value(value)

    def _word(self, found: re.Match[str]) -> str:
        """Replace a word that is a name, or the longest parts of it that are: `ann-1.log` of `ann-1`."""
        word = found[0]
        known = self._names.get(word)
        if known is not None:
            return known
        parts = _JOINT.split(word)  # words at even places, what joins them at odd ones
        if len(parts) == 1:
            return word
        said, at = [], 0
        while at < len(parts):
            for end in range(len(parts), at, -2):
                known = self._names.get("".join(parts[at:end]))
                if known is not None:
                    said.append(known)
                    at = end
                    break
            else:
                said.append(parts[at])
                at += 1
            if at < len(parts):  # what joins this word to the next one
                said.append(parts[at])
                at += 1
        return "".join(said)

    def _address(self, found: re.Match[str]) -> str:
        """Number addresses of other machines; loopback and networks of nobody stay."""
        try:
            address = ip_address(found[0])
        except ValueError:
            return found[0]
        if address.is_loopback or address.is_unspecified:
            return found[0]
        return self._addresses.setdefault(found[0], f"<address {len(self._addresses) + 1}>")
