"""Which runs a line means, which value of a metric is best, and how curves are thinned out."""

from __future__ import annotations

import math
from array import array

import pytest

from mlp_hub.domain.errors import Refused
from mlp_hub.domain.jobs.run import MOST_METRICS, MetricSummary, low_is_best, scalars, summed
from mlp_hub.domain.jobs.runquery import LONGEST_QUERY, RunOrder, Term, parse, parse_order
from mlp_hub.service.runs.curves import CurveMaker, thinned


def test_a_line_is_read_into_terms_that_must_all_hold() -> None:
    assert parse('lr<0.1 best.accuracy>=0.9 tag=baseline duration>5m "two words" param.opt!="ad am"') == (
        Term("any", "lr", "<", "0.1", 0.1),
        Term("best", "accuracy", ">=", "0.9", 0.9),
        Term("tag", "", "=", "baseline", None),
        Term("duration", "", ">", "5m", 300.0),
        Term("words", "", "=", "two words", None),
        Term("param", "opt", "!=", "ad am", None),
    )
    assert parse("") == parse("   ") == ()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("lr < 0.1", "write no spaces around"),
        ("lr<", "compares with nothing"),
        ("lr<high", "which is not a number; write lr<0.1"),
        ("lr<nan", "which is not a number"),
        ("lr<inf", "which is not a number"),
        ("lr<" + "9" * 400, "which is not a number"),
        ("name~dig.*", "regular expressions are not supported"),
        ("name=~(a+)+$", "regular expressions are not supported"),
        ("tag<x", "a text can only be compared by = or !="),
        ('"lr', "has no closing"),
        ("x " * 21, "has 21 conditions; at most 20"),
        ("x" * (LONGEST_QUERY + 1), "at most 1000"),
    ],
)
def test_an_unreadable_query_is_refused_with_a_valid_form(line: str, says: str) -> None:
    with pytest.raises(Refused) as caught:
        parse(line)
    assert says in str(caught.value)


def test_an_order_names_a_column_and_a_direction() -> None:
    assert parse_order("-best.loss") == RunOrder("best", "loss", down=True)
    assert parse_order("lr") == RunOrder("any", "lr", down=False)
    assert parse_order("submitted") == RunOrder("submitted", "", down=False)
    for wrong in ("-", "tag", "-sweep"):
        with pytest.raises(Refused):
            parse_order(wrong)


def test_the_best_of_a_loss_is_its_lowest_and_of_others_their_highest() -> None:
    assert [low_is_best(n) for n in ("val_loss", "RMSE", "test/error", "accuracy", "closs", "f1")] == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]
    points = [(0, {"loss": 3, "acc": 0.1}), (0, {"loss": 1.0, "acc": 0.9}), (0, {"loss": 2.0, "acc": 0.8})]
    found = summed({}, points)
    assert found == {"loss": MetricSummary(0, 2.0, 1.0, 3.0), "acc": MetricSummary(0, 0.8, 0.1, 0.9)}
    assert (found["loss"].best("loss"), found["acc"].best("acc")) == (1.0, 0.9)
    assert summed(summed({}, points[:1]), points[1:]) == found, "it goes on where it was left"


def test_a_run_that_reports_nonsense_has_no_last_value_and_keeps_its_best() -> None:
    found = summed({}, [(0, {"loss": 1.0}), (0, {"loss": math.nan}), (0, {"loss": math.inf})])
    assert found["loss"] == MetricSummary(0, None, 1.0, 1.0)


def test_only_the_lowest_rank_counts_and_metrics_are_bounded() -> None:
    found = summed({}, [(2, {"loss": 1.0}), (0, {"loss": 5.0}), (1, {"loss": 0.0})])
    assert found["loss"] == MetricSummary(0, 5.0, 5.0, 5.0)
    many = summed({}, [(0, {f"m{n}": 1.0 for n in range(500)}), (0, {"x" * 101: 1.0})])
    assert len(many) == MOST_METRICS


def test_parameters_are_single_values() -> None:
    said = {
        "lr": 0.1,
        "deep": True,
        "layers": [1, 2],
        "opt": "x" * 5000,
        "nan": math.nan,
        "": 1,
        "n" * 101: 1,
        "seed": 2**63,
        "long": 10**5000,
    }
    found = scalars(said)
    assert found.pop("seed") == "0x8000000000000000", "a number that no column holds is text"
    assert len(str(found.pop("long"))) == 1000
    assert found == {"lr": 0.1, "deep": True, "opt": "x" * 1000}


def test_a_thinned_curve_keeps_its_ends_and_its_extremes() -> None:
    x = array("d", range(10_000))
    y = array("d", (math.sin(i / 100) for i in range(10_000)))
    y[4321], y[1234] = 50.0, -50.0
    xs, ys = thinned(x, y, 500)
    assert len(xs) <= 500
    assert (xs[0], xs[-1]) == (0.0, 9999.0)
    assert 50.0 in ys
    assert -50.0 in ys
    assert list(xs) == sorted(xs)
    assert thinned(x, y, 10_000) == (x, y)


def test_curves_are_by_step_epoch_or_time_and_of_the_lowest_rank() -> None:
    points = [(1, 100.0, {"step": 0, "loss": 9.0})]
    points += [(0, 100.0 + i, {"step": i * 10, "epoch": i // 2, "loss": 1.0 / (i + 1)}) for i in range(6)]

    def made(by: str, **more: float) -> list[float]:
        maker = CurveMaker(by, None, more.get("low"), more.get("high"))  # type: ignore[arg-type]
        maker.add(points)
        (curve,) = maker.curves(100)
        assert (curve.metric, curve.rank) == ("loss", 0)
        return curve.x

    assert made("step") == [0, 10, 20, 30, 40, 50]
    assert made("epoch") == [0, 0, 1, 1, 2, 2]
    assert made("time") == [0, 1, 2, 3, 4, 5]
    assert made("step", low=10, high=30) == [10, 20, 30]


def test_a_run_that_went_on_from_a_checkpoint_has_its_curve_in_order() -> None:
    maker = CurveMaker("step", None, None, None)
    maker.add(
        (0, float(i), {"step": step, "loss": 1.0, "x": math.nan}) for i, step in enumerate([0, 1, 2, 1, 2, 3])
    )
    curves = {c.metric: c for c in maker.curves(100)}
    assert curves["loss"].x == [0, 1, 1, 2, 2, 3]
    assert curves["x"].y == [None] * 6


def test_team_is_the_word_of_pages_for_the_field_tenant() -> None:
    assert parse("team=red") == parse("tenant=red")
    assert parse("param.team=red")[0].name == "team"
