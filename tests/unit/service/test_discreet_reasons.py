"""What a tenant reads of another tenant's jobs: that there is one."""

from __future__ import annotations

from mlp_hub.domain.errors import Reason
from mlp_hub.domain.job import Job, JobSpec, Phase, Target
from mlp_hub.domain.resources import Resources
from mlp_hub.scheduler.model import Verdict, Why
from mlp_hub.service.discreet import reason_for, stop_for, why_for, without_names


def job(uid: str, name: str, user: str, tenant: str) -> Job:
    return Job(uid, JobSpec(name, user, tenant, "plain", Resources()), Phase.RUNNING, Target.RUN, 0.0)


MINE = job("1", "digits", "ann", "red")
THEIRS = job("2", "secret", "eve", "blue")
JOBS = {j.uid: j for j in (MINE, THEIRS)}


def verdict(reason: Reason, message: str, *about: str) -> Verdict:
    return Verdict(reason, message, {"n": 1}, about)


def test_jobs_of_others_lose_their_names_ones_own_keep_them() -> None:
    text = "starts as soon as job digits of ann and job secret of eve have ended"
    expected = "starts as soon as job digits of ann and a job of tenant blue have ended"
    assert without_names(text, "red", JOBS.values()) == expected
    assert without_names(text, "blue", JOBS.values()) == (
        "starts as soon as a job of tenant red and job secret of eve have ended"
    )


def test_every_way_of_naming_a_job_is_known() -> None:
    for told, shown in (
        ("would delay secret of eve, which is ahead", "would delay a job of tenant blue, which is ahead"),
        ("room for secret of eve in blue: blue takes", "room for a job of tenant blue: blue takes"),
        ("job secret of eve in blue", "a job of tenant blue"),
    ):
        assert without_names(told, "red", [THEIRS]) == shown


def test_reasons_that_wait_for_others_and_stops_are_told_discreetly() -> None:
    ahead = verdict(Reason.RESERVED, "would delay secret of eve", "2")
    assert reason_for(ahead, "red", JOBS).message == "would delay a job of tenant blue"
    assert reason_for(ahead, "blue", JOBS) is ahead
    gone = verdict(Reason.RESERVED, "would delay secret of eve", "3")
    assert reason_for(gone, "red", {}) is gone
    quota = verdict(Reason.WAITING_FOR_QUOTA, "8 in use by job digits of ann", "1")
    assert reason_for(quota, "red", JOBS) is quota
    stop = verdict(Reason.WAITING_FOR_RESOURCES, "to make room for secret of eve in blue", "2")
    assert stop_for(stop, "red", JOBS).message == "to make room for a job of tenant blue"


def test_a_whole_answer_is_told_discreetly() -> None:
    why = Why(
        (verdict(Reason.RESERVED, "would delay secret of eve", "2"),),
        1,
        1,
        5.0,
        "job secret of eve ends",
        (),
        "likely",
        "job secret of eve has no time limit",
    )
    told = why_for(why, "red", JOBS)
    assert told.sure_because == "a job of tenant blue has no time limit"
    assert (told.reasons[0].message, told.expected_because, told.expected_start) == (
        "would delay a job of tenant blue",
        "a job of tenant blue ends",
        5.0,
    )
