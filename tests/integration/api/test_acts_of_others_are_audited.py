"""An admin who stops or removes another person's work leaves an entry in the audit log; the owner leaves none."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from support.rigs.api_rig import ApiRig, started


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiRig]:
    yield from started(tmp_path_factory.mktemp("acts"))


def entries(rig: ApiRig, action: str, title: str) -> list[tuple[str, str]]:
    """Return the person and the team of each entry of an action on an object."""
    found = json.loads(rig.ask("GET", f"/audit?action={action}", token=rig.root_user).body)

    assert all(e["detail"] == {"user": "ann"} for e in found)
    return [(e["actor"], e["tenant"]) for e in found if e["object"] == title]


def changed(rig: ApiRig, path: str, token: str, method: str = "PUT") -> int:
    """Return the status of the answer."""
    return rig.ask(method, f"/users/ann/{path}", token=token).status


@pytest.mark.parametrize(("who", "expected"), [("ann", []), ("root_user", [("admin", "red")])])
def test_acts_on_a_job_have_entries_only_if_another_person_did_them(
    rig: ApiRig, who: str, expected: list[tuple[str, str]]
) -> None:
    token, name = getattr(rig, who), f"of-{who.replace('_', '-')}"
    rig.job("ann", name, rig.ann)
    for verb, phase in (("suspend", "suspended"), ("resume", ""), ("cancel", "cancelled")):
        assert changed(rig, f"jobs/{name}:{verb}", token) == 200
        assert phase == "" or rig.until("ann", name, phase)
        assert entries(rig, f"job.{verb}", name) == expected
    told = rig.ask("GET", f"/users/ann/jobs/{name}/events", token=rig.ann).json
    words = [event["message"] for event in told]
    assert any(word.endswith("asked to cancel, by admin") for word in words) == bool(expected), words
    assert changed(rig, f"jobs/{name}", token, "DELETE") in {200, 204}
    assert entries(rig, "job.delete", name) == expected


def test_an_act_that_changes_nothing_or_is_refused_has_no_entry(rig: ApiRig) -> None:
    rig.job("ann", "twice", rig.ann)
    for _ in range(2):
        assert changed(rig, "jobs/twice:cancel", rig.root_user) == 200
        rig.until("ann", "twice", "cancelled")
    assert changed(rig, "jobs/twice:resume", rig.root_user) == 403
    assert len(entries(rig, "job.cancel", "twice")) == 1
    assert entries(rig, "job.resume", "twice") == []


@pytest.mark.parametrize(("who", "expected"), [("ann", []), ("root_user", [("admin", "red")])])
def test_acts_on_a_sweep_have_entries_only_if_another_person_did_them(
    rig: ApiRig, who: str, expected: list[tuple[str, str]]
) -> None:
    token, name = getattr(rig, who), f"tries-{who.replace('_', '-')}"
    rig.sweep("ann", name, rig.ann)
    assert changed(rig, f"sweeps/{name}:cancel", token) == 200
    assert entries(rig, "sweep.cancel", name) == expected
