"""Files of models of each known format, as its own library wrote them (`record_models.py`), and what is wrong with some.

torch alone is not there to write one: its archive is made by hand.
"""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path

RECORDED = Path(__file__).parent / "recorded_models"


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


def recorded(name: str, main: str) -> Mapping[str, bytes]:
    """Return the files of a model, that first which it is told by."""
    top = RECORDED / name
    found = {str(p.relative_to(top)): p.read_bytes() for p in sorted(top.rglob("*")) if p.is_file()}
    return {main: found.pop(main), **found}


class Boom:
    """Who unpickles it is found out."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (exec, ("raise AssertionError('a model was unpickled')",))


FORMATS: Mapping[str, Mapping[str, bytes]] = {
    "mlflow": recorded("mlflow", "MLmodel"),
    "tensorflow-savedmodel": recorded("tensorflow-savedmodel", "saved_model.pb"),
    "keras": recorded("keras", "net.keras"),
    "safetensors": recorded("safetensors", "model.safetensors"),
    "onnx": recorded("onnx", "net.onnx"),
    "skops": recorded("skops", "net.skops"),
    "torch": {"net.pt": archive("net/data.pkl", "net/data/0")},
    "hdf5": recorded("hdf5", "net.h5"),
    "pickle": recorded("pickle", "net.joblib"),
}
WEIGHTS = FORMATS["safetensors"]["model.safetensors"]
HOSTILE: Mapping[str, Mapping[str, bytes]] = {
    "mlflow": {**FORMATS["mlflow"], "model.pkl": pickle.dumps(Boom())},
    "pickle": {"net.joblib": pickle.dumps(Boom())},
}
"""Of formats that run code when they are loaded, those that tell of it."""
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
