"""The picture of a run: readable for three jobs and for thousands, and always well-formed."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlp_hub.simulate.engine import Simulation
from mlp_hub.simulate.gantt import (
    CHART,
    LEFT,
    MOST_ROWS,
    WIDTH,
    Gantt,
    _average,
    _free,
    _Scale,
    _step,
    _tick,
)
from mlp_hub.simulate.scenario_reader import read_value

SVG = "{http://www.w3.org/2000/svg}"


def drawn(**scenario: Any) -> str:
    s = read_value({"version": 1, **scenario})
    chart = Gantt(s, "three jobs & a <title>")
    for _ in Simulation(s, recorder=chart).lines():
        pass
    return chart.svg()


def few(**more: Any) -> str:
    return drawn(
        **{
            "nodes": [{"name": "n", "count": 2, "cpu": 4}],
            "tenants": [{"name": "red"}, {"name": "Yellow & <blue>"}],
            "jobs": [
                {"name": "a", "tenant": "red", "workers": 4, "duration": 100},
                {"name": "long one", "tenant": "red", "workers": 2, "duration": 300},
                {"name": "c", "tenant": "Yellow & <blue>", "workers": 2, "duration": 50},
            ],
            **more,
        }
    )


def titles(svg: str) -> list[str]:
    return [e.text or "" for e in ET.fromstring(svg).iter(f"{SVG}title")]  # noqa: S314 - made here


def test_few_jobs_are_bars_with_their_names() -> None:
    svg = few()
    texts = [e.text for e in ET.fromstring(svg).iter(f"{SVG}text")]  # noqa: S314 - made here
    assert {"three jobs & a <title>", "n-0", "n-1", "long one", "red", "Yellow & <blue>"} <= set(texts)
    assert any(
        t.startswith("long one of red: 2 ranks on n-") and t.endswith("from 0 s to 300 s")
        for t in titles(svg)
    )


def test_the_same_run_gives_the_same_picture() -> None:
    assert few() == few()


def test_colours_follow_the_theme_of_the_reader() -> None:
    assert "@media (prefers-color-scheme:dark)" in few()


def test_a_node_that_was_down_is_marked() -> None:
    svg = few(
        events=[
            {"at": 120, "node_down": "n-1"},
            {"at": 150, "node_up": "n-1"},
            {"at": 160, "node_down": "n-0"},
        ]
    )
    assert "n-1 down from 120 s to 150 s" in titles(svg)
    assert any(t.startswith("n-0 down from 160 s to") for t in titles(svg))


@pytest.mark.parametrize("events", [[], [{"at": 0, "cancel": "a"}]])
def test_a_run_without_any_bar_is_a_picture_too(events: list[Any]) -> None:
    jobs = [{"name": "a", "tenant": "red"}] if events else []
    assert ET.fromstring(few(jobs=jobs, events=events)).tag == f"{SVG}svg"  # noqa: S314 - made here
    assert ET.fromstring(drawn(nodes=[], tenants=[], jobs=[])).tag == f"{SVG}svg"  # noqa: S314 - made here


def test_thousands_of_jobs_make_a_small_picture() -> None:
    svg = drawn(
        nodes=[{"name": "n", "count": 150, "cpu": 4}],
        tenants=[{"name": f"t{i}", "weight": 1} for i in range(12)],
        jobs=[
            {"name": f"j{i}", "tenant": f"t{i}", "count": 250, "every": 2 + i, "duration": 9, "workers": 2 + i % 3}
            for i in range(12)
        ],
        policy={"placement": "spread"},
    )  # fmt: skip
    root = ET.fromstring(svg)  # noqa: S314 - made here
    assert len(svg) < 1_500_000
    rows = [e for e in root.iter(f"{SVG}rect") if e.get("class") == "row"]
    assert len(rows) <= MOST_ROWS + 1
    assert any(e.text == "4 other tenants" for e in root.iter(f"{SVG}text"))


def test_jobs_below_a_pixel_are_drawn_together_and_counted() -> None:
    svg = drawn(
        nodes=[{"name": "n", "cpu": 4}],
        tenants=[{"name": "red"}],
        jobs=[
            {"name": "a", "count": 50, "every": 1, "duration": 1},
            {"name": "z", "submit": 9000, "duration": 1000},
        ],
    )
    assert any(re.match(r"\d+ short jobs of red", t) for t in titles(svg))
    assert svg.count("<rect") < 20


def test_a_row_with_very_many_jobs_shows_shares() -> None:
    svg = drawn(
        nodes=[{"name": "n", "cpu": 4}], tenants=[{"name": "red"}], jobs=[{"name": "a", "count": 900, "duration": 1, "workers": 2}]
    )  # fmt: skip
    assert "red on n: 900 times, 100.0% of all on average" in titles(svg)


def test_everything_lies_within_the_picture() -> None:
    root = ET.fromstring(few())  # noqa: S314 - made here
    height = float(root.get("viewBox", "").split()[3])
    for rect in root.iter(f"{SVG}rect"):
        x, y, w, h = (float(rect.get(k, 0)) for k in ("x", "y", "width", "height"))
        assert x >= 0
        assert x + w <= WIDTH
        assert y >= 0
        assert y + h <= height


SPANS = st.lists(
    st.tuples(st.floats(0, 100), st.floats(0, 100), st.floats(0, 10)).map(
        lambda t: (min(t[:2]), max(t[:2]), t[2])
    )
)


@given(SPANS)
def test_averages_hold_what_the_spans_hold(spans: list[tuple[float, float, float]]) -> None:
    scale = _Scale(0.0, 100.0)
    average = _average(spans, scale)
    held = sum((e - s) * a for s, e, a in spans)
    assert sum(average) * 100.0 / len(average) == pytest.approx(held, rel=1e-6, abs=1e-3)
    assert LEFT <= scale.x(50.0) <= LEFT + CHART


def test_a_share_of_a_row_is_split_where_no_gap_holds_it_whole() -> None:
    assert _free([], 0.5) == [(0.0, 0.5)]
    assert _free([(9.0, 0.0, 0.25)], 0.5) == [(0.25, 0.75)]
    assert _free([(9.0, 0.25, 0.75)], 0.5) == [(0.0, 0.25), (0.75, 1.0)]
    assert _free([(9.0, 0.0, 1.0)], 0.5) == [(0.0, 0.5)]


@pytest.mark.parametrize(
    ("least", "step"),
    [(0.0003, 0.0005), (1.0, 1), (5.1, 10), (47.5, 50), (55, 60), (950, 1200), (86400, 86400), (100_000, 172_800), (9e6, 17_280_000)],
)  # fmt: skip
def test_the_axis_has_round_times(least: float, step: float) -> None:
    assert _step(least) == pytest.approx(step)


@pytest.mark.parametrize(
    ("duration", "ticks"),
    [
        (300, ["0 s", "50 s", "100 s"]),
        (6000, ["0 min", "20 min", "40 min"]),
        (40_000, ["0 h", "2 h", "4 h"]),
        (7 * 86_400, ["0 d", "2 d", "4 d"]),
    ],
)
def test_an_axis_has_one_unit_fit_for_its_length(duration: int, ticks: list[str]) -> None:
    only = {"name": "a", "tenant": "red", "duration": duration}
    axis = re.findall(r'text-anchor="middle" data-t="[^"]+">([\d.]+ (?:s|min|h|d))<', few(jobs=[only]))
    assert axis[:3] == ticks


def test_a_late_start_uses_large_units_and_each_tick_has_its_seconds() -> None:
    assert [_tick(t, 300.0) for t in (0.0, 300.0, 7200.0, 85_500.0)] == [
        "0 min",
        "5 min",
        "2 h",
        "23 h 45 min",
    ]
    assert [_tick(t, 3600.0) for t in (3600.0, 90_000.0, 604_800.0)] == ["1 h", "25 h", "7 d"]
    assert [_tick(t, 20.0) for t in (40.0, 140.0)] == ["40 s", "2 min 20 s"]
    assert [_tick(t, 0.5) for t in (0.5, 200.5)] == ["0.5 s", "200.5 s"]
    assert [_tick(t, 172_800.0) for t in (0.0, 345_600.0)] == ["0 d", "4 d"]
    ticks = re.findall(r'data-t="([^"]+)">([^<]+)<', few())
    assert ticks[:4] == [("0", "0 s"), ("50", "50 s"), ("100", "100 s"), ("150", "2 min 30 s")]
