"""Counts that are kept with each change are those that a pass over all jobs would find."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mlp_hub.domain.jobs.job import FINAL, HOLDING, Job, JobSpec, Phase, RankStatus, Target
from mlp_hub.domain.resources import Resources
from mlp_hub.service.admission.reason_counts import ReasonCounts
from mlp_hub.service.state.tallies import Tallies

UIDS = ("a", "b", "c", "d")


def job(uid: str, tenant: str, phase: Phase, cpu: float | None) -> Job:
    spec = JobSpec(uid, "ann", tenant, "plain", Resources(cpu=1000))
    ranks = (RankStatus(0, "worker", "n1", "running", cpu=cpu, ram=None if cpu is None else int(cpu * 100)),)
    return replace(Job(uid, spec, phase, Target.RUN, 0.0), ranks=ranks)


jobs = st.builds(
    job,
    st.sampled_from(UIDS),
    st.sampled_from(("red", "blue")),
    st.sampled_from(sorted(set(Phase) - FINAL)),
    st.one_of(st.none(), st.floats(0, 64)),
)


@given(st.lists(st.one_of(jobs, st.sampled_from(UIDS))))
def test_tallies(steps: list[Job | str]) -> None:
    board: dict[str, Job] = {}
    tallies = Tallies()
    for step in steps:
        uid = step if isinstance(step, str) else step.uid
        known = board.pop(uid, None)
        now = None
        if not isinstance(step, str):
            # a job stays in its tenant
            spec = step.spec if known is None else known.spec
            now = board[uid] = replace(step, spec=spec)
        tallies.change(known, now)
    at = board.values()
    assert {p: n for p, n in tallies.phases.items() if n} == Counter(j.phase for j in at)
    assert tallies.waiting == Counter(j.spec.tenant for j in at if j.phase is Phase.QUEUED)
    assert tallies.running == Counter(j.spec.tenant for j in at if j.phase in HOLDING)
    for counts, of in ((tallies.cpu, lambda r: round(r.cpu * 1000)), (tallies.ram, lambda r: r.ram)):
        used: Counter[str] = Counter()
        for j in at:
            if j.phase in HOLDING and j.ranks[0].cpu is not None and (amount := of(j.ranks[0])):
                used[j.spec.tenant] += amount
        assert counts == used


uids = st.integers(0, 30).map(str)
put = st.tuples(uids, st.sampled_from(("QuotaExceeded", "NoRoom")), st.floats(0, 100))


@given(st.lists(st.one_of(put, uids), max_size=400))
def test_reasons(steps: list[tuple[str, str, float] | str]) -> None:
    known: dict[str, tuple[str, float]] = {}
    counts = ReasonCounts()
    for step in steps:
        if isinstance(step, str):
            known.pop(step, None)
            counts.remove(step)
        else:
            known[step[0]] = step[1:]
            counts.put(*step)
        expected: dict[str, tuple[int, float]] = {}
        for reason in {reason for reason, _ in known.values()}:
            since = [s for r, s in known.values() if r == reason]
            expected[reason] = (len(since), min(since))
        assert counts.by_reason() == expected
        assert counts.total == len(known)


def test_a_job_whose_reason_changes_for_ever_takes_no_memory() -> None:
    counts = ReasonCounts()
    for number in range(10_000):
        counts.put("a", ("NoRoom", "QuotaExceeded")[number % 2], 1.0)
        counts.put("b", "NoRoom", float(number))
    assert sum(len(heap) for heap in counts._heaps.values()) < 200
