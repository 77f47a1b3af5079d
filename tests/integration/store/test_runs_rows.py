"""Runs are searched and sorted by what they were and became, on both databases."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlp_hub.domain.errors import Refused
from mlp_hub.domain.jobs.job import Job, JobSpec, Phase, Target, Trial
from mlp_hub.domain.jobs.run import MetricSummary, Origin, RunSummary, UsedDataset
from mlp_hub.domain.jobs.runquery import parse, parse_order
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.tenants.tenant_context import SYSTEM, TenantContext
from mlp_hub.service.sweeps.next_action import core_s
from mlp_hub.store import Database
from mlp_hub.store.repos.jobs.runs import sha256_of


def uid(number: int) -> str:
    return f"{number:026d}"


def job(number: int, user: str = "ann", phase: Phase = Phase.FINISHED, name: str = "") -> Job:
    spec = JobSpec(name or f"j{number}", user, "red", "plain", Resources(cpu=1000, ram=512), code="x")
    made = Job(uid(number), spec, phase, Target.RUN, submitted_at=float(number), started_at=10.0)
    return replace(made, finished_at=10.0 + number) if phase is Phase.FINISHED else made


@pytest.fixture
def filled(db: Database) -> Database:
    """Four runs of ann and one of bob."""
    with db.begin() as tx:
        for number in range(1, 5):
            made = job(number, phase=Phase.RUNNING if number == 4 else Phase.FINISHED)
            note = 'the <script>alert(1)</script> "one"' if number == 1 else ""
            tx.jobs.insert(replace(made, note=note))
            tx.runs.put_params(
                uid(number),
                {"lr": 10.0**-number, "opt": "adam" if number < 3 else "sgd", "deep": number == 1},
            )
            loss = MetricSummary(0, number / 10, number / 20, 9.0)
            tx.runs.put_summary(
                uid(number), RunSummary(7, number < 4, number * 60.0, 1.5, 100 * number, {"loss": loss})
            )
        tx.jobs.insert(job(5, "bob"))
        tx.jobs.insert(job(6, name="app~web-1"))
        tx.runs.set_tags(uid(1), ["baseline", "x%"])
        tx.runs.set_tags(uid(2), ["x_"])
        tx.runs.put_trial(uid(3), Trial("s", "search-lr", 7))
    return db


def found(
    db: Database,
    line: str = "",
    sort: str = "submitted",
    user: str | None = "ann",
    tenant: str | None = None,
    context: TenantContext = SYSTEM,
) -> list[int]:
    with db.reading() as tx:
        uids = tx.runs.search(
            context,
            user=user,
            tenant=tenant,
            terms=parse(line),
            order=parse_order(sort),
            now=1000.0,
            most=100,
        )
    return [int(u) for u in uids]


SEARCHES = [
    ("", [1, 2, 3, 4]),
    ("lr<0.005", [3, 4]),
    ("lr>=0.01", [1, 2]),
    ("lr=0.001", [3]),
    ("param.lr<1 loss<=0.2", [1, 2]),
    ("metric.lr<1", []),
    ("best.loss<0.11", [1, 2]),
    ("opt=adam", [1, 2]),
    ("opt!=adam", [3, 4]),
    ("deep=true", [1]),
    ("tag=baseline", [1]),
    ("tag!=baseline", [2, 3, 4]),
    ("tag=x%", [1]),
    ("tag=x_", [2]),
    ("tag=x*", [1, 2]),
    ("state=running", [4]),
    ("state!=running", [1, 2, 3]),
    ("state=finished", [1, 2, 3]),
    ("name=j*", [1, 2, 3, 4]),
    ("name=j2", [2]),
    ("name=_2", []),
    ("script", [1]),
    ("note=SCRIPT", [1]),
    ("BASELINE", [1]),
    ("%", [1]),
    ("duration>2m", [3, 4]),
    ("core_hours>=0.05", [3, 4]),
    ("core_hours<0.02", [1]),
    ("ram_peak>=300", [3, 4]),
    ("run=1", [1, 2, 3, 4]),
    ("sweep=search-*", [3]),
    ("nothing<1", []),
    ("'; DROP TABLE job; --", []),
]


def test_a_search_finds_the_runs_for_which_all_terms_hold(filled: Database) -> None:
    for line, runs in SEARCHES:
        assert found(filled, line) == runs, line


ORDERS = [
    ("-submitted", [4, 3, 2, 1]),
    ("lr", [4, 3, 2, 1]),
    ("-lr", [1, 2, 3, 4]),
    ("opt", [2, 1, 4, 3]),
    ("loss", [1, 2, 3, 4]),
    ("-best.loss", [4, 3, 2, 1]),
    ("duration", [1, 2, 3, 4]),
    ("-ram_peak", [4, 3, 2, 1]),
    ("-core_hours", [4, 3, 2, 1]),
    ("-name", [4, 3, 2, 1]),
    ("note", [1, 4, 3, 2]),
    ("-finished", [3, 2, 1, 4]),
    ("-nothing", [4, 3, 2, 1]),
]


def test_runs_are_sorted_by_any_column_and_who_has_none_comes_last(filled: Database) -> None:
    for sort, runs in ORDERS:
        assert found(filled, sort=sort) == runs, sort


def test_a_tenants_runs_are_of_all_its_members_without_apps(filled: Database) -> None:
    assert found(filled, user=None, tenant="red") == [1, 2, 3, 4, 5]
    assert found(filled, user=None, tenant="blue") == []
    assert found(filled, "user=bob", user=None, tenant="red") == [5]


def test_nothing_is_found_but_what_is_within(filled: Database) -> None:
    ann, leads = TenantContext("ann"), TenantContext("rita", frozenset({"red"}))
    assert found(filled, user=None, tenant="red", context=ann) == [1, 2, 3, 4]
    assert found(filled, user=None, tenant="red", context=leads) == [1, 2, 3, 4, 5]
    assert found(filled, context=TenantContext("bob", frozenset({"blue"}))) == []
    with filled.reading() as tx:
        assert [row.uid for row in tx.runs.rows(ann, [uid(1), uid(5)], 1000.0)] == [uid(1)]


def test_a_state_that_is_none_is_refused_with_those_there_are(filled: Database) -> None:
    with pytest.raises(Refused, match=r"state sunny does not exist; choose one of .*running"):
        found(filled, "state=sunny")


def test_a_row_tells_all_and_goes_with_its_job(filled: Database) -> None:
    with filled.begin() as tx:
        texts = ("numpy==2.0\n", "print(1)")
        environment, program = map(sha256_of, texts)
        data = (UsedDataset("ann", "digits", uid(9), 5),)
        for number in (1, 2):
            tx.runs.put_origin(uid(number), Origin("a" * 40, True, environment, program, data), texts)
    with filled.reading() as tx:
        one, trial = tx.runs.rows(SYSTEM, [uid(1), uid(99), uid(3)], 1000.0)
        assert (one.tags, one.commit, one.dirty, one.environment) == (
            ("baseline", "x%"),
            "a" * 40,
            True,
            environment,
        )
        assert one.params == {"lr": 0.1, "opt": "adam", "deep": True}
        assert one.metrics == {"loss": MetricSummary(0, 0.1, 0.05, 9.0)}
        assert (trial.trial, trial.tags) == (("search-lr", 7), ())
        assert tx.runs.origin(uid(1)).data == data
        assert tx.runs.text(environment) == texts[0]
        assert tx.runs.names([uid(1), uid(3)]) == {"param": ["deep", "lr", "opt"], "metric": ["loss"]}
        assert tx.ended.measure([uid(1)])[0].bytes > tx.ended.measure([uid(3)])[0].bytes
    with filled.begin() as tx:
        tx.jobs.remove(uid(1))
        assert tx.runs.delete_unused_texts(10) == 0, "another run has them too"
        tx.jobs.remove(uid(2))
        assert tx.runs.delete_unused_texts(10) == 2
        assert tx.runs.text(environment) is None
        assert tx.runs.rows(SYSTEM, [uid(1)], 1000.0) == []
        assert not tx.runs.put_summary(uid(1), RunSummary()), "it is gone"


SHAPES = [
    {"phase": Phase.QUEUED},
    {"phase": Phase.QUEUED, "ran": 50.0},  # gave way, and waits again
    {"phase": Phase.STARTING, "placement": ("n", "n", "n")},
    {"phase": Phase.RUNNING, "started_at": 900.0, "placement": ("n", "n", "n"), "ran": 50.0},
    {"phase": Phase.RUNNING, "started_at": 900.0, "placement": ("n", "n", "n", "m")},  # it grew
    {"phase": Phase.RUNNING, "started_at": 1001.0, "placement": ("n", "n", "n")},  # by another clock
    {"phase": Phase.FAILED, "started_at": 900.0, "finished_at": 960.0, "placement": ("n", "n", "n"), "ran": 50.0},
    {"phase": Phase.CANCELLED, "finished_at": 960.0, "ran": 50.0},
]  # fmt: skip


def test_core_seconds_of_runs_are_those_that_a_sweep_counts_of_its_trials(db: Database) -> None:
    spec = JobSpec(
        "j", "ann", "red", "tf", Resources(cpu=1500, ram=512), workers_min=2, workers_max=4, ps=1, code='"\0'
    )
    jobs = [
        Job(uid(n), replace(spec, name=f"j{n}"), target=Target.RUN, submitted_at=float(n), **shape)
        for n, shape in enumerate(SHAPES)
    ]
    with db.begin() as tx:
        for each in jobs:
            tx.jobs.insert(each)
    with db.reading() as tx:
        rows = tx.runs.rows(SYSTEM, [each.uid for each in jobs], 1000.0)
    took = [0, 225, 0, 675, 600, 0, 495, 225]
    assert [core_s(each, 1000.0) for each in jobs] == took
    assert [row.core_s or 0 for row in rows] == took
    assert [row.duration for row in rows] == [None, 50, None, 150, 100, 0, 110, 50]
    assert found(db, "core_hours>0.15", sort="-core_hours") == [3, 4]


def test_ended_runs_without_a_summary_are_found(filled: Database) -> None:
    with filled.begin() as tx:
        assert sorted(tx.runs.unsummed(10)) == [uid(5), uid(6)]
        tx.runs.put_summary(uid(5), RunSummary(final=True))
        tx.runs.put_summary(uid(6), RunSummary(final=False))
        assert tx.runs.unsummed(10) == [uid(6)]
        tx.runs.reopen(uid(5))
        assert len(tx.runs.unsummed(10)) == 2
        known = tx.runs.summary(uid(2))
        assert (known.seq, known.final, known.metrics["loss"].low) == (7, True, 0.1)
        tx.runs.forget_metrics(uid(2))
        assert tx.runs.summary(uid(2)).metrics == {}


def test_the_usage_of_a_tenants_jobs_is_added_up_exactly(db: Database) -> None:
    with db.begin() as tx:
        for number in (10, 20, 30):  # all from second 10 on, of one core each
            tx.jobs.insert(job(number))
        tx.jobs.insert(job(40, "bob", Phase.RUNNING))
        tx.jobs.insert(replace(job(50), finished_at=5.0, started_at=1.0))
    with db.reading() as tx:
        all_of_it = tx.runs.totals("red", 0.0, 110.0)
        assert (all_of_it.cpu_s, all_of_it.most_cpu) == (10 + 20 + 30 + 100 + 4, 4.0)
        late = tx.runs.totals("red", 35.0, 110.0)
        assert (late.cpu_s, late.most_cpu, late.most_gpu) == (5 + 75, 2.0, 0.0)
        assert tx.runs.totals("blue", 0.0, 110.0).cpu_s == 0.0
