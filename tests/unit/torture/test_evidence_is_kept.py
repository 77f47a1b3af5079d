"""What there is to see while nobody takes a write is kept, and what cannot be seen as the error that it is."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from support.failover import failover_evidence
from support.failover.failover_evidence import FailoverEvidence


def test_one_look_that_fails_takes_nothing_from_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failover_evidence, "KEPT", tmp_path / "kept")
    (tmp_path / "service.log").write_text("this service decides\n")
    evidence = FailoverEvidence(
        "one",
        database=f"postgresql:///none?host={tmp_path}",
        logs=tmp_path,
        processes=lambda: {"service": os.getpid(), "service-2": None},
        ready=lambda number: {"ready": number == 1},
    )
    place = evidence.keep("stopped never", leader=2)
    seen = {path.name: path.read_text() for path in place.iterdir()}
    assert json.loads(seen["known.json"]) == {"leader": 2}
    assert [json.loads(seen[f"ready-{n}.json"])["ready"] for n in (1, 2)] == [True, False]
    assert f"Pid:\t{os.getpid()}" in seen["processes.txt"]
    assert f"-- thread {os.getpid()} " in seen["processes.txt"]
    assert seen["service.log"] == "this service decides\n"
    assert "FileNotFoundError" in seen["service-2.log"]
    assert "OperationalError" in seen["database.json"]
