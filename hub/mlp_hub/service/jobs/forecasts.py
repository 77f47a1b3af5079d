"""Forecasts by earlier runs as the wire has them."""

from __future__ import annotations

from mlp_api.jobs.earlier_runs import ForecastRange, RunForecast
from mlp_api.localized import Text
from mlp_hub.scheduler.model.outlook import Outlook, TimeRange
from mlp_hub.service.support.units import when
from mlp_language.message import Message, msg, msgs


def forecast_to(outlook: Outlook | None) -> RunForecast | None:
    """Return a forecast; None if too little is known."""
    if outlook is None:
        return None
    return RunForecast(
        start=_range_to(outlook.start),
        end=_range_to(outlook.end),
        runs=outlook.runs,
        because=Text(_because(outlook)),
    )


def _range_to(of: TimeRange | None) -> ForecastRange | None:
    return None if of is None else ForecastRange(p10=when(of.p10), p50=when(of.p50), p90=when(of.p90))


def _because(outlook: Outlook) -> Message:
    """Name the source; of other people's jobs only their number."""
    if outlook.longest:
        return msgs(
            "it has run longer than its {n} earlier run",
            "it has run longer than its {n} earlier runs",
            n=outlook.runs,
        )
    if outlook.outlasted:
        return msg("it has run longer than most of its {n} earlier runs", n=outlook.runs)
    if outlook.start is None:
        return msgs(
            "estimated from its {n} earlier run", "estimated from its {n} earlier runs", n=outlook.runs
        )
    return msgs(
        "estimated from earlier runs of {n} other job",
        "estimated from earlier runs of {n} other jobs",
        n=outlook.learned,
    )
