"""Event files as TensorBoard's own writer and messages make them; and, for what no writer does, fields made by hand."""

from __future__ import annotations

import io
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.summary.writer.record_writer import RecordWriter
from tensorboard.util.tensor_util import make_tensor_proto


class _Bytes(io.BytesIO):
    """A file whose writer closes it in vain."""

    def close(self) -> None:
        """Stay open, to be read."""


def record(data: bytes) -> bytes:
    """Return the frame that TensorBoard's writer puts around some bytes."""
    file = _Bytes()
    writer = RecordWriter(file)
    writer.write(data)
    writer.close()
    return file.getvalue()


def event(step: int, *values: Summary.Value, time: float = 1000.0) -> bytes:
    """Return an event with these values."""
    return Event(wall_time=time, step=step, summary=Summary(value=values)).SerializeToString()


def simple(tag: str, value: float) -> Summary.Value:
    """Return a value as torch's SummaryWriter has it."""
    return Summary.Value(tag=tag, simple_value=value)


def tensor(tag: str, value: Any, kind: Any = None, plugin: str = "scalars") -> Summary.Value:
    """Return a value as TensorFlow 2 has it, of what numpy calls its kind; or one of a ready message."""
    made = value if isinstance(value, TensorProto) else make_tensor_proto(value, dtype=kind)
    about = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=plugin)) if plugin else None
    return Summary.Value(tag=tag, tensor=made, metadata=about)


def image(tag: str, content: bytes) -> Summary.Value:
    """Return a picture."""
    return Summary.Value(tag=tag, image=Summary.Image(encoded_image_string=content))


def scalar(tag: str, value: float, step: int = 0, time: float = 1000.0) -> bytes:
    """Return a whole record of one scalar."""
    return record(event(step, simple(tag, value), time=time))


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
