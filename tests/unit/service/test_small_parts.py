"""Broker, uids, tokens, usage, sentences and spool files."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlp_hub.domain.jobs.job import Cause, Failure
from mlp_hub.executors.shared_volume import spool
from mlp_hub.scheduler.fairness.usage import UsageMeter
from mlp_hub.service.lifecycle.job_tokens import digest, make_token
from mlp_hub.service.lifecycle.messages import behind, ended, ranks_on
from mlp_hub.service.metrics.service import _renumbered
from mlp_hub.service.state.bus import RESYNC, Bus, job_topic
from mlp_hub.service.support.uids import UidMaker


async def test_a_subscriber_gets_its_topic_only_and_in_order() -> None:
    broker = Bus()
    with broker.subscribe(job_topic("a")) as news:
        for i in range(3):
            broker.publish(job_topic("a"), i)
            broker.publish(job_topic("b"), "other")
        assert [await anext(news) for _ in range(3)] == [0, 1, 2]
        assert broker.watched(job_topic("a"))
    assert not broker.watched(job_topic("a"))


async def test_a_slow_subscriber_is_told_to_read_again_and_holds_up_nobody() -> None:
    broker = Bus()
    slow, fast = broker.subscribe(("t",), limit=3), broker.subscribe(("t",), limit=10)
    for i in range(5):
        broker.publish(("t",), i)
    assert [await anext(slow) for _ in range(2)] == [RESYNC, 4]
    assert [await anext(fast) for _ in range(5)] == [0, 1, 2, 3, 4]
    broker.close()
    assert [m async for m in slow] == []


def test_uids_sort_by_submission_also_within_a_millisecond() -> None:
    maker = UidMaker()
    made = [maker.make(1000.0 + i / 10_000) for i in range(100)] + [maker.make(2000.0)]
    assert made == sorted(made)
    assert len(set(made)) == 101
    assert {len(uid) for uid in made} == {26}


def test_a_token_is_stored_as_its_digest_only() -> None:
    a, b = make_token(), make_token()
    assert a.secret != b.secret
    assert a.sha256 == digest(a.secret)
    assert len(a.sha256) == 64


def test_a_constant_share_adds_up_to_its_mean_life() -> None:
    meter = UsageMeter(half_life_s=100.0)
    meter.set_share("red", 0.5, 0.0)
    assert meter.value("red", 0.0) == 0.0
    assert meter.value("red", 100.0) == pytest.approx(0.5 * 0.5 * 100 / math.log(2))
    assert meter.value("red", 1e5) == pytest.approx(0.5 * 100 / math.log(2))
    meter.set_share("red", 0.0, 100.0)
    assert meter.value("red", 200.0) == pytest.approx(meter.value("red", 100.0) / 2)


@given(st.lists(st.floats(0.1, 500), min_size=1, max_size=8))
def test_usage_does_not_depend_on_how_often_it_is_measured(spans: list[float]) -> None:
    often, once = UsageMeter(50.0), UsageMeter(50.0)
    often.set_share("a", 0.25, 0.0)
    once.set_share("a", 0.25, 0.0)
    now = 0.0
    for i, span in enumerate(spans):
        now += span
        often.set_share("a", 0.25, now)
        often.set_share("b", i / 10, now)
    assert often.value("a", now) == pytest.approx(once.value("a", now))


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (Failure(Cause.PROGRAM_ERROR, rank=1, exit_code=3), "rank 1 failed with exit code 3"),
        (Failure(Cause.SIGNAL, rank=0, signal=9), "rank 0 was killed by signal 9 (SIGKILL)"),
        (Failure(Cause.OUT_OF_MEMORY, rank=2), "rank 2 ran out of memory"),
        (Failure(Cause.TIME_LIMIT, message="ran longer than 5 s"), "ran longer than 5 s"),
        (Failure(Cause.NODE_LOST), "the job ended: node-lost"),
    ],
)
def test_failures_are_told_in_sentences(failure: Failure, text: str) -> None:
    assert str(ended(failure)) == text


def test_places_are_told_in_sentences() -> None:
    assert str(ranks_on(("a",))) == "on node a"
    assert str(ranks_on(("a", "a", "b"))) == "on nodes a (2), b (1)"
    assert [str(behind(n)) for n in (1, 2, 4)] == [
        "first in its queue",
        "queued behind 1 job",
        "queued behind 3 jobs",
    ]


def test_a_spool_file_is_read_from_a_number_on_and_torn_lines_are_left_out(tmp_path: Path) -> None:
    directory = tmp_path / "metrics"
    directory.mkdir()
    lines = [
        '{"n":1,"t":1,"v":{"a":1}}',
        '{"n":2,"t":2,"v":{"a":NaN}}',
        '{"n":3,"t":',
        '{"n":4,"t":4,"v":{"a":null}}',
    ]
    (directory / "0.0.x.jsonl").write_text("\n".join(lines) + "\n" + '{"n":5,"t":5,"v"')
    (directory / "notes.txt").write_text("no spool file")
    assert spool.sources(tmp_path) == ["0.0.x"]
    points = [p for part in spool.read(tmp_path, "0.0.x", 1) for p in part]
    assert [p.n for p in points] == [2, 4]
    assert all(math.isnan(p.v["a"]) for p in points)
    assert [p.n for p in _renumbered(points, 1)] == [2, 3]
    assert spool.sources(tmp_path / "nowhere") == []
    assert list(spool.read(tmp_path, "0.0.gone", 0)) == []
