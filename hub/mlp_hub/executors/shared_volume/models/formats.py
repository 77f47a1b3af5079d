"""Formats of models, found by names, signatures and headers, without loading any file.

Nothing is unpickled or imported, and little is read. Only a separate process does this (`look.py`),
because a file can be made to take much memory and time.
"""

from __future__ import annotations

import io
import json
import os
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from io import BufferedReader
from itertools import islice

from mlp_hub.domain.stored.model import ModelFormat
from mlp_hub.executors.shared_volume.models.format_names import PREFERRED
from mlp_hub.safe_path import DirHandle

MOST_NAMES = 1000
"""Safety: files of a model's directory that are looked at."""
MOST_HEADER = 16 << 20
"""Safety: bytes of a header that are read: the largest models' have some MiB."""
MOST_TEXT = 64 << 10
"""Safety: bytes of an `MLmodel` that are read."""
MOST_DIRECTORY = 8 << 20
"""Safety: bytes of the list of a zip archive's members that are read."""
SHOWN = 5
"""Safety: names of other files than models that an answer repeats."""
DEPTH = 3
"""Tuning: nested directories in which a model is searched: more results, for more reads."""
MOST_DIRECTORIES = 100
"""Safety: directories that are looked into for models."""
MOST_TRIED = 20
"""Safety: files of one of these directories that are looked into: one that is a model tells what the directory is."""
MOST_FOUND = 20
"""Safety: models of a job that are told."""
_HDF5 = b"\x89HDF\r\n\x1a\n"
_END, _LOCATOR, _END_64, _MEMBER = b"PK\x05\x06", b"PK\x06\x07", b"PK\x06\x06", b"PK\x01\x02"
_seen: dict[tuple[int, int, str], ModelFormat | None] = {}
"""Formats of files that were looked at, by inode, because a file can have many names."""
_DTYPES = {
    "BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "I16", "U16", "F16", "BF16", "I32", "U32", "F32", "F64", "I64",
    "U64", "C64", "F4", "F6_E2M3", "F6_E3M2",
}  # fmt: skip
_FLAVOR = re.compile(r"^ {2}([A-Za-z_][\w.-]{0,60}):\s*(\{\})?\s*$")


def recognise(top: DirHandle) -> ModelFormat:
    """Return the format of the files below a directory; blocks.

    Its name is empty if they are not a known model. Then it names directories further down that have
    one.
    """
    _seen.clear()
    detected = _detect(top)
    if detected.name:
        return detected
    return replace(detected, below=tuple(way for way, _ in islice(_below(top), SHOWN)))


def models_in(top: DirHandle) -> list[tuple[str, ModelFormat]]:
    """Return the models that lie below a directory, each with its path, as it would be registered; blocks.

    Of the directory itself these are files, of those below each as a whole.
    """
    _seen.clear()
    with top.entries() as entries:
        names = sorted(e.name for e in islice(entries, MOST_NAMES) if e.is_file(follow_symlinks=False))
    named = [name for name in names if _is_text(name) and _ending(name) in BY_ENDING][:MOST_TRIED]
    files = [(name, one) for name in named if (one := _file(top, name)) is not None]
    return [*islice(_below(top), MOST_FOUND), *files][:MOST_FOUND]


def _below(top: DirHandle) -> Iterator[tuple[str, ModelFormat]]:
    """Go through the directories below, the nearest first, to those that are models."""
    ways: list[tuple[str, ...]] = [()]
    looked = 0
    for way in ways:
        try:
            with top.deep_inside(way) as here:
                known = _detect(here, MOST_TRIED) if way else ModelFormat()
                with here.entries() as entries:
                    deeper = sorted(
                        e.name for e in islice(entries, MOST_NAMES) if e.is_dir(follow_symlinks=False)
                    )
        except OSError:
            continue  # it went away, or nobody may look into it
        if known.name:
            yield "/".join(way), known
        elif len(way) < DEPTH:
            ways += [(*way, name) for name in deeper if _is_text(name)]
        looked += 1
        if looked > MOST_DIRECTORIES:
            return


def _is_text(name: str) -> bool:
    """Whether a name can be told: programs may write any bytes."""
    return name.isprintable()


