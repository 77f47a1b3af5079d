"""The work of a pod's GPUs: read by the driver's library, written beside the rank's use, and known only while it is written anew."""

# ruff: noqa: N802 - names of the library
from __future__ import annotations

import ctypes
import json
import os
import time
from collections import defaultdict
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mlp_hub.executors.base import AttemptWork
from mlp_hub.executors.kubernetes import records
from mlp_hub.executors.kubernetes.metering.attempt_work import AttemptWorkMeter
from mlp_hub.executors.kubernetes.rank.gpus import PodGpus
from mlp_hub.executors.kubernetes.rank.told import OwnPlan
from mlp_hub.executors.kubernetes.rank.usage import OwnUse, PodGroup
from support.waiting import PATIENCE_S, wait_for


class Library:
    """The functions of NVIDIA's library that are called, with their statuses."""

    def __init__(self, *percent: int) -> None:
        self.percent, self.encoder = list(percent), 0
        self.status: defaultdict[str, int] = defaultdict(int)

    def nvmlInit_v2(self) -> int:
        return self.status["init"]

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:
        count._obj.value = len(self.percent)
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, number: Any, handle: Any) -> int:
        handle._obj.value = number.value + 1
        return self.status["handle"]

    def nvmlDeviceGetUtilizationRates(self, handle: Any, rates: Any) -> int:
        rates._obj.gpu = self.percent[handle.value - 1]
        return self.status["rates"]

    def nvmlDeviceGetEncoderUtilization(self, _: Any, used: Any, __: Any) -> int:
        used._obj.value = self.encoder
        return 0

    def nvmlDeviceGetDecoderUtilization(self, *_: Any) -> int:
        return 3


def pod(library: Library, at: list[float] | None = None) -> PodGpus:
    gpus = PodGpus("there-is-none.so", lambda: (at or [0.0])[0])
    gpus.open(library)
    return gpus


def test_the_most_that_any_engine_of_any_device_did_in_the_last_minute_is_remembered() -> None:
    library, at = Library(0, 0), [100.0]
    gpus = pod(library, at)
    assert (gpus.most(), gpus.looks) == (None, 0)
    gpus.look()
    assert (gpus.most(), gpus.looks) == (0, 1)
    library.percent[1] = 35
    gpus.look()
    library.percent[1] = 0
    at[0] = 150.0
    gpus.look()
    assert gpus.most() == 35
    at[0] = 161.0
    gpus.look()
    assert gpus.most() == 0
    library.encoder = 7
    gpus.look()
    assert (gpus.most(), gpus.looks) == (7, 5)


@pytest.mark.parametrize("fails", ["init", "handle", "rates"])
def test_a_library_that_refuses_measures_nothing(fails: str) -> None:
    library = Library(50)
    library.status[fails] = 3
    gpus = pod(library)
    gpus.look()
    assert (gpus.most(), gpus.looks) == (None, 0)


def test_a_pod_without_gpus_has_no_library_and_no_thread() -> None:
    gpus = PodGpus("there-is-none.so")
    gpus.begin()
    gpus.look()
    assert (gpus.most(), gpus.looks) == (None, 0)


def test_a_driver_that_hangs_keeps_no_rank_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    library, entered, goes_on = Library(50), Event(), Event()

    def hangs() -> int:
        entered.set()
        goes_on.wait()
        return 0

    monkeypatch.setattr(library, "nvmlInit_v2", hangs)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)
    gpus = PodGpus()
    gpus.begin()
    assert entered.wait(PATIENCE_S)
    assert (gpus.most(), gpus.looks) == (None, 0)
    goes_on.set()
    wait_for(lambda: gpus.most() == 50)
    library.status["rates"] = 3  # it looks on without end, and finds nothing


def test_a_library_of_an_image_without_the_functions_is_none() -> None:
    """Any library may have the name; one without these functions ended the rank."""
    gpus = PodGpus("libc.so.6")
    gpus.begin()
    assert (gpus.most(), gpus.looks) == (None, 0)


def test_a_rank_with_gpus_writes_again_though_nothing_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: at)
    (tmp_path / "log").mkdir()
    told = OwnPlan({"attempt": "a.0", "log": str(tmp_path / "log"), "roles": ["worker"]}, 0)
    gpus = pod(Library(0))
    use = OwnUse(told, PodGroup(str(tmp_path / "none")), gpus)
    use.begin(os.getpid())
    written = []
    for _ in range(8):
        at += 10.0
        gpus.look()
        use.look()
        written.append(json.loads((tmp_path / "log" / "a.0.0.use").read_text())["gpu_looks"])
    assert written[0] < written[-1]
    assert len(set(written)) >= 4
    assert json.loads((tmp_path / "log" / "a.0.0.use").read_text())["gpu"] == 0


