"""Tensors of the Open Inference Protocol, version 2: JSON, and the binary extension, to numpy's arrays and back."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mlp.serving.errors import BadRequest

LENGTH = "Inference-Header-Content-Length"
DTYPES: Mapping[str, str] = {
    "BOOL": "bool",
    "UINT8": "uint8",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "FP16": "float16",
    "FP32": "float32",
    "FP64": "float64",
    "BYTES": "object",
}
_NAMES = {name: datatype for datatype, name in DTYPES.items()}
Named = dict[str, Any]
"""Arrays by name."""


def datatype_of(array: Any) -> str:
    """Return what the protocol calls the type of an array; texts and objects are BYTES."""
    return _NAMES.get(array.dtype.name, "BYTES")


def read(header: Mapping[str, Any], rest: bytes) -> Named:
    """Return the inputs of a request; binary data is behind the header in their order."""
    inputs = header.get("inputs")
    if not isinstance(inputs, list) or not inputs:
        raise BadRequest('inputs is missing; right: {"inputs": [{"name", "shape", "datatype", "data"}]}')
    found: Named = {}
    at = 0
    for one in inputs:
        if not isinstance(one, dict):
            raise BadRequest("each of inputs is an object with name, shape, datatype and data")
        name, shape, dtype = _described(one)
        if name in found:
            raise BadRequest(f"input {name} is there twice")
        size = _parameters(one).get("binary_data_size")
        if size is None:
            found[name] = _from_json(name, one.get("data"), shape, dtype)
            continue
        if not isinstance(size, int) or size < 0 or at + size > len(rest):
            raise BadRequest(
                f"input {name} has binary_data_size {size}, and {len(rest) - at} bytes are left behind the header"
            )
        found[name] = _from_binary(name, rest[at : at + size], shape, one["datatype"])
        at += size
    if at != len(rest):
        raise BadRequest(f"{len(rest) - at} bytes behind the header belong to no input")
    return found


def _described(one: Mapping[str, Any]) -> tuple[str, list[int], str]:
    name, shape, datatype = one.get("name"), one.get("shape"), one.get("datatype")
    if not isinstance(name, str) or not name:
        raise BadRequest("an input has no name")
    if not isinstance(shape, list) or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise BadRequest(f"shape of input {name} is {shape}; right: whole numbers, as [1, 4]")
    if not isinstance(datatype, str) or datatype not in DTYPES:
        raise BadRequest(f"datatype of input {name} is {datatype}; right: one of {', '.join(DTYPES)}")
    return name, shape, DTYPES[datatype]


def _parameters(one: Mapping[str, Any]) -> Mapping[str, Any]:
    found = one.get("parameters", {})
    return found if isinstance(found, dict) else {}


def _shaped(name: str, array: Any, shape: Sequence[int]) -> Any:
    wanted = 1
    for length in shape:
        wanted *= length
    if array.size != wanted:
        raise BadRequest(f"input {name} has {array.size} values, and its shape {list(shape)} says {wanted}")
    return array.reshape(shape)


def _from_json(name: str, data: Any, shape: Sequence[int], dtype: str) -> Any:
    if not isinstance(data, list):
        raise BadRequest(f"input {name} has no data; right: a list of its values, flat or nested")
    try:
        array = np.asarray(data, dtype=dtype)
    except (ValueError, TypeError, OverflowError) as error:
        raise BadRequest(f"data of input {name} is not of its datatype: {error}") from None
    return _shaped(name, array.ravel(), shape)


def _from_binary(name: str, data: bytes, shape: Sequence[int], datatype: str) -> Any:
    if datatype != "BYTES":
        dtype = np.dtype(DTYPES[datatype]).newbyteorder("<")
        if len(data) % dtype.itemsize:
            raise BadRequest(f"input {name} has {len(data)} bytes, not a multiple of {dtype.itemsize}")
        array = np.frombuffer(data, dtype=dtype)
        return _shaped(name, array.astype(dtype.newbyteorder("="), copy=False), shape)
    texts: list[bytes] = []
    at = 0
    while at < len(data):
        length = int.from_bytes(data[at : at + 4], "little")
        if at + 4 + length > len(data):
            raise BadRequest(f"input {name} ends in the middle of a value")
        texts.append(data[at + 4 : at + 4 + length])
        at += 4 + length
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return _shaped(name, array, shape)


def write(answer: Mapping[str, Any], outputs: Named, asked: Mapping[str, Any]) -> tuple[bytes, int | None]:
    """Return the body of an answer, and the length of its header where something behind it is binary."""
    wanted: dict[str, Mapping[str, Any]] = {
        str(one.get("name")): _parameters(one) for one in asked.get("outputs") or [] if isinstance(one, dict)
    }
    for name in wanted:
        if name not in outputs:
            raise BadRequest(f"there is no output {name}; there are {', '.join(outputs)}")
    every = bool(_parameters(asked).get("binary_data_output"))
    described: list[dict[str, Any]] = []
    parts: list[bytes] = []
    for name in wanted or outputs:
        array = np.asarray(outputs[name])
        one: dict[str, Any] = {"name": name, "datatype": datatype_of(array), "shape": list(array.shape)}
        if wanted.get(name, {}).get("binary_data", every):
            parts.append(_to_binary(array))
            one["parameters"] = {"binary_data_size": len(parts[-1])}
        else:
            one["data"] = [_plain(value) for value in array.ravel().tolist()]
        described.append(one)
    header = json.dumps({**answer, "outputs": described}).encode()
    return header + b"".join(parts), len(header) if parts else None


def _plain(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _to_binary(array: Any) -> bytes:
    if datatype_of(array) != "BYTES":
        return bytes(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes())
    texts = (v if isinstance(v, bytes) else str(v).encode() for v in array.ravel().tolist())
    return b"".join(struct.pack("<I", len(text)) + text for text in texts)
