"""Event files as TensorBoard's writers write them, read as they grow: records of TFRecord, in them two messages of protobuf.

Nothing of a file is trusted: lengths are looked at before anything is read, what is too large is passed over unread,
and a file that is damaged is read no further than to there.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MOST_RECORD = 64 * 1024
"""Bytes of a record that is read: scalars have a hundred, images and graphs are not curves."""
MOST_VALUES = 1000
"""Values of one record that are looked at."""
_HEADER, _FOOTER = 12, 4
_SCALAR_PLUGINS = {"", "scalars"}
# numbers of TensorFlow's types: format of one element, and the field of a tensor that may hold it instead of its bytes
_TYPES = {1: ("<f", 5), 2: ("<d", 6), 3: ("<i", 7), 9: ("<q", 10), 19: ("<e", 0)}


def _table() -> tuple[int, ...]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)  # noqa: PLW2901
        table.append(value)
    return tuple(table)


_CRC = _table()


def masked_crc(data: bytes) -> int:
    """Return the checksum of TFRecord: CRC-32C, rotated and shifted."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


class Damaged(ValueError):  # noqa: N818 - it is said of a file
    """Content that is not an event file, or no longer one from here on."""


@dataclass(frozen=True, slots=True)
class Scalars:
    """Scalars of one record: when they were written, their step, and values by tag."""

    time: float
    step: int
    values: dict[str, float]


class EventFile:
    """One event file and how far it was read."""

    def __init__(self, path: Path) -> None:
        """Open the file; raise OSError, also if it is not a plain file."""
        self.path = path
        # neither a pipe that nobody writes nor a link is waited for or followed
        self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(self._fd).st_mode):
            os.close(self._fd)
            raise OSError(22, "no plain file", str(path))
        self.at = 0
        self._plugins: dict[str, str] = {}

    def close(self) -> None:
        """Close it."""
        os.close(self._fd)

    def read(self, most: int) -> Iterator[Scalars]:
        """Yield the new records since the last call, at most `most`; an incomplete one is left for the next time.

        Raises `Damaged`.
        """
        size = os.fstat(self._fd).st_size
        for _ in range(most):
            head = os.pread(self._fd, _HEADER, self.at)
            if len(head) < _HEADER:
                return
            length, check = struct.unpack("<QI", head)
            if masked_crc(head[:8]) != check:
                raise Damaged(self.at)
            end = self.at + _HEADER + length + _FOOTER
            if end > size:
                return
            begin, self.at = self.at + _HEADER, end
            if length > MOST_RECORD:
                continue
            data = os.pread(self._fd, length + _FOOTER, begin)
            if len(data) < length + _FOOTER or masked_crc(data[:-4]) != int.from_bytes(data[-4:], "little"):
                raise Damaged(begin - _HEADER)
            try:
                found = self._event(data[:-4])
            except (ValueError, struct.error, IndexError):
                continue  # its frame is whole: the next one may be better
            if found is not None:
                yield found

    def _event(self, data: bytes) -> Scalars | None:
        time, step, values = 0.0, 0, {}
        for field, value in _fields(data):
            if field == 1 and isinstance(value, bytes):
                time = struct.unpack("<d", value)[0]
            elif field == 2 and isinstance(value, int):
                step = value - 2**64 if value >= 2**63 else value
            elif field == 5 and isinstance(value, bytes):
                for number, (inner, part) in enumerate(_fields(value)):
                    if number >= MOST_VALUES:
                        break
                    if inner == 1 and isinstance(part, bytes) and (one := self._value(part)):
                        values[one[0]] = one[1]
        return Scalars(time, step, values) if values else None

    def _value(self, data: bytes) -> tuple[str, float] | None:
        tag, plain, tensor, plugin = "", None, None, None
        for field, value in _fields(data):
            if not isinstance(value, bytes):
                continue
            if field == 1:
                tag = value.decode(errors="replace")
            elif field == 2:
                plain = float(struct.unpack("<f", value)[0])
            elif field == 8:
                tensor = value
            elif field == 9:
                plugin = _plugin(value)
        if plugin is not None and len(self._plugins) < MOST_VALUES:
            self._plugins[tag] = plugin  # a writer may say it with the first of a tag only
        if plain is None and tensor is not None and self._plugins.get(tag, plugin or "") in _SCALAR_PLUGINS:
            plain = _single(tensor)
        return None if plain is None or not tag else (tag, plain)


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a message: a number, or the bytes of anything else; raises ValueError where it is none."""
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if kind == 2:
            length, at = _varint(data, at)
        elif kind in {1, 5}:
            length = 8 if kind == 1 else 4
        else:
            raise ValueError(kind)
        if length > end - at:
            raise ValueError(length)
        yield key >> 3, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
    raise ValueError(at)


def _plugin(data: bytes) -> str:
    for field, value in _fields(data):
        if field == 1 and isinstance(value, bytes):
            for inner, name in _fields(value):
                if inner == 1 and isinstance(name, bytes):
                    return name.decode(errors="replace")
    return ""


def _single(data: bytes) -> float | None:
    """Return the one number of a tensor; None where it has another type, or not just one."""
    kind, content, shape = 0, b"", b""
    typed: dict[int, int | bytes] = {}
    for field, value in _fields(data):
        if field == 1 and isinstance(value, int):
            kind = value
        elif field == 4 and isinstance(value, bytes):
            content = value
        elif field == 2 and isinstance(value, bytes):
            shape = value
        else:
            typed[field] = value
    if kind not in _TYPES or any(_sizes(shape)):
        return None
    form, field = _TYPES[kind]
    if content:
        return float(struct.unpack(form, content)[0])
    return _held(typed.get(field), form)


def _held(value: int | bytes | None, form: str) -> float:
    if value is None:
        return 0.0  # which protobuf leaves out
    if isinstance(value, bytes) and form in {"<i", "<q"}:
        value = _varint(value, 0)[0]
    if isinstance(value, int):
        return float(value - 2**64 if value >= 2**63 else value)
    return float(struct.unpack(form, value)[0])


def _sizes(shape: bytes) -> Iterator[bool]:
    """Yield of each dimension whether it is other than 1."""
    for field, value in _fields(shape):
        if field == 2 and isinstance(value, bytes):
            yield [size for inner, size in _fields(value) if inner == 1] != [1]
