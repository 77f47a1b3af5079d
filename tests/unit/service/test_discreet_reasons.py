"""What a tenant reads of another tenant's jobs: that there is one."""

from __future__ import annotations

from mlp_hub.domain.errors import Reason
from mlp_hub.domain.job import Job, JobSpec, Phase, Target
from mlp_hub.domain.ledger import RequestPhase, ResourceRequest
from mlp_hub.domain.resources import Resources
from mlp_hub.scheduler.model import Verdict, Why
from mlp_hub.scheduler.why import Expected
from mlp_hub.service.answers import _discreet
from mlp_hub.service.claims import claims_for, uid_of
from mlp_hub.service.discreet import gathered, reason_for, stop_for, why_for, without_names


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
    assert reason_for(gone, "red", {}).message == "other jobs were before it, and have ended meanwhile"
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
        "job digits of ann and job secret of eve have no time limit",
    )
    told = why_for(why, "red", JOBS)
    assert told.sure_because == "job digits of ann and a job of tenant blue have no time limit"
    assert (told.reasons[0].message, told.expected_because, told.expected_start) == (
        "would delay a job of tenant blue",
        "a job of tenant blue ends",
        5.0,
    )


def test_names_that_are_parts_of_others_are_replaced_whole_and_alone() -> None:
    others = [job("3", "secret", "eve", "blue"), job("4", "top-secret", "evelyn", "blue")]
    mine = job("5", "my-secret", "eve", "red")
    text = "after job top-secret of evelyn, job my-secret of eve and secret of eve. Then more"
    for order in (others, others[::-1]):
        assert without_names(text, "red", [*order, mine]) == (
            "after 2 jobs of tenant blue and job my-secret of eve. Then more"
        )


def test_a_name_with_signs_that_mean_something_to_patterns_is_replaced_as_it_is() -> None:
    odd = job("6", "a", r"e+v\1(e@x.org", r"blue")
    assert (
        without_names(r"room for a of e+v\1(e@x.org in blue: so", "red", [odd])
        == "room for a job of tenant blue: so"
    )


def claim(user: str, tenant: str) -> ResourceRequest:
    return ResourceRequest(
        f"{user}/",
        "sp",
        tenant,
        Resources(1000),
        RequestPhase.CLAIMED,
        0.0,
        user=user,
        holder=f"{user}'s notebook",
    )


def test_whose_server_it_is_that_others_wait_for_is_told_to_its_own_tenant_alone() -> None:
    claims = {uid_of(c): c for c in (claim("lou", "lender"), claim("louise", "lender"))}
    text = "no time can be told: notebook of louise and notebook of lou have no time limit"
    why = Why((verdict(Reason.RESERVED, f"behind {text}", *claims),), 1, 1, None, text, (), "likely", text)
    theirs, own = claims_for(why, "red", claims), claims_for(why, "lender", claims)
    for told in (theirs.expected_because, theirs.sure_because, theirs.reasons[0].message):
        assert told.endswith("no time can be told: 2 notebook servers of tenant lender have no time limit")
    assert theirs.reasons[0].blocked_by == ()
    assert own.expected_because.count("louise") == own.expected_because.count("lou's") == 1


def test_lists_name_nobodys_server_to_others() -> None:
    found: dict[str, Expected] = {"1": (None, "no time can be told: notebook of lou has no time limit")}
    claims = {"sp/lou/": claim("lou", "lender")}
    shown = _discreet(found, JOBS, claims)
    assert shown["1"][1] == "no time can be told: a notebook server of tenant lender has no time limit"


def test_several_that_are_told_alike_are_counted() -> None:
    others = [job(str(n), name, "eve", "blue") for n, name in enumerate(("one", "two", "three"), 5)]
    own = [job("9", "ownb", "bob", "red")]
    text = "no time can be told: one of eve, two of eve and ownb of bob have no time limit"
    assert without_names(text, "red", [*others, *own]) == (
        "no time can be told: 2 jobs of tenant blue and ownb of bob have no time limit"
    )
    assert without_names(
        "job one of eve, job two of eve and job three of eve are stopped", "red", others
    ) == ("3 jobs of tenant blue are stopped")
    two = "one of eve would delay two of eve"
    assert without_names(two, "red", others) == "a job of tenant blue would delay a job of tenant blue"
    servers = "a notebook server of tenant blue and a notebook server of tenant blue have no end"
    assert gathered(servers) == "2 notebook servers of tenant blue have no end"
