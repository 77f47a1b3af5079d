"""Formats of models are told by names and headers; what is none is told as none; nothing is ever unpickled."""

from __future__ import annotations

import io
import os
import pickle
import struct
import tracemalloc
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from mlp.serving import loaders
from mlp_hub.domain.stored.model import ModelFormat
from mlp_hub.executors.shared_volume.models import formats
from mlp_hub.executors.shared_volume.models.format_names import KNOWN_FORMATS, PREFERRED
from mlp_hub.safe_path import DirHandle
from support.files.model_files import FORMATS, HOSTILE, NO_MODELS, PICKLED, WEIGHTS, Boom, safetensors

EXAMPLES = {name: next(iter(files)).rpartition(".")[2] for name, files in FORMATS.items()}
"""An ending of each format."""


def put(top: Path, files: Mapping[str, bytes]) -> Path:
    for name, data in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(data)
    return top


def recognise(top: Path) -> ModelFormat:
    with DirHandle.at(top) as folder:
        return formats.recognise(folder)


def models_in(top: Path) -> list[tuple[str, ModelFormat]]:
    with DirHandle.at(top) as folder:
        return formats.models_in(folder)


def format_of(ending: str) -> str:
    """Name the format that files with an ending are told as."""
    look = formats.BY_ENDING[ending.removeprefix(".")]
    return next(name for name in PREFERRED if look is formats.BY_ENDING[EXAMPLES[name]])


def test_there_is_an_example_of_each_format() -> None:
    assert set(FORMATS) == set(KNOWN_FORMATS)


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_is_told_and_whether_loading_it_runs_code(name: str, tmp_path: Path) -> None:
    found = recognise(put(tmp_path, FORMATS[name]))
    assert (found.name, found.pickled) == (name, name in PICKLED)
    assert found.main in FORMATS[name]


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_is_unpickled_to_tell_what_it_is(name: str, tmp_path: Path) -> None:
    assert recognise(put(tmp_path, HOSTILE[name])).name == name


def test_of_several_formats_the_one_that_is_told_is_the_one_that_is_served() -> None:
    told = [PREFERRED.index(format_of(ending)) for ending in loaders.BY_ENDING]
    assert told == sorted(told)


@pytest.mark.parametrize("name", NO_MODELS)
def test_a_directory_without_a_model_is_not_recognised(name: str, tmp_path: Path) -> None:
    found = recognise(put(tmp_path, NO_MODELS[name]))
    assert found.name == ""
    assert set(found.seen) <= set(NO_MODELS[name])
    assert found.seen


def test_facts_from_a_header_are_shown(tmp_path: Path) -> None:
    assert recognise(put(tmp_path / "a", FORMATS["safetensors"])).facts == {"tensors": "2", "values": "9"}
    parts = {f"model-{n}.safetensors": WEIGHTS for n in (1, 2, 3)}
    assert recognise(put(tmp_path / "b", parts)).facts["parts"] == "3"
    assert recognise(put(tmp_path / "c", FORMATS["mlflow"])).facts == {"flavors": "python_function, sklearn"}


def test_the_safest_of_several_formats_is_the_one_that_is_told(tmp_path: Path) -> None:
    both = {**FORMATS["torch"], **FORMATS["safetensors"]}
    assert recognise(put(tmp_path, both)).name == "safetensors"


def test_links_and_pipes_are_not_opened(tmp_path: Path) -> None:
    outside = put(tmp_path / "outside", FORMATS["safetensors"])
    top = tmp_path / "top"
    top.mkdir()
    (top / "model.safetensors").symlink_to(outside / "model.safetensors")
    os.mkfifo(top / "net.onnx")
    assert recognise(top).name == ""


def test_a_directory_of_very_many_is_looked_at_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "MOST_NAMES", 3)
    put(tmp_path, {f"{n}.txt": b"" for n in range(10)})
    assert len(recognise(tmp_path).seen) == 3


def test_a_huge_header_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "MOST_HEADER", 10)
    assert recognise(put(tmp_path, {"a.safetensors": safetensors(w=("F32", [2], bytes(8)))})).name == ""


def test_where_a_model_lies_further_down_is_told(tmp_path: Path) -> None:
    put(tmp_path / "ckpt/best", FORMATS["safetensors"])
    put(tmp_path / "ckpt/far/down", FORMATS["keras"])
    found = recognise(tmp_path / "ckpt")
    assert (found.name, found.below) == ("", ("best", "far/down"))
    assert recognise(tmp_path / "ckpt/best").below == ()


def test_models_among_a_jobs_files_are_told_as_they_would_be_registered(tmp_path: Path) -> None:
    top = tmp_path / "digits"
    put(top / "ckpt", FORMATS["safetensors"])
    put(top / "export/1", FORMATS["tensorflow-savedmodel"])
    put(top / "log", {"0.out": b"hello"})
    put(top, FORMATS["pickle"])
    (top / "latest").symlink_to(top / "ckpt")
    (top / "bytes\udcff").mkdir()
    put(top / "bytes\udcff", FORMATS["onnx"])
    found = [(path, one.name) for path, one in models_in(top)]
    (pickled,) = FORMATS["pickle"]
    assert found == [
        ("ckpt", "safetensors"),
        ("export/1", "tensorflow-savedmodel"),
        (pickled, "pickle"),
    ]


