"""Bound of a server's buffer of a kernel's output for an absent page: Jupyter Server's has no bound.

The newest output is kept. Dropped output is reported in its cell when the page comes back.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import merge
from typing import Any

from mlp.language import say

MOST_BYTES = 4 << 20
"""Safety: bytes of memory for each kernel whose page is away; a kernel by itself takes ten times as much."""
MOST_PIECE = 1 << 16
"""Tuning: bytes of text that are joined into one message, which is what is dropped at once; larger means fewer messages for the page."""
MESSAGE_BYTES = 1_000
"""Given: bytes that Python needs for a message of some parts in addition to their content, rounded up."""
MOST_CELLS = 200
"""Safety: cells with their own count of dropped bytes; the last one also has the losses of further cells."""
_OUTPUT = frozenset(
    ["stream", "display_data", "update_display_data", "execute_result", "clear_output", "comm_msg"]
)
"""Given: messages that a kernel may send without end. Without any other one a page would take a cell for running for ever."""


@dataclass(slots=True)
class _Kept:
    """A message that is kept, or texts of a stream that become one; `number` is its place among all."""

    number: int
    channel: str
    parts: list[Any]
    size: int
    parent: dict[str, Any]
    stream: str = ""
    texts: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Lost:
    parent: dict[str, Any]
    size: int = 0


def _pieces(text: str) -> Iterator[str]:
    """Cut a text that a kernel sent at once, after a line's end where there is one: of a huge text the newest is kept too."""
    at = 0
    while len(text) - at > MOST_PIECE:
        end = text.rfind("\n", at, at + MOST_PIECE) + 1 or at + MOST_PIECE
        yield text[at:end]
        at = end
    yield text[at:]


class Buffer:
    """Messages of one kernel for a page that is away, as Jupyter's manager of kernels fills and replays them."""

    def __init__(self, session: Any, most: int = MOST_BYTES) -> None:
        """Make it empty; `session` is the kernel's, `most` in bytes."""
        self._session = session
        self._most = most
        self._size = 0
        self._number = 0
        self._output: deque[_Kept] = deque()
        self._other: deque[_Kept] = deque()
        self._lost: dict[str, _Lost] = {}
        self._parent: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self._output) + len(self._other) + len(self._lost)

    @property
    def size(self) -> int:
        """Bytes of memory that are taken, about."""
        return self._size

    def append(self, message: tuple[str, list[Any]]) -> None:
        """Keep a message of a channel; drop the oldest output where that is too much."""
        channel, parts = message
        kind, parent, content = self._look(channel, parts)
        if parent.get("msg_id") == self._parent.get("msg_id"):
            parent = self._parent  # one object for all messages of a cell
        self._parent = parent
        if kind == "stream" and isinstance(content.get("text"), str):
            text = content["text"]
            if (over := len(text) - self._most) > 0:
                self._note_lost(parent, over)
                text = text[over:]
            for piece in _pieces(text):
                self._add_text(channel, parent, str(content.get("name")), piece)
        else:
            size = sum(map(len, parts)) + MESSAGE_BYTES
            self._add(_Kept(self._number, channel, parts, size, parent), output=kind in _OUTPUT)
        while self._size > self._most:
            self._drop(self._output or self._other)

    def _look(self, channel: str, parts: list[Any]) -> tuple[str, dict[str, Any], dict[str, Any]]:
        """Return what a message is, the request that it belongs to, and its content if that is text."""
        if channel != "iopub":
            return "", {}, {}
        try:
            _, (_, header, parent, _, content, *_) = self._session.feed_identities(parts)
            kind = self._session.unpack(header)["msg_type"]
            is_text = kind == "stream"
            return kind, self._session.unpack(parent), self._session.unpack(content) if is_text else {}
        except (ValueError, KeyError, TypeError):
            return "", {}, {}  # Jupyter's own handling of it will say what is wrong

    def _add_text(self, channel: str, parent: dict[str, Any], stream: str, text: str) -> None:
        size = sys.getsizeof(text)
        last = self._output[-1] if self._output else None
        if (
            last is None
            or not last.texts
            or (last.number, last.stream) != (self._number - 1, stream)
            or last.parent.get("msg_id") != parent.get("msg_id")
            or last.size + size > MOST_PIECE
        ):
            self._add(_Kept(self._number, channel, [], MESSAGE_BYTES, parent, stream), output=True)
            last = self._output[-1]
        last.texts.append(text)
        last.size += size
        self._size += size

    def _add(self, kept: _Kept, *, output: bool) -> None:
        self._number += 1
        self._size += kept.size
        (self._output if output else self._other).append(kept)

    def _drop(self, among: deque[_Kept]) -> None:
        gone = among.popleft()
        self._size -= gone.size
        if among is not self._other:
            self._note_lost(gone.parent, sum(map(len, gone.texts)) or sum(map(len, gone.parts)))

    def _note_lost(self, parent: dict[str, Any], size: int) -> None:
        cell = str(parent.get("msg_id"))
        if cell not in self._lost and len(self._lost) >= MOST_CELLS:
            cell = next(reversed(self._lost))
        self._lost.setdefault(cell, _Lost(parent)).size += size

    def __iter__(self) -> Iterator[tuple[str, list[Any]]]:
        """Return the messages to replay: a report of dropped output in the cell that lost it, then all kept ones."""
        for lost in self._lost.values():
            said = say(
                "{n} MiB of output were dropped while no page was open; its newest part follows.",
                n=f"{max(lost.size / (1 << 20), 0.1):,.1f}",
            )
            yield "iopub", self._stream(lost.parent, "stderr", f"\n[{said}]\n")
        for kept in merge(self._output, self._other, key=lambda each: each.number):
            yield kept.channel, kept.parts or self._stream(kept.parent, kept.stream, "".join(kept.texts))

    def _stream(self, parent: dict[str, Any], name: str, text: str) -> list[Any]:
        made = self._session.msg("stream", content={"name": name, "text": text}, parent=parent)
        parts: list[Any] = self._session.serialize(made)
        return parts


def watch(app: Any, most: int = MOST_BYTES) -> None:
    """Limit the bytes that the server keeps of each kernel for an absent page."""
    manager = app.kernel_manager
    begin = getattr(manager, "start_buffering", None)
    kept = getattr(manager, "_kernel_buffers", None)
    if begin is None or kept is None:
        return  # kernels are somewhere else, and so is what keeps their output

    def start(kernel_id: str, session_key: str, channels: dict[str, Any]) -> None:
        begin(kernel_id, session_key, channels)
        if kernel_id in kept:
            kept[kernel_id]["buffer"] = Buffer(manager.get_kernel(kernel_id).session, most)

    manager.start_buffering = start
