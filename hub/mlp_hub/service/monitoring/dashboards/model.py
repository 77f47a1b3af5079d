"""Types of the table of dashboards."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

JOB = "job"
"""Variable of each dashboard: the job of Prometheus that scrapes one hub. Its panels show that hub alone."""
_OURS = re.compile(r"\b((?:mlp|process)_[a-z0-9_]+)(\{)?")


class PanelKind(StrEnum):
    """Kind of a panel, in the words of Grafana."""

    CURVES = "timeseries"
    NUMBER = "stat"
    TABLE = "table"


class PanelUnit(StrEnum):
    """Unit of a panel's values, in the words of Grafana; `RATIO` is a part of 1, shown as a percentage."""

    NUMBER = "short"
    RATIO = "percentunit"
    SECONDS = "s"
    BYTES = "bytes"
    BYTES_PER_SECOND = "Bps"
    PER_SECOND = "ops"
    CELSIUS = "celsius"
    WATTS = "watt"


@dataclass(frozen=True, slots=True)
class PanelQuery:
    """Query of a panel. `legend` is the name of each curve, with `{{label}}` for the value of a label."""

    of: str
    legend: str = ""

    @property
    def expression(self) -> str:
        """Return the query for one hub: each metric of the platform gets the variable `job` as a label."""
        return _OURS.sub(lambda m: f'{m[1]}{{{JOB}=~"$' + JOB + '"' + ("," if m[2] else "}"), self.of)


@dataclass(frozen=True, slots=True)
class DashboardPanel:
    """Panel. `width` is in columns, of 24; `stacked` draws curves upon each other, because their sum means something."""

    title: str
    unit: PanelUnit
    queries: tuple[PanelQuery, ...]
    kind: PanelKind = PanelKind.CURVES
    width: int = 8
    help: str = ""
    stacked: bool = False


@dataclass(frozen=True, slots=True)
class DashboardRow:
    """Row of panels with a title."""

    title: str
    panels: tuple[DashboardPanel, ...]


@dataclass(frozen=True, slots=True)
class DashboardVariable:
    """Variable that a reader of a dashboard chooses: values of a label of a metric."""

    name: str
    title: str
    metric: str


@dataclass(frozen=True, slots=True)
class Dashboard:
    """Dashboard; `name` is its file without the ending."""

    name: str
    title: str
    description: str
    rows: tuple[DashboardRow, ...]
    variables: tuple[DashboardVariable, ...] = ()

    def panels(self) -> Iterator[DashboardPanel]:
        """Yield the panels of all rows."""
        for row in self.rows:
            yield from row.panels