def test_the_search_for_models_ends_whatever_a_job_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "MOST_DIRECTORIES", 5)
    for n in range(20):
        put(tmp_path / f"d{n:02}", FORMATS["safetensors"])
    assert len(models_in(tmp_path)) == 5
    put(tmp_path / "d00/a/b/c/d", FORMATS["safetensors"])
    deep = tmp_path / "d00"
    for name in FORMATS["safetensors"]:
        (deep / name).unlink()
    assert all(not path.startswith("d00") for path, _ in models_in(tmp_path))


def archive(names: Iterable[str], *, large: bool = False, length: int | None = None) -> bytes:
    """An archive's list of members with its end, of the large kind too, and whatever length it says."""
    members = b"".join(
        b"PK\x01\x02" + bytes(24) + struct.pack("<HHH", len(name), 0, 0) + bytes(12) + name.encode()
        for name in names
    )
    said = len(members) if length is None else length
    end = b"PK\x05\x06" + bytes(8) + struct.pack("<IIH", 0xFFFFFFFF if large else said, 0, 0)
    if not large:
        return members + end
    record = b"PK\x06\x06" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, 1, 1, said, 0)
    return members + record + b"PK\x06\x07" + struct.pack("<IQI", 0, len(members), 1) + end


@pytest.mark.parametrize("large", [False, True])
def test_zip64_archive_members_are_recognised_too(tmp_path: Path, large: bool) -> None:
    data = archive(["config.json", "metadata.json", "model.weights.h5"], large=large)
    assert recognise(put(tmp_path, {"m.keras": data})).name == "keras"


def test_an_archive_that_zipfile_wrote_as_a_large_one_is_told(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "m.pt", "w") as out:
        for n in range(65_536):  # more than the small kind may have
            out.writestr(zipfile.ZipInfo(f"m/{n}"), b"")
        out.writestr("m/data.pkl", b"")
    assert recognise(tmp_path).name == "torch"


@pytest.mark.parametrize("large", [False, True])
def test_attack_an_archive_with_a_huge_list_is_not_read(tmp_path: Path, large: bool) -> None:
    put(tmp_path, {"m.keras": b""})
    with (tmp_path / "m.keras").open("wb") as file:
        file.truncate(1 << 30)
        file.seek(1 << 30)
        file.write(archive([], large=large, length=1 << 30))
    tracemalloc.start()
    try:
        assert recognise(tmp_path).name == ""
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_attack_a_file_of_many_names_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, FORMATS["onnx"])
    (first,) = FORMATS["onnx"]
    for n in range(8):
        (tmp_path / f"n{n}.onnx").hardlink_to(tmp_path / first)
    looked = []
    look = formats.BY_ENDING["onnx"]
    monkeypatch.setitem(formats.BY_ENDING, "onnx", lambda *a: looked.append(a) or look(*a))  # type: ignore[index,func-returns-value]
    assert [one.main for _, one in models_in(tmp_path)] == sorted([first, *(f"n{n}.onnx" for n in range(8))])
    assert len(looked) == 1


def torch_archive(main: bytes) -> bytes:
    """Return an archive as `torch.save` lays it out: nothing packed, values where a page begins, ends of the large kind."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as out:
        for name, data in {
            "data.pkl": main, "byteorder": b"little", "data/0": bytes(64), "version": b"3\n",
            ".data/serialization_id": b"1" * 40,
        }.items():  # fmt: skip
            info = zipfile.ZipInfo(f"archive/{name}")
            there = file.tell() + 30 + len(info.filename) + 4
            info.extra = struct.pack("<2sH", b"FB", -there % 64) + b"Z" * (-there % 64)
            info.flag_bits |= 0x8
            out.writestr(info, data)
    whole = file.getvalue()
    end = whole.rindex(b"PK\x05\x06")
    count, length, begin = struct.unpack_from("<HII", whole, end + 10)
    record = b"PK\x06\x06" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, count, count, length, begin)
    return whole[:end] + record + b"PK\x06\x07" + struct.pack("<IQI", 0, end, 1) + whole[end:]


@pytest.mark.parametrize("ending", ["pt", "pth", "ckpt", "bin"])
@pytest.mark.parametrize("old", [False, True])
def test_attack_a_file_of_torch_is_told_and_not_unpickled(tmp_path: Path, ending: str, old: bool) -> None:
    """What `torch.save` wrote before 1.6 is a pickle itself; both are shown as what runs code when it is loaded."""
    main = pickle.dumps(Boom(), protocol=2)
    put(tmp_path, {f"net.{ending}": main if old else torch_archive(main)})
    found = recognise(tmp_path)
    assert (found.name, found.main, found.pickled) == ("torch", f"net.{ending}", True)
    with pytest.raises(AssertionError, match="unpickled"):
        pickle.loads(main)  # noqa: S301 - so it would have been found out


def test_an_archive_without_a_pickle_is_not_a_torch_model(tmp_path: Path) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        out.writestr("archive/data/0", b"x")
    assert recognise(put(tmp_path, {"net.pt": file.getvalue()})).name == ""
