"""The service's own evaluation of the alert rules: the same cases as Prometheus's tool gets, restarts, clocks, and bounds."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from mlp_hub.domain.notices.alert import Alert, AlertState
from mlp_hub.service.alerts.evaluator import GRACE_S, KEEP_S, MOST_OF_RULE, AlertBook
from mlp_hub.service.monitoring import table as t
from mlp_hub.service.monitoring.alert_rule import AlertRule
from mlp_hub.service.monitoring.alert_rules import RULES
from mlp_hub.service.monitoring.events import PlatformEvents
from mlp_hub.service.monitoring.history import MOST_SERIES, SAMPLES, SampleHistory, samples_of
from mlp_hub.service.monitoring.measures import FirstOf, Selected, Vector
from support.monitoring.alert_cases import CASES, CORES_OF_A_CLUSTER, FEW_FAILED, Series, samples_at

BY_NAME = {rule.name: rule for rule in RULES}
OVER, FAILURES = BY_NAME["MLPTenantOverQuota"], BY_NAME["MLPTenantJobFailuresHigh"]
RED = (("resource", "cpu"), ("tenant", "red"))


class Evaluation:
    """One rule, its numbers and its alerts, as one process has them. `wall` is the clock that people set."""

    def __init__(self, rule: AlertRule) -> None:
        self.rule = rule
        self.history, self.book = SampleHistory([rule]), AlertBook([rule])
        self.steady, self.wall = 0.0, 0.0
        self.over: list[Alert] = []

    def turn(self, samples: dict[str, Vector], seconds: float = 60.0) -> None:
        self.history.take(self.steady, self.wall, samples)
        found = {self.rule.name: self.rule.instances(self.history)}
        covered = {self.rule.name: self.history.covers(self.rule)}
        changes = self.book.evaluate(found, covered, self.steady, self.wall)
        self.book.apply(
            [*((one, one.alert) for one in changes.begun), *changes.moved],
            changes.dropped,
        )
        self.over += [new for _, new in changes.moved if new.state is AlertState.RESOLVED]
        self.steady, self.wall = self.steady + seconds, self.wall + seconds

    def restart(self) -> None:
        """Begin as a new process, with a clock of its own."""
        stored = [one.alert for one in self.book.open.values()]
        self.history, self.book = SampleHistory([self.rule]), AlertBook([self.rule])
        self.steady = 1e6
        assert not self.book.load(stored, self.steady, self.wall)

    @property
    def states(self) -> list[AlertState]:
        return [one.alert.state for one in self.book.open.values()]


def over(value: float | None) -> dict[str, Vector]:
    return {"mlp_tenant_over_limit": {} if value is None else {RED: value}}


def ended(failed: float, finished: float) -> dict[str, Vector]:
    counts = {"failed": failed, "finished": finished}
    return {
        "mlp_jobs_ended_total": {(("result", result), ("tenant", "red")): n for result, n in counts.items()}
    }


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_it_fires_and_does_not_in_the_cases_of_prometheus(rule: AlertRule) -> None:
    def firing_at(series: Series, minute: int) -> int:
        of = Evaluation(rule)
        # as Prometheus sees it: a metric without series is nothing unknown
        without: dict[str, Vector] = {name: {} for name in of.history.metrics}
        for at in range(minute + 1):
            of.turn({**without, **samples_at(series, at)})
        return of.states.count(AlertState.FIRING)

    fires, calm = CASES[rule.name]
    assert firing_at(fires, 150) == 1
    assert firing_at(fires, max(rule.for_s // 60 - 1, 0)) == 0
    assert firing_at(calm, 150) == 0


def test_processors_of_a_cluster_are_judged_by_the_cores_that_its_metrics_api_has() -> None:
    of = Evaluation(BY_NAME["MLPNodeCpuHigh"])
    for minute in range(60):
        # a cluster has the metric of times, without any series
        of.turn({"mlp_node_cpu_seconds_total": {}, **samples_at(CORES_OF_A_CLUSTER, minute)})
    ((_, labels),) = of.book.open
    assert labels == (("node", "n1"),)
    assert of.states == [AlertState.FIRING]


@pytest.mark.parametrize("name", ["MLPJobFailuresHigh", "MLPTenantJobFailuresHigh"])
def test_a_share_of_few_jobs_fires_no_alert_of_failures(name: str) -> None:
    of = Evaluation(BY_NAME[name])
    for minute in range(40):
        of.turn(samples_at(FEW_FAILED, minute))
        assert of.states == []


def test_of_two_measures_the_first_one_wins_and_an_unknown_one_makes_both_unknown() -> None:
    a, b = Selected("a"), Selected("b")
    history = SampleHistory([replace(OVER, value=FirstOf(a, b))])
    red, blue = (("node", "red"),), (("node", "blue"),)
    history.take(0.0, 0.0, {"a": {red: 1.0}, "b": {red: 2.0, blue: 3.0}})
    assert history.metrics == {"a", "b"}
    assert FirstOf(a, b).value(history) == {red: 1.0, blue: 3.0}
    assert FirstOf(a, b).promql == "(a or b)"
    for known in ("a", "b"):
        history.take(0.0, 0.0, {known: {red: 1.0}})
        assert FirstOf(a, b).value(history) is None


def test_a_certificate_that_is_over_has_less_than_no_time_left() -> None:
    history = SampleHistory([BY_NAME["MLPCertificateEnds"]])
    history.take(0.0, 5000.0, {"mlp_certificate_expiry_timestamp_seconds": {(): 4000.0}})
    assert BY_NAME["MLPCertificateEnds"].instances(history) == {(): -1000.0}
    history.take(0.0, 5000.0, {"mlp_certificate_expiry_timestamp_seconds": {}})
    assert BY_NAME["MLPCertificateEnds"].instances(history) == {}
    history.take(0.0, 5000.0, {})
    assert BY_NAME["MLPCertificateEnds"].instances(history) is None


def test_an_alert_is_pending_then_fires_and_is_over_once_its_condition_stays_away() -> None:
    of = Evaluation(OVER)
    of.turn(over(2.0))
    assert of.states == [AlertState.PENDING]
    for _ in range(5):
        of.turn(over(3.0))
    (one,) = of.book.open.values()
    assert (one.alert.state, one.alert.value, one.alert.tenant) == (AlertState.FIRING, 3.0, "red")
    assert (one.alert.since, one.alert.fired_at) == (0.0, 300.0)
    of.turn(over(None), KEEP_S / 2)  # it comes and goes
    of.turn(over(3.0), KEEP_S / 2)
    of.turn(over(None), KEEP_S)
    assert of.states == [AlertState.FIRING]
    of.turn(over(None))
    assert of.states == []
    assert [one.state for one in of.over] == [AlertState.RESOLVED]


def test_a_pending_alert_whose_condition_goes_away_was_never_there() -> None:
    of = Evaluation(OVER)
    of.turn(over(1.0))
    of.turn(over(None))
    assert of.states == []
    for _ in range(5):
        of.turn(over(1.0))
    assert of.states == [AlertState.PENDING]  # it begins from the start


@pytest.mark.parametrize("jump", [-86_400.0, 86_400.0, -1e9])
def test_a_wall_clock_that_jumps_neither_fires_nor_delays_anything(jump: float) -> None:
    of = Evaluation(OVER)
    of.wall = 1.9e9
    of.turn(over(1.0))
    of.wall += jump
    of.turn(over(1.0))
    assert of.states == [AlertState.PENDING]
    for _ in range(4):
        of.turn(over(1.0))
    assert of.states == [AlertState.FIRING]


def test_a_rate_does_not_depend_on_the_wall_clock() -> None:
    of = Evaluation(FAILURES)
    for minute in range(15):
        of.wall += 1e7 * (-1) ** minute
        of.turn(ended(minute, 0))
    assert of.states == [AlertState.FIRING]


def test_after_a_restart_what_fired_fires_on_and_what_was_pending_is_seen_for_a_minute_first() -> None:
    of = Evaluation(OVER)
    for _ in range(6):
        of.turn(over(1.0))
    of.restart()
    of.turn(over(1.0))
    assert of.states == [AlertState.FIRING]
    assert of.over == []

    of = Evaluation(OVER)
    of.turn(over(1.0))
    of.wall += 1e9  # it was down for years, or its clock was set
    of.restart()
    of.turn(over(1.0), GRACE_S)
    assert of.states == [AlertState.PENDING]
    of.turn(over(1.0))
    assert of.states == [AlertState.FIRING]


def test_after_a_restart_an_alert_of_a_window_ends_only_when_the_window_is_known_again() -> None:
    of = Evaluation(FAILURES)
    for minute in range(15):
        of.turn(ended(minute, 0))
    assert of.states == [AlertState.FIRING]
    of.restart()
    for minute in range(60):
        of.turn(ended(0, minute))  # counters begin at 0 again
        assert of.states == [AlertState.FIRING], minute
    for minute in range(60, 64):
        of.turn(ended(0, minute))
    assert of.states == []


def test_numbers_that_are_not_known_now_change_nothing() -> None:
    of = Evaluation(OVER)
    of.turn(over(1.0))
    of.turn({})  # the database was away
    assert of.states == [AlertState.PENDING]
    for _ in range(5):
        of.turn(over(1.0))
    for _ in range(10):
        of.turn({})
    assert of.states == [AlertState.FIRING]


def test_a_value_that_is_not_a_number_fulfils_no_condition() -> None:
    of = Evaluation(OVER)
    for value in (math.nan, -math.inf):
        of.turn(over(value))
        assert of.states == []


def test_a_flood_of_alerts_of_one_rule_is_bounded() -> None:
    of = Evaluation(OVER)
    many = {(("resource", "cpu"), ("tenant", f"t{n}")): 1.0 for n in range(3 * MOST_OF_RULE)}
    for _ in range(7):
        of.turn({"mlp_tenant_over_limit": many})
    assert of.states == [AlertState.FIRING] * MOST_OF_RULE


def test_alerts_of_rules_that_are_gone_are_given_back() -> None:
    gone = Alert(3, "MLPOld", (), "", AlertState.FIRING, 1.0, 0.0)
    assert AlertBook(RULES).load([gone], 0.0, 0.0) == [gone]


def test_windows_are_bounded_in_samples_and_series() -> None:
    kept = SampleHistory([FAILURES])
    for at in range(4 * 3600 // 15):
        kept.take(15.0 * at, 0.0, ended(at, at))
    (series,) = [one.values() for one in kept._windows.values()]
    assert max(len(one.times) for one in series) <= SAMPLES + 2
    assert kept.over("increase", "mlp_jobs_ended_total", 3600) == pytest.approx(
        {(("result", result), ("tenant", "red")): 240 for result in ("failed", "finished")}, abs=5
    )
    many = {(("result", "failed"), ("tenant", f"t{n}")): 1.0 for n in range(2 * MOST_SERIES)}
    kept.take(1e6, 0.0, {"mlp_jobs_ended_total": many})
    assert [len(one) for one in kept._windows.values()] == [MOST_SERIES]


def test_a_counter_that_begins_again_does_not_count_as_a_fall() -> None:
    kept = SampleHistory([FAILURES])
    for at, n in enumerate((10.0, 14.0, 1.0, 2.0)):
        kept.take(60.0 * at, 0.0, ended(n, 0))
    found = kept.over("increase", "mlp_jobs_ended_total", 3600)
    assert found is not None
    assert found[("result", "failed"), ("tenant", "red")] == 4 + 2


def test_jobs_that_fail_between_the_start_and_the_first_evaluation_fire_the_alert() -> None:
    of = Evaluation(FAILURES)
    of.history.begin(of.steady, {"mlp_jobs_ended_total": {}})  # no team was looked at yet
    of.steady += 60.0
    for _ in range(4):
        of.turn(ended(14, 0))
    assert of.states == [AlertState.FIRING]
    ((_, one),) = of.book.open.items()
    assert one.alert.value == 1.0


def test_counts_of_an_earlier_leadership_of_the_same_process_increase_nothing() -> None:
    of = Evaluation(FAILURES)
    of.history.begin(of.steady, ended(14, 0))
    for _ in range(4):
        of.steady += 60.0
        of.turn(ended(14, 0))
    assert of.states == []


def test_a_team_that_is_new_counts_from_0_and_a_series_without_room_does_not() -> None:
    name, hour = "mlp_jobs_ended_total", 3600
    kept = SampleHistory([FAILURES])
    kept.begin(0.0, {name: {}})
    kept.take(60.0, 0.0, {name: {}})
    kept.take(120.0, 0.0, ended(3, 0))
    assert (kept.over("increase", name, hour) or {})[("result", "failed"), ("tenant", "red")] == 3

    many = {(("result", "failed"), ("tenant", f"t{n}")): 1.0 for n in range(MOST_SERIES)}
    kept.take(180.0, 0.0, {name: {**ended(3, 0)[name], **many}})
    later = {(("result", "failed"), ("tenant", f"t{MOST_SERIES - 1}")): 1.0}
    kept.take(240.0, 0.0, {name: later})
    assert kept.over("increase", name, hour) == {}


def test_a_counter_of_a_machine_has_no_increase_before_its_second_sample() -> None:
    kept = SampleHistory([FAILURES])
    kept.begin(0.0, {})
    kept.take(60.0, 0.0, ended(14, 0))
    assert kept.over("increase", "mlp_jobs_ended_total", 3600) == {}


def test_each_rule_reads_metrics_of_the_table_or_of_other_exporters() -> None:
    events = PlatformEvents(lambda: 0.0)
    names = {
        row.name if row.kind is not t.MetricKind.HISTOGRAM else f"{row.name}_bucket" for row in t.METRICS
    }
    read = SampleHistory(RULES).metrics
    assert {name for name in read if name not in names} == {"DCGM_FI_DEV_XID_ERRORS"}
    events.committed(0.3, done=True)
    found = samples_of([(one.row, one.samples()) for one in events.all()], read)
    buckets = found["mlp_store_commit_duration_seconds_bucket"]
    assert buckets[("le", "0.25"), ("result", "committed")] == 0
    assert buckets[("le", "0.5"), ("result", "committed")] == 1
    assert buckets[("le", "+Inf"), ("result", "committed")] == 1
