"""Who is held back by a member's cap, where notebook servers count in it as jobs do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlp_hub.domain.errors import Reason
from mlp_hub.domain.jobs.job import Job, JobSpec, Phase, Steered, Target
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.workload.caps import EVERYBODY, Cap, CapOfMember
from mlp_hub.domain.workload.ledger import RequestPhase, ResourceRequest
from mlp_hub.scheduler.model.types import PendingWorkload, SchedulingPolicy, Verdict
from mlp_hub.service.admission import caps
from mlp_hub.service.admission.caps import held_back
from mlp_hub.service.admission.snapshot import Holders, waiting_of
from mlp_language.message import msg
from mlp_language.render import ENGLISH, render


def job(name: str, cpu: float = 1, user: str = "ann", gpu: float = 0, *, holds: bool = False) -> Job:
    each = Resources(round(cpu * 1000), round(gpu * 1000), 100)
    phase, placement = (Phase.RUNNING, ("n1",)) if holds else (Phase.QUEUED, ())
    spec = JobSpec(name, user, "red", "python", each, 1, 1, code="x")
    return Job(name, spec, phase, Target.RUN, 1.0, placement=placement, queued_at=1.0)


def server(
    user: str = "ann", cpu: float = 1, gpu: float = 0, *, holds: bool = True, n: str = ""
) -> ResourceRequest:
    phase = RequestPhase.CONFIRMED if holds else RequestPhase.PENDING
    amount = Resources(round(cpu * 1000), round(gpu * 1000), 100)
    return ResourceRequest(
        f"{user}/{n}", "sp", "red", amount, phase, 1.0, user=user, holder=f"{user}'s notebook"
    )


def look(
    cap: Cap, *stored: Job | ResourceRequest, user: str = EVERYBODY, before: dict[str, Verdict] | None = None
) -> dict[str, Verdict]:
    servers = [s for s in stored if isinstance(s, ResourceRequest)]
    holders = Holders(
        (),
        {},
        {},
        {},
        None,
        pending={s.uid: s for s in servers if not s.held},
        caps=(CapOfMember("red", user, cap),),
        servers=tuple(s for s in servers if s.held),
    )
    jobs = [j for j in stored if isinstance(j, Job)]
    waiting = [j for j in jobs if j.phase is Phase.QUEUED]
    holding = [j for j in jobs if j.phase is Phase.RUNNING]
    return held_back(holders, waiting, holding, lambda j: (0, j.uid), before or {})  # type: ignore[arg-type,return-value]


def words(verdict: Verdict) -> tuple[str, list[str]]:
    """Return the headline, and the facts as lines."""
    with_who = [
        msg("{d} {k} {v} by {who}", d=f.dimension, k=f.key, v=f.value, who=f.who) for f in verdict.facts
    ]
    rows = [render(m, ENGLISH).removesuffix(" by none") for m in with_who]
    return render(verdict.headline, ENGLISH), [row.removesuffix(" by ") for row in rows]


def test_a_job_waits_where_its_members_server_and_jobs_hold_the_cap_and_is_told_who() -> None:
    running = job("runs", 2, holds=True)
    assert look(Cap(cpu=4000), running, job("a")) == {}
    found = look(Cap(cpu=4000), server(cpu=2), running, job("a"))
    assert words(found["a"]) == (
        "The cap of ann in red: 4 cpu; 4 cpu in use.",
        [
            "cpu asked 1 cpu",
            "cpu limit 4 cpu",
            "cpu inuse 4 cpu by the notebook server of ann (2) and job runs of ann (2)",
        ],
    )
    assert look(Cap(cpu=4000), server("bob", 2), running, job("a")) == {}  # another's


def test_a_server_counts_in_cpu_and_gpu_and_not_as_a_job() -> None:
    assert look(Cap(jobs=1), server(), job("a")) == {}
    assert list(look(Cap(gpu=1000), server(gpu=1), job("a", gpu=0.5))) == ["a"]


def test_a_server_that_is_asked_for_comes_before_the_members_jobs_and_is_not_passed() -> None:
    asked = server(cpu=3, holds=False)
    assert list(look(Cap(cpu=4000), job("a", 2), asked)) == ["a"]
    running = job("runs", 2, holds=True)
    found = look(Cap(cpu=4000), running, job("a", 1), asked)
    assert list(found) == ["sp/ann/", "a"]
    assert found["sp/ann/"].reason is Reason.WAITING_FOR_QUOTA


def test_of_two_servers_that_fit_one_at_a_time_the_first_may_start() -> None:
    first, second = server(cpu=3, holds=False), server(cpu=3, holds=False, n="b")
    (held,) = look(Cap(cpu=4000), first, second).items()
    assert held[0] == second.uid
    assert words(held[1])[1][-1] == "cpu inuse 3 cpu by the notebook server of ann (3)"


def test_a_job_that_fits_only_without_the_server_shows_that_and_lets_others_pass() -> None:
    found = look(Cap(cpu=4000), server(cpu=2), job("a", 3), job("b", 2), job("c", 1))
    assert list(found) == ["a", "c"]
    assert words(found["a"]) == (
        "Servers hold 2 cpu of ann's cap in red; one must stop.",
        ["cpu asked 3 cpu", "cpu limit 4 cpu", "cpu held 2 cpu by the notebook server of ann (2)"],
    )
    assert list(look(Cap(cpu=4000), job("a", 3), job("b", 2))) == [
        "b"
    ]  # it is the first once the server has ended


def test_a_server_that_is_more_than_the_cap_can_never_start_and_holds_nobody_up() -> None:
    found = look(Cap(cpu=4000), server(cpu=5, holds=False), job("a", 4))
    assert list(found) == ["sp/ann/"]
    assert found["sp/ann/"].reason is Reason.EXCEEDS_MAX_QUOTA


def test_a_cap_lowered_below_what_is_held_of_one_thing_holds_back_who_asks_for_it_alone() -> None:
    held = server(cpu=1, gpu=2)
    assert look(Cap(cpu=4000, gpu=1000), held, job("a", 1)) == {}
    assert list(look(Cap(cpu=4000, gpu=1000), held, job("a", 1, gpu=0.5))) == ["a"]


def test_a_request_without_a_user_counts_for_no_member() -> None:
    assert look(Cap(cpu=1000), server("", cpu=1), job("a", 1)) == {}
    assert look(Cap(cpu=1000), server("", cpu=9, holds=False)) == {}


def test_an_unchanged_verdict_stays_the_same_object() -> None:
    stored = (server(cpu=4), job("a", 1))
    before = look(Cap(cpu=4000), *stored)
    assert look(Cap(cpu=4000), *stored, before=before)["a"] is before["a"]


def test_of_thousands_that_wait_for_one_thing_what_they_are_told_is_made_and_compared_once() -> None:
    stored = (job("runs", 2, holds=True), *(job(f"j{n:02}", 1 + n % 2) for n in range(60)), job("huge", 9))
    before = look(Cap(cpu=2000), *stored)
    assert len(before) == 61
    assert len({id(verdict) for verdict in before.values()}) == 3  # those of 1 cpu, of 2 and of 9
    again = look(Cap(cpu=2000), *stored, before=before)
    assert all(again[uid] is verdict for uid, verdict in before.items())
    other = look(Cap(cpu=1000), *stored, before=before)
    assert words(other["j00"])[0] == "The cap of ann in red: 1 cpu; 2 cpu in use."
    assert words(other["j01"])[0] == "Asks for 2 cpu; the cap of ann in red is 1 cpu."


def test_of_jobs_that_did_not_change_no_key_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def counted(stored: Job) -> PendingWorkload:
        made.append(stored.uid)
        return waiting_of(stored)

    monkeypatch.setattr(caps, "waiting_of", counted)
    holders = Holders((), {}, {}, {}, None, caps=(CapOfMember("red", EVERYBODY, Cap(cpu=1000)),))
    jobs, keys, policy = [job("a"), job("b"), job("c")], caps.KeptKeys(), SchedulingPolicy()
    assert list(caps.held_now(holders, jobs, [], policy, {}, keys=keys)) == ["b", "c"]
    made.clear()
    jobs[2] = replace(jobs[2], steered=Steered(priority="high"), spec=replace(jobs[2].spec, priority="high"))
    assert list(caps.held_now(holders, jobs, [], policy, {}, keys=keys)) == ["a", "b"]
    assert made == ["c"]
