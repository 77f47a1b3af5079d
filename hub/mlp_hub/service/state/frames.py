"""Frames of streams: plain objects with a type."""

from __future__ import annotations

from typing import Any

import msgspec

Frame = dict[str, Any]


class Shared(Frame):
    """A frame that all who watch get: it is turned into JSON once, however many they are. Not to be changed."""

    __slots__ = ("_json",)
    _json: bytes

    def json(self) -> bytes:
        """Return it as it goes over the wire."""
        try:
            return self._json
        except AttributeError:
            self._json = msgspec.json.encode(self)
            return self._json
