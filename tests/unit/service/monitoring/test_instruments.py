"""Counters and histograms: bounded, without names of tenants that are gone, and deaf to nonsense."""

from __future__ import annotations

import pytest

from mlp_hub.service.monitoring import instruments
from mlp_hub.service.monitoring import table as t
from mlp_hub.service.monitoring.exposition import Exposition
from mlp_hub.service.monitoring.instruments import CountedMetric, ObservedMetric
from mlp_hub.service.monitoring.service import wants_open_metrics


def test_a_histogram_counts_each_value_in_its_bucket() -> None:
    one = ObservedMetric(t.TENANT_REQUEST_S)
    for value in (0.01, 0.25, 0.26, 4.0, 5.5):
        one.observe(value, "red")
    ((labels, (counts, total)),) = one.samples()
    assert labels == ("red",)
    assert counts == [2, 1, 2]
    assert total == pytest.approx(10.02)


def test_a_value_that_is_not_a_number_does_not_spoil_the_sum() -> None:
    one = ObservedMetric(t.POINTS_DELAY)
    for value in (float("nan"), float("inf"), float("-inf"), -5.0, 1.0):
        one.observe(value)
    ((_, (counts, total)),) = one.samples()
    assert sum(counts) == 2
    assert total == 1.0


def test_series_are_bounded_and_nothing_is_uncounted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instruments, "MOST_SERIES", 3)
    counted, observed = CountedMetric(t.SUBMITTED), ObservedMetric(t.TENANT_WAIT)
    for number in range(100):
        counted.add(f"t{number}")
        observed.observe(1.0, f"t{number}")
        counted.begin(f"u{number}")
    assert len(counted.samples()) == len(observed.samples()) == 4
    assert sum(value for _, value in counted.samples()) == 100
    assert sum(sum(counts) for _, (counts, _) in observed.samples()) == 100


def test_a_tenant_that_is_gone_is_shown_no_more() -> None:
    counted, of_nobody = CountedMetric(t.ENDED), CountedMetric(t.FAILED)
    for tenant in ("red", "blue"):
        counted.add(tenant, "failed")
    of_nobody.add("signal")
    counted.keep({"red"})
    of_nobody.keep({"red"})
    assert [labels for labels, _ in counted.samples()] == [("red", "failed")]
    assert [labels for labels, _ in of_nobody.samples()] == [("signal",)]


@pytest.mark.parametrize(
    ("accept", "open_metrics"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain", False),
        ("application/openmetrics-text", True),
        ("application/openmetrics-text; version=1.0.0; charset=utf-8", True),
        ("application/openmetrics-text;version=0.0.1", False),
        ("application/openmetrics-text;version=1.0.0;q=0.2,text/plain;version=0.0.4;q=0.3", False),
        ("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1", True),
        ("application/openmetrics-text;q=0", False),
        ("application/openmetrics-text;q=nonsense", False),
        ("application/openmetrics-text;version=x;=;q=1,text/plain;version", False),
    ],
)
def test_the_format_is_the_one_that_is_asked_for(accept: str, open_metrics: bool) -> None:
    assert wants_open_metrics(accept) is open_metrics


@pytest.mark.parametrize("open_metrics", [False, True])
def test_hostile_labels_are_escaped(open_metrics: bool) -> None:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_parser
    from prometheus_client.parser import text_string_to_metric_families as plain_parser

    names = ['a"} 1\nmlp_up 0', "\\", 'back\\"slash', "new\nline", "日本語", "{}", "\u202e", ""]
    rows = [(t.HELD, [((name, "cpu"), 1.0) for name in names])]
    text, _ = Exposition().render(rows, open_metrics=open_metrics)
    parse = open_parser if open_metrics else plain_parser
    families = {family.name: family for family in parse(text.decode())}
    assert [sample.labels["tenant"] for sample in families["mlp_tenant_held"].samples] == names
    assert "mlp_up" not in families
