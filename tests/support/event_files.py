"""Event files made by hand: records with right and wrong frames, events with right and wrong contents."""

from __future__ import annotations

import struct

from mlp.eventfile import masked_crc


def record(data: bytes) -> bytes:
    """Frame of TFRecord around some bytes."""
    head = struct.pack("<Q", len(data))
    return b"".join((head, struct.pack("<I", masked_crc(head)), data, struct.pack("<I", masked_crc(data))))


def varint(value: int) -> bytes:
    """A number as protobuf writes it."""
    value &= 2**64 - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, data: bytes) -> bytes:
    """A field that holds bytes."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def event(step: int, *values: bytes, time: float = 1000.0) -> bytes:
    """An event with these values."""
    summary = b"".join(field(1, value) for value in values)
    return b"\x09" + struct.pack("<d", time) + b"\x10" + varint(step) + field(5, summary)


def simple(tag: str, value: float) -> bytes:
    """A value as SummaryWriter has it."""
    return field(1, tag.encode()) + b"\x15" + struct.pack("<f", value)


def scalar(tag: str, value: float, step: int = 0, time: float = 1000.0) -> bytes:
    """A whole record of one scalar."""
    return record(event(step, simple(tag, value), time=time))
