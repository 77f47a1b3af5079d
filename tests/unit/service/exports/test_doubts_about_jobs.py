"""Jobs that a target does not take: when they are tried again, when their points are dropped, and how large requests are."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

from mlp_hub.point_targets import KINDS
from mlp_hub.service.exports import doubts
from mlp_hub.service.exports.doubts import ExportDoubts
from mlp_hub.service.exports.parts import points_of
from mlp_hub.service.exports.sizes import LEAST_VALUES, PROBES, RequestSizes
from mlp_hub.settings import Settings

FIRST_S, MOST_S = 1.0, 8.0


def test_a_job_that_fails_is_tried_with_growing_waits_and_its_points_are_dropped_at_last() -> None:
    made = ExportDoubts(FIRST_S, MOST_S)
    waits = []
    for _ in range(doubts.MOST_FAULTS):
        waits.append(made.failed("a"))
        made.taken(["b"])
    assert waits == [1, 2, 4, 8, 8, None]
    made.dropped("a")
    assert made.failed("a") == 1, "its next points begin again"
    made.failed("a")
    made.forget("a")
    assert made.failed("a") == 1
    assert not made, "a fault is known to be this job's"


def test_faults_of_a_target_that_takes_nothing_drop_no_points() -> None:
    made = ExportDoubts(FIRST_S, MOST_S)
    assert not made.is_doubtful("a")
    waits = [made.failed(uid) for _ in range(5 * doubts.MOST_FAULTS) for uid in "ab"]
    assert waits[:8] == [1, 1, 2, 2, 4, 4, 8, 8]
    assert set(waits[8:]) == {MOST_S}
    assert made.is_doubtful("a")
    made.taken(["b"])
    assert not made.is_doubtful("a")
    made.not_taken("c")
    list(made.others_taken())
    made.not_taken("c")
    assert made.failed("a") == MOST_S
    assert list(made.others_taken()) == [], "a fault is not a proof that the target takes others"


def test_a_job_is_put_aside_only_if_the_target_takes_others() -> None:
    made = ExportDoubts(FIRST_S, MOST_S)
    for _ in range(3 * doubts.MOST_DOUBTS):
        assert not made.not_taken("a"), "the target may be away"
    assert made
    made.taken(["c"])
    assert list(made.others_taken()) == [("a", 1.0)]
    assert not made
    assert list(made.others_taken()) == []
    made.not_taken("b")
    made.not_taken("a")
    made.taken(["c"])
    assert list(made.others_taken()) == [("b", 1.0), ("a", 2.0)]


def test_points_of_a_job_that_others_passed_often_are_dropped_until_the_target_takes_some() -> None:
    made = ExportDoubts(FIRST_S, MOST_S)
    waits = []
    while not made.not_taken("a"):
        made.taken(["b"])
        waits += [wait for _, wait in made.others_taken()]
    assert (len(waits), max(waits)) == (doubts.MOST_DOUBTS, 2.0 ** (doubts.MOST_DOUBTS - 1))
    made.dropped("a")
    assert made.not_taken("a"), "the next ones at once"
    made.forget("a")
    assert not made.not_taken("a")


def test_requests_have_one_job_after_a_failure_and_grow_again() -> None:
    sizes = RequestSizes(KINDS["otlp"])
    assert (sizes.jobs, sizes.abreast(doubts=False), sizes.abreast(doubts=True)) == (50, 1, PROBES)
    sizes.answered(all_taken=False)
    grown = []
    for _ in range(7):
        grown.append(sizes.jobs)
        sizes.answered(all_taken=True)
    assert grown == [1, 2, 4, 8, 16, 32, 50]


def test_requests_that_are_too_large_shrink_to_one_point_of_any_size() -> None:
    sizes = RequestSizes(KINDS["mlflow"])
    seen = [sizes.values]
    while sizes.too_large():
        seen.append(sizes.values)
    assert seen == [1000, 500, 250, 125, LEAST_VALUES]
    for _ in range(20):
        sizes.taken()
    assert sizes.values == KINDS["mlflow"].values


@pytest.mark.parametrize(
    ("values", "points"), [(0, 0), (1, 1), (5, 1), (6, 2), (8, 2), (9, 3), (10, 4), (11, 4), (10**9, 4)]
)
def test_left_out_values_are_at_least_so_many_points(values: int, points: int) -> None:
    """Points have 5, 3, 1 and 1 values, of two jobs."""
    parts: Any = [_part(1, 5), _part(3, 1)]
    assert points_of(parts, values) == points


def _part(*sizes: int) -> Any:
    return SimpleNamespace(
        points=[SimpleNamespace(values=dict.fromkeys(map(str, range(n)), 1.0)) for n in sizes]
    )


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_each_kind_of_target_has_its_settings_and_what_sends_to_it(kind: Any) -> None:
    settings = Settings.load({"MLP_HOME": "/nowhere"})
    assert (getattr(settings, kind.address), getattr(settings, kind.tenants)) == ("", ())
    assert getattr(settings, kind.secrets) is None
    module = import_module(kind.sends)
    assert callable(module.prepare)
    assert callable(module.send)