def _detect(top: DirHandle, most: int = MOST_NAMES) -> ModelFormat:
    with top.entries() as entries:
        found = list(islice(entries, MOST_NAMES))
        files = sorted(e.name for e in found if e.is_file(follow_symlinks=False))
        names = sorted(e.name for e in found)
    for look in (_mlflow, _saved_model):
        if known := look(top, names):
            return known
    named = [name for name in files if _ending(name) in BY_ENDING][:most]
    seen = [one for name in named if (one := _file(top, name)) is not None]
    if not seen:
        return ModelFormat(seen=tuple(names[:SHOWN]))
    best = min(seen, key=lambda one: PREFERRED.index(one.name))
    parts = sum(one.name == best.name for one in seen)
    return (
        best
        if parts == 1
        else ModelFormat(best.name, best.main, best.pickled, {**best.facts, "parts": str(parts)})
    )


def _mlflow(top: DirHandle, names: list[str]) -> ModelFormat | None:
    if "MLmodel" not in names:
        return None
    try:
        with top.read("MLmodel") as file:
            text = file.read(MOST_TEXT).decode()
    except (OSError, UnicodeDecodeError):
        return None
    flavors = flavors_of(text)
    pickled = any(f in flavors for f in ("sklearn", "pytorch", "python_function", "xgboost", "lightgbm"))
    return ModelFormat("mlflow", "MLmodel", pickled, {"flavors": ", ".join(flavors)}) if flavors else None


def flavors_of(text: str) -> list[str]:
    """Return the flavors that an `MLmodel` names: the keys one level below `flavors`."""
    lines = iter(text.splitlines())
    if not any(line.rstrip() == "flavors:" for line in lines):
        return []
    found = []
    for line in lines:
        if line.strip() and not line.startswith(" "):
            break
        if name := _FLAVOR.match(line):
            found.append(name[1])
    return found[:20]


def _saved_model(top: DirHandle, names: list[str]) -> ModelFormat | None:
    if "saved_model.pb" not in names:
        return None
    try:
        with top.read("saved_model.pb") as file:
            begin = file.read(1)
    except OSError:
        return None
    # a SavedModel's first field is its version or its first graph
    return ModelFormat("tensorflow-savedmodel", "saved_model.pb") if begin in (b"\x08", b"\x12") else None


def _ending(name: str) -> str:
    return name.rpartition(".")[2].lower()


def _file(top: DirHandle, name: str) -> ModelFormat | None:
    look = BY_ENDING.get(_ending(name))
    if look is None:
        return None
    try:
        with top.read(name) as file:
            at = os.fstat(file.fileno())
            key = at.st_dev, at.st_ino, _ending(name)
            if key not in _seen:
                _seen[key] = None  # so it stays where it takes too much
                _seen[key] = look(file, name)
            found = _seen[key]
            return None if found is None else replace(found, main=name)
    except (OSError, ValueError, struct.error, RecursionError, MemoryError):
        return None


def _safetensors(file: BufferedReader, name: str) -> ModelFormat | None:
    (length,) = struct.unpack("<Q", file.read(8))
    size = file.seek(0, io.SEEK_END) - 8 - length
    if length > MOST_HEADER or size < 0:
        return None
    file.seek(8)
    header = json.loads(file.read(length))
    if not isinstance(header, dict):
        return None
    tensors = {k: v for k, v in header.items() if k != "__metadata__"}
    values = 0
    for tensor in tensors.values():
        counted = _tensor(tensor, size)
        if counted is None:
            return None
        values += counted
    return ModelFormat("safetensors", name, facts={"tensors": str(len(tensors)), "values": str(values)})


def _tensor(tensor: object, size: int) -> int | None:
    """Return how many values a tensor has; None where its entry is none, or lies outside."""
    if not isinstance(tensor, Mapping) or tensor.get("dtype") not in _DTYPES:
        return None
    shape, offsets = tensor.get("shape"), tensor.get("data_offsets")
    if not isinstance(shape, list) or not isinstance(offsets, list) or len(offsets) != 2 or len(shape) > 64:
        return None
    if any(type(n) is not int or n < 0 for n in (*shape, *offsets)) or not offsets[0] <= offsets[1] <= size:
        return None
    values = 1
    for n in shape:
        values *= n
        if values > 1 << 60:
            return None
    return values


