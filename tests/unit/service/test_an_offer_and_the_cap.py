"""Whether a new job would wait for its member's cap is asked by everybody, often: it costs what that member has, beside the event loop."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from mlp_hub.domain.jobs.job import Job, JobSpec, Phase, Target
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.workload.caps import EVERYBODY, Cap, CapOfMember
from mlp_hub.scheduler.model.types import SchedulingPolicy
from mlp_hub.service.admission import caps
from mlp_hub.service.admission.loop import Admission
from mlp_hub.service.admission.snapshot import Holders, waiting_of
from mlp_language.render import ENGLISH, render


def spec(name: str, user: str, tenant: str = "red") -> JobSpec:
    return JobSpec(name, user, tenant, "python", Resources(1000, 0, 100), 1, 1, code="x")


def admission(monkeypatch: pytest.MonkeyPatch, *, is_large: bool) -> tuple[Any, list[tuple[str, bool]]]:
    """Return what `cap_of_new` looks at, and who was looked at: whose job, and whether on the event loop."""
    looked: list[tuple[str, bool]] = []

    def counted(job: Job) -> Any:
        looked.append((job.spec.user, threading.current_thread() is threading.main_thread()))
        return waiting_of(job)

    monkeypatch.setattr(caps, "waiting_of", counted)
    holders = Holders((), {}, {}, {}, None, caps=(CapOfMember("red", EVERYBODY, Cap(cpu=2000)),))
    jobs = [spec(f"b{n}", "bob") for n in range(50)] + [spec("first", "ann"), spec("else", "ann", "blue")]
    waiting = {each.name: Job(each.name, each, Phase.QUEUED, Target.RUN, 1.0) for each in jobs}
    return SimpleNamespace(
        _holders=holders,
        _board=SimpleNamespace(waiting=waiting, holding={}),
        _policy=SimpleNamespace(scheduling=SchedulingPolicy()),
        _clock=lambda: 5.0,
        is_large=is_large,
    ), looked


def test_only_what_the_member_has_there_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    of, looked = admission(monkeypatch, is_large=False)
    assert asyncio.run(Admission.cap_of_new(of, spec("new", "ann"), "new")) is None
    assert looked == [("ann", True), ("ann", True)]
    looked.clear()
    found = asyncio.run(Admission.cap_of_new(of, spec("new", "bob"), "new"))
    assert found is not None
    assert render(found.headline, ENGLISH) == "The cap of bob in red: 2 cpu; 0 cpu in use."
    assert {user for user, _ in looked} == {"bob"}


def test_of_a_team_without_caps_nothing_is(monkeypatch: pytest.MonkeyPatch) -> None:
    of, looked = admission(monkeypatch, is_large=True)
    assert asyncio.run(Admission.cap_of_new(of, spec("new", "ann", "blue"), "new")) is None
    assert looked == []


def test_where_much_waits_a_thread_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    of, looked = admission(monkeypatch, is_large=True)
    assert asyncio.run(Admission.cap_of_new(of, spec("new", "ann"), "new")) is None
    assert looked == [("ann", False), ("ann", False)]
