"""Row of the table of alert rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlp_hub.service.monitoring.measures import (
    COMPARE,
    Measure,
    Readings,
    RuleGuard,
    Selected,
    Vector,
    Windowed,
)


@dataclass(frozen=True, slots=True)
class AlertRule:
    """Row of the table. `meaning` and `remedy` are the section of its runbook; `guard` is a further condition of the query.

    `description` has `{value}` in the place of the value, and `{label}` of labels that the query keeps.
    """

    name: str
    severity: str
    value: Measure
    op: str
    threshold: float
    for_s: int
    summary: str
    description: str
    meaning: str
    remedy: str
    unit: str = ""
    guard: RuleGuard | None = None

    @property
    def expression(self) -> str:
        """Return the whole query."""
        compared = f"{self.value.promql} {self.op} {self.threshold:.15g}"
        return f"({compared}) and {self.guard.promql}" if self.guard else compared

    def selections(self) -> Iterator[Selected | Windowed]:
        """Yield all that it reads."""
        yield from self.value.selections()
        if self.guard is not None:
            yield from self.guard.of.selections()

    @property
    def window_s(self) -> int:
        """Return the longest window that it looks back, in seconds; 0: it looks at present values only."""
        return max((one.window_s for one in self.selections() if isinstance(one, Windowed)), default=0)

    @property
    def of_tenant(self) -> bool:
        """Return whether each of its alerts is about one tenant."""
        return "{tenant}" in self.summary

    def instances(self, readings: Readings) -> Vector | None:
        """Return the values for which it holds, by labels; None where a number that it needs is not known now."""
        values = self.value.value(readings)
        if values is None:
            return None
        compare = COMPARE[self.op]
        holds = {labels: value for labels, value in values.items() if compare(value, self.threshold)}
        return self.guard.kept(holds, readings) if self.guard and holds else holds