def _members(file: BufferedReader) -> list[str]:
    """Return the names in a zip archive; none where their list is too long. Archives of the large kind (zip64) have another end before the end."""
    size = file.seek(0, io.SEEK_END)
    begin = max(0, size - 22 - 65535)
    file.seek(begin)
    tail = file.read()
    at = tail.rfind(_END)
    if at < 0:
        return []
    (length,) = struct.unpack_from("<I", tail, at + 12)
    end = begin + at
    if at >= 20 and tail.startswith(_LOCATOR, at - 20):
        end -= 20 + 56
        file.seek(end)
        record = file.read(56)
        if not record.startswith(_END_64):
            return []
        (length,) = struct.unpack_from("<Q", record, 40)
    if length > min(MOST_DIRECTORY, end):
        return []
    file.seek(end - length)
    return _names(file.read(length))


def _names(data: bytes) -> list[str]:
    """Return the names that a list of members says."""
    found, at = [], 0
    while data.startswith(_MEMBER, at) and at + 46 <= len(data):
        name, extra, comment = struct.unpack_from("<HHH", data, at + 28)
        found.append(data[at + 46 : at + 46 + name].decode(errors="replace"))
        at += 46 + name + extra + comment
    return found


def _keras(file: BufferedReader, name: str) -> ModelFormat | None:
    there = {"config.json", "metadata.json", "model.weights.h5"} <= set(_members(file))
    return ModelFormat("keras", name) if there else None


def _skops(file: BufferedReader, name: str) -> ModelFormat | None:
    return ModelFormat("skops", name) if "schema.json" in _members(file) else None


def _torch(file: BufferedReader, name: str) -> ModelFormat | None:
    begin = file.read(4)
    if begin == b"PK\x03\x04":
        there = any(member.endswith("data.pkl") for member in _members(file))
        return ModelFormat("torch", name, pickled=True) if there else None
    return ModelFormat("torch", name, pickled=True) if _is_pickle(begin) else None


def _is_pickle(begin: bytes) -> bool:
    return len(begin) > 1 and begin[0] == 0x80 and 2 <= begin[1] <= 5


def _pickle(file: BufferedReader, name: str) -> ModelFormat | None:
    begin = file.read(4)
    packed = begin.startswith(
        (b"\x78", b"\x1f\x8b", b"BZh", b"\xfd7zX", b"\x04\x22\x4d\x18")
    )  # what joblib packs with
    return ModelFormat("pickle", name, pickled=True) if packed or _is_pickle(begin) else None


def _hdf5(file: BufferedReader, name: str) -> ModelFormat | None:
    return ModelFormat("hdf5", name) if file.read(8) == _HDF5 else None


def _onnx(file: BufferedReader, name: str) -> ModelFormat | None:
    """Go over the fields of the message, of which the graph must be one, without reading what they hold."""
    size = file.seek(0, io.SEEK_END)
    at, version, graph = 0, 0, False
    for _ in range(MOST_NAMES):
        if at >= size:
            break
        key, at = _varint(file, at)
        field, kind = key >> 3, key & 7
        if kind == 0:
            value, at = _varint(file, at)
            version = value if field == 1 else version
        elif kind == 2:
            length, at = _varint(file, at)
            at += length
            graph = graph or field == 7
        else:
            return None
    right = graph and at == size and 0 < version < 100
    return ModelFormat("onnx", name, facts={"ir_version": str(version)}) if right else None


def _varint(file: BufferedReader, at: int) -> tuple[int, int]:
    file.seek(at)
    value = 0
    for n, byte in enumerate(file.read(10)):
        value |= (byte & 0x7F) << (7 * n)
        if byte < 0x80:
            return value, at + n + 1
    raise ValueError("no varint")


BY_ENDING: Mapping[str, Callable[[BufferedReader, str], ModelFormat | None]] = {
    "safetensors": _safetensors,
    "keras": _keras,
    "onnx": _onnx,
    "skops": _skops,
    **dict.fromkeys(("pt", "pth", "ckpt", "bin"), _torch),
    **dict.fromkeys(("h5", "hdf5"), _hdf5),
    **dict.fromkeys(("pkl", "pickle", "joblib"), _pickle),
}
