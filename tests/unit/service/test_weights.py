"""What one user's open jobs may weigh: counted as jobs come, change and go, whatever the order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mlp_hub.domain.errors import Reason
from mlp_hub.domain.jobs.job import HOLDING, Job, JobSpec, Phase, Target
from mlp_hub.domain.resources import Resources
from mlp_hub.service.state.user_limits import Scales, Weights, kind_of, size_of

MIB = 2**20


def spec(user: str = "bob", cpu: int = 1000, code: str = "pass", **more: object) -> JobSpec:
    base = {"tenant": "blue", "runtime": "plain", "per_worker": Resources(cpu=cpu, ram=100), "code": code}
    return JobSpec(name="x", user=user, **{**base, **more})


def job(uid: str, made: JobSpec, phase: Phase = Phase.QUEUED) -> Job:
    return Job(uid, made, phase, Target.RUN, submitted_at=1.0)


def scales(weights: Weights, most_bytes: int = 64 * MIB, most_kinds: int = 3) -> Scales:
    return Scales(weights, most_bytes, most_kinds)


def test_long_programs_fill_a_users_memory_and_nobody_elses() -> None:
    weights, big = Weights(), spec(code="x" * MIB)
    lot = scales(weights, most_bytes=4 * MIB)
    answers = [lot.refusal(big) for _ in range(4)]
    assert answers[:3] == [None] * 3
    refused = answers[3]
    assert refused is not None
    assert refused.reason is Reason.CONFLICT
    assert "3.0 MiB" in refused.msg
    assert "the limit is 4 MiB" in refused.msg
    assert lot.refusal(replace(big, user="ann")) is None


def test_letters_that_take_more_memory_weigh_more() -> None:
    assert size_of(spec(code="x" * MIB + "\N{GRINNING FACE}")) > 4 * MIB


def test_any_number_may_ask_for_the_same_and_few_for_something_else() -> None:
    weights = Weights()
    for n in range(3):
        weights.change(None, job(f"w{n}", spec(cpu=1000 + n)))
    lot = scales(weights)
    assert [lot.refusal(spec(cpu=1001)) for _ in range(100)] == [None] * 100
    refused = lot.refusal(spec(cpu=5000))
    assert refused is not None
    assert "3 different sizes" in refused.msg
    assert lot.refusal(spec(cpu=5000, user="ann")) is None
    weights.change(job("w0", spec(cpu=1000)), job("w0", spec(cpu=1000), Phase.RUNNING))
    assert scales(weights).refusal(spec(cpu=5000)) is None  # one of them has started


Story = Sequence[tuple[str, Phase | None]]


@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", "c", "d"]), st.none() | st.sampled_from(sorted(Phase))),
        max_size=40,
    )
)
def test_whatever_happens_to_jobs_what_is_counted_is_what_is_there(story: Story) -> None:
    weights = Weights()
    there: dict[str, Job] = {}
    specs = {"a": spec(), "b": spec(code="y" * 99), "c": spec(cpu=5), "d": spec(user="ann")}
    for uid, phase in story:
        now = None if phase is None else job(uid, specs[uid], phase)
        weights.change(there.get(uid), now)
        if now is None:
            there.pop(uid, None)
        else:
            there[uid] = now
    for user in ("bob", "ann"):
        mine = [j for j in there.values() if j.spec.user == user]
        assert weights.bytes_of(user) == sum(size_of(j.spec) for j in mine)
        assert weights.kinds_of(user) == {kind_of(j.spec) for j in mine if j.phase not in HOLDING}


def test_a_waiting_job_can_change_its_request() -> None:
    weights = Weights()
    before = job("a", spec())
    changed = replace(before, spec=spec(priority="high"))
    weights.change(None, before)
    weights.change(before, changed)
    assert weights.kinds_of("bob") == {kind_of(changed.spec)}
    weights.change(changed, None)
    assert not weights.kinds_of("bob")
