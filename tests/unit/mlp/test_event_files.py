"""Event files: what is read of them as they grow, and what harms nobody."""

from __future__ import annotations

import os
import struct

import numpy as np
import pytest
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.types_pb2 import DT_FLOAT

from mlp.reporting.event_file import MOST_RECORD, MOST_VALUES, Damaged, EventFile, masked_crc
from support.files.event_files import event, field, image, record, scalar, simple, tensor


@pytest.fixture
def path(tmp_path):
    return tmp_path / "events.out.tfevents.1.host"


def read(path, content, most=1000):
    path.write_bytes(content)
    file = EventFile(path)
    try:
        return [(found.step, found.values) for found in file.read(most)]
    finally:
        file.close()


def test_checksums_are_those_of_tfrecord():
    # of the Castagnoli polynomial, RFC 3720 B.4: 32 bytes of zeros have 0x8A9136AA
    assert masked_crc(bytes(32)) == (((0x8A9136AA >> 15) | (0x8A9136AA << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def test_scalars_of_all_kinds_are_read(path):
    values = [
        simple("loss", 0.5),
        tensor("content", 0.25, np.float32),
        tensor("double", 0.1, np.float64),
        tensor("whole", -3, np.int64),
        tensor("no plugin", TensorProto(dtype=DT_FLOAT, float_val=[2.0]), plugin=""),
        tensor("zero", TensorProto(dtype=DT_FLOAT)),
        tensor("one of one", [3.0], np.float32),
    ]
    assert read(path, record(event(7, *values))) == [
        (
            7,
            {
                "loss": 0.5,
                "content": 0.25,
                "double": 0.1,
                "whole": -3.0,
                "no plugin": 2.0,
                "zero": 0.0,
                "one of one": 3.0,
            },
        )
    ]


def test_values_that_are_not_scalars_are_left_out(path):
    values = [
        tensor("histogram", np.zeros((10, 3)), np.float64, "histograms"),
        tensor("single of a histogram", 0.0, np.float64, "histograms"),
        tensor("text", b"words", plugin="text"),
        tensor("two", [0.0, 0.0], np.float32),
        tensor("too long", TensorProto(dtype=DT_FLOAT, tensor_content=bytes(12))),
        image("image", b"png"),
        simple("", 1.0),
    ]
    assert read(path, record(event(1, *values[:4], *values[5:])) + scalar("loss", 1.0, 2)) == [
        (2, {"loss": 1.0})
    ]
    assert read(path, record(event(1, values[4])) + scalar("loss", 1.0, 2)) == [(2, {"loss": 1.0})]


def test_a_file_is_read_as_it_grows_byte_by_byte_and_each_record_once(path):
    content = b"".join(scalar("loss", float(n), n) for n in range(3))
    path.write_bytes(b"")
    file = EventFile(path)
    seen = []
    with path.open("ab", buffering=0) as out:
        for byte in content:
            out.write(bytes([byte]))
            seen += [found.step for found in file.read(10)]
    file.close()
    assert seen == [0, 1, 2]


def test_one_read_is_bounded_and_the_next_one_continues(path):
    path.write_bytes(b"".join(scalar("loss", 0.0, n) for n in range(5)))
    file = EventFile(path)
    assert [x.step for x in file.read(3)] == [0, 1, 2]
    assert [x.step for x in file.read(3)] == [3, 4]
    file.close()


def test_a_large_record_is_passed_over_unread(path):
    large = record(event(1, image("image", bytes(MOST_RECORD))))
    assert read(path, large + scalar("loss", 1.0, 2)) == [(2, {"loss": 1.0})]


def test_a_huge_length_with_a_right_checksum_is_a_record_that_is_not_whole(path):
    head = struct.pack("<Q", 2**64 - 1)
    assert read(path, head + struct.pack("<I", masked_crc(head)) + bytes(100)) == []


@pytest.mark.parametrize("damage", [0, 9, 20, -1])
def test_a_wrong_checksum_ends_the_file_there(path, damage):
    good, bad = scalar("loss", 1.0, 1), bytearray(scalar("loss", 2.0, 2))
    bad[damage] ^= 0xFF
    path.write_bytes(good + bytes(bad) + scalar("loss", 3.0, 3))
    file = EventFile(path)
    seen = []
    with pytest.raises(Damaged) as told:
        seen.extend(found.step for found in file.read(10))
    file.close()
    assert told.value.args == (len(good),)


def _nested(depth):
    inner = b"\x15\x00\x00\x80\x3f"
    for _ in range(depth):
        inner = field(1, inner)
    return inner


@pytest.mark.parametrize(
    "data",
    [
        b"\xff" * 50,  # a number without end
        b"\x2a\xff\xff\xff\xff\x0f",  # longer than the message
        b"\x2a\x0b\x0a\x09" + b"\x80" * 9,
        b"\x0b\x0c",  # groups
        b"\x07",
        b"\x09\x00",
        b"\x2a",
        field(5, field(1, b"\x15\x00")),
        field(5, field(1, b"\x0a\x01a" + field(8, b"\x08\x01" + field(2, b"\xff")))),
        field(5, field(1, b"\x0a\x01a" + field(8, b"\x08\x01" + field(5, b"")))),
        field(5, _nested(8000)),
        os.urandom(200),
    ],
)
def test_a_message_that_is_none_is_passed_over(path, data):
    assert read(path, record(data) + scalar("loss", 1.0, 2))[-1] == (2, {"loss": 1.0})


def test_values_of_one_record_are_bounded(path):
    ((_, values),) = read(path, record(event(1, *(simple(f"t{n}", 1.0) for n in range(MOST_VALUES + 500)))))
    assert len(values) == MOST_VALUES


def test_neither_a_pipe_nor_a_link_nor_a_directory_is_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "link").symlink_to("file")
    for name in ("pipe", "link", "."):
        with pytest.raises(OSError, match=r"no plain file|symbolic"):
            EventFile(tmp_path / name)
