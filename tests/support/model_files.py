"""Files of models of each known format, small and real where that takes few bytes; none was made by unpickling anything."""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile
from collections.abc import Mapping


def safetensors(**tensors: tuple[str, list[int], bytes]) -> bytes:
    """Return a file of tensors: (dtype, shape, values) by name."""
    header, data = {}, b""
    for name, (dtype, shape, values) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def archive(*members: str) -> bytes:
    """Return a zip archive with such members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as zipped:
        for member in members:
            zipped.writestr(member, "x")
    return file.getvalue()


def field(number: int, value: bytes | int) -> bytes:
    """Return a field of a message of Protocol Buffers; its lengths and numbers are below 128."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value


WEIGHTS = safetensors(w=("F32", [2, 3], bytes(24)), b=("F32", [3], bytes(12)))
MLMODEL = """\
artifact_path: model
flavors:
  python_function:
    loader_module: mlflow.sklearn
  sklearn:
    code: null
    pickled_model: model.pkl
mlflow_version: 2.9.2
"""


class Boom:
    """Who unpickles it is found out."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (exec, ("raise AssertionError('a model was unpickled')",))


FORMATS: Mapping[str, Mapping[str, bytes]] = {
    "mlflow": {"MLmodel": MLMODEL.encode(), "model.pkl": pickle.dumps(Boom())},
    "tensorflow-savedmodel": {
        "saved_model.pb": field(1, 1) + field(2, b"g"),
        "variables/variables.index": b"x",
    },
    "keras": {"net.keras": archive("metadata.json", "config.json", "model.weights.h5")},
    "safetensors": {"model.safetensors": WEIGHTS, "config.json": b"{}"},
    "onnx": {"net.onnx": field(1, 8) + field(2, b"torch") + field(7, b"graph")},
    "skops": {"net.skops": archive("schema.json", "1.npy")},
    "torch": {"net.pt": archive("net/data.pkl", "net/data/0")},
    "hdf5": {"net.h5": b"\x89HDF\r\n\x1a\n" + bytes(100)},
    "pickle": {"net.joblib": pickle.dumps(Boom())},
}
PICKLED = {"mlflow", "torch", "pickle"}
NO_MODELS: Mapping[str, Mapping[str, bytes]] = {
    "text": {"notes.txt": b"no model"},
    "an archive that is no model of skops": {"a.skops": archive("1.npy")},
    "a header that is longer than the file": {"a.safetensors": struct.pack("<Q", 2**62) + b"{}"},
    "a header that is no JSON": {"a.safetensors": struct.pack("<Q", 4) + b"nope"},
    "a header that is a list": {"a.safetensors": struct.pack("<Q", 2) + b"[]"},
    "a tensor outside": {"a.safetensors": safetensors(w=("F32", [2], bytes(8)))[:-1]},
    "a tensor of too many values": {"a.safetensors": safetensors(w=("F32", [2**40, 2**40], bytes(8)))},
    "a header nested without end": {"a.safetensors": struct.pack("<Q", 200_000) + b"[" * 200_000},
    "an empty file": {
        "a.safetensors": b"",
        "b.onnx": b"",
        "c.pt": b"",
        "d.pkl": b"",
        "e.h5": b"",
        "f.keras": b"",
    },
    "another archive": {"a.keras": archive("x"), "b.pt": archive("x")},
    "an archive cut off": {"a.keras": archive("metadata.json", "config.json", "model.weights.h5")[:-30]},
    "a message without a graph": {"a.onnx": field(1, 8)},
    "a message that goes on behind its end": {"a.onnx": field(1, 8) + bytes([7 << 3 | 2, 100])},
    "a text that says pickle": {"a.pkl": b"hello"},
    "an MLmodel without flavors": {"MLmodel": b"artifact_path: model\n"},
    "an MLmodel that is no text": {"MLmodel": b"\xff\xfe" * 100},
    "an empty SavedModel": {"saved_model.pb": b""},
}