def leave(root: Path, rank: int, **use: object) -> None:
    (root / "log").mkdir(exist_ok=True)
    (root / "log" / f"a.0.{rank}.json").write_text('{"state": "running"}')
    (root / "log" / f"a.0.{rank}.use").write_text(json.dumps({"cpu": 0.01, **use}))


@pytest.mark.parametrize(
    ("gpu", "expected"),
    [(0, 0.0), (55, 0.55), (1e9, 1.0), (-5, None), ("much", None), (True, None), (None, None)],
)
def test_reports_of_ranks_are_checked(tmp_path: Path, gpu: object, expected: float | None) -> None:
    leave(tmp_path, 0, gpu=gpu, gpu_looks=3)
    use = records.read(str(tmp_path), "a.0", 1)[0].use
    assert use is not None
    assert (use.gpu, use.gpu_looks) == (expected, 3)


def test_work_is_known_only_where_each_rank_wrote_it_since_the_last_look(tmp_path: Path) -> None:
    directories = cast("Any", SimpleNamespace(workspace=lambda _: str(tmp_path)))
    meter = AttemptWorkMeter(cast("Any", None), directories, cast("Any", None), cast("Any", None))
    about = SimpleNamespace(of_run=None, roles=["worker", "worker"])
    claim = cast("Any", SimpleNamespace(attempt="a.0", about=about))

    def work() -> AttemptWork:
        found, meter._gpu_looks["a.0"] = meter.reported(claim)
        assert (found.gpu_reported, found.cores_reported) == (True, True), "a program can write all of it"
        return AttemptWork(found.gpu, found.cores)

    leave(tmp_path, 0, gpu=0, gpu_looks=1)
    assert work() == AttemptWork(None, None), "a rank has not begun"
    leave(tmp_path, 0, gpu=0, gpu_looks=2)
    leave(tmp_path, 1, gpu=0, gpu_looks=1)
    assert work() == AttemptWork(0.0, 0.01)
    leave(tmp_path, 0, gpu=0, gpu_looks=3)
    assert work().gpu is None, "the other one hangs, or its volume does"
    leave(tmp_path, 0, gpu=20, gpu_looks=4)
    assert work().gpu == 0.2, "one at work is enough"
    leave(tmp_path, 0)
    leave(tmp_path, 1, gpu=0, gpu_looks=5)
    assert work().gpu is None, "one has no GPU that it can measure"


@pytest.mark.parametrize(
    "text",
    [
        b'{"gpu": NaN, "gpu_looks": NaN, "cpu": NaN}',
        b'{"gpu": Infinity, "gpu_looks": -1, "cpu": -Infinity}',
        b'{"gpu": 1' + b"0" * 400 + b', "gpu_looks": 1' + b"0" * 30 + b"}",
        b'{"gpu": [' * 200,
        b'{"gpu": {"gpu": 1}, "gpu_looks": "7", "cpu": []}',
        b"[1, 2]",
        b"\xff\xfe",
        b'{"gpu": 1, "gpu_looks": 1}' + b" " * 4096 + b"x",
        b"",
    ],
)
def test_files_that_a_program_wrote_over_its_rank_are_unknown_and_stop_nothing(
    tmp_path: Path, text: bytes
) -> None:
    leave(tmp_path, 0)
    (tmp_path / "log" / "a.0.0.use").write_bytes(text)
    use = records.read(str(tmp_path), "a.0", 1)[0].use or records.RankUse()
    assert use.gpu is None or 0 <= use.gpu <= 1
    assert 0 <= use.gpu_looks < 1 << 31
    assert use.cpu is None


@pytest.mark.parametrize("kind", ["link", "pipe", "directory", "sparse"])
def test_a_file_of_another_kind_is_not_followed_and_keeps_nobody_waiting(tmp_path: Path, kind: str) -> None:
    leave(tmp_path, 0)
    report = tmp_path / "log" / "a.0.0.use"
    report.unlink()
    secret = tmp_path / "secret"
    secret.write_text('{"gpu": 99, "gpu_looks": 9}')
    if kind == "link":
        report.symlink_to(secret)
    elif kind == "pipe":
        os.mkfifo(report)
    elif kind == "directory":
        report.mkdir()
    else:
        report.write_bytes(b"")
        os.truncate(report, 1 << 40)
    assert records.read(str(tmp_path), "a.0", 1)[0].use is None
