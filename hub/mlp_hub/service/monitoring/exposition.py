"""Text of a scrape, in the format that the scraper asks for. It loads the library, and so only the first scrape loads this.

The lines are written here, and a test compares them with the library's: it makes an object and a dictionary of each value
first, which takes several times as long with thousands of lines. Whole numbers have no `.0`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from prometheus_client import ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST
from prometheus_client.utils import floatToGoString

from mlp_hub.service.monitoring.gauges import Family
from mlp_hub.service.monitoring.instruments import Labels
from mlp_hub.service.monitoring.table import MetricKind, MetricRow

_EXACT = 2.0**53
"""Given: floats have each whole number below."""
_BEYOND = "+Inf"
"""Contract: label of the bucket of all values."""


class Exposition:
    """Renderer of scrapes, of values that were found already, and of the process's own figures."""

    def __init__(self) -> None:
        self._process = ProcessCollector(registry=None)
        self._writers: dict[MetricRow, Callable[[Labels, Any], str]] = {}

    def render(self, families: Sequence[Family], *, open_metrics: bool) -> tuple[bytes, str]:
        """Return the text and its type; for a thread, because it reads /proc."""
        found: list[str] = []
        for row, samples in families:
            found.extend(_head(row.name, row.kind, row.help, open_metrics=open_metrics))
            write = self._writers.get(row)
            if write is None:
                write = self._writers[row] = _WRITERS.get(row.kind, _plain)(row)
            found.extend([write(labels, value) for labels, value in samples])
        found.extend(self._of_process(open_metrics=open_metrics))
        if open_metrics:
            found.append("# EOF\n")
        return "".join(found).encode(), CONTENT_TYPE_LATEST if open_metrics else CONTENT_TYPE_PLAIN_0_0_4

    def _of_process(self, *, open_metrics: bool) -> Iterator[str]:
        for metric in self._process.collect():
            ((sample),) = metric.samples
            yield from _head(sample.name, metric.type, metric.documentation, open_metrics=open_metrics)
            yield f"{sample.name} {_number(sample.value)}\n"


def _head(name: str, kind: str, text: str, *, open_metrics: bool) -> Iterator[str]:
    """Yield the two lines before the values of a metric; OpenMetrics names a counter without its `_total`."""
    text = text.replace("\\", r"\\").replace("\n", r"\n")
    if open_metrics:
        text = text.replace('"', r"\"")
        name = name.removesuffix("_total") if kind == MetricKind.COUNTER else name
    yield f"# HELP {name} {text}\n"
    yield f"# TYPE {name} {kind}\n"


class _LabelForm:
    """Form of a row's labels, in the order of their names as in the library's text."""

    def __init__(self, labels: Sequence[str], le: str = "") -> None:
        pairs = [(label, "%s") for label in labels] + ([("le", le)] if le else [])
        written = ",".join(f'{label}="{value}"' for label, value in sorted(pairs))
        self.form = f"{{{written}}}" if written else ""


def _ordered(row: MetricRow) -> Callable[[Labels], Labels]:
    """Return a function that escapes values of labels, and orders them by the names of the labels."""
    order = [row.labels.index(label) for label in sorted(row.labels)]
    if order == list(range(len(order))):
        return lambda labels: tuple(map(_escaped, labels))
    return lambda labels: tuple([_escaped(labels[at]) for at in order])


def _plain(row: MetricRow) -> Callable[[Labels, float], str]:
    form, ordered = f"{row.name}{_LabelForm(row.labels).form} %s\n", _ordered(row)
    return lambda labels, value: form % (*ordered(labels), _number(value))


def _summary(row: MetricRow) -> Callable[[Labels, Any], str]:
    of, ordered = _LabelForm(row.labels).form, _ordered(row)
    form = f"{row.name}_count{of} %s\n{row.name}_sum{of} %s\n"

    def write(labels: Labels, value: tuple[list[int], float]) -> str:
        names = ordered(labels)
        return form % (*names, sum(value[0]), *names, _number(value[1]))

    return write


def _histogram(row: MetricRow) -> Callable[[Labels, Any], str]:
    of, ordered = _LabelForm(row.labels).form, _ordered(row)
    bounds = [*map(floatToGoString, row.buckets), _BEYOND]
    buckets = [f"{row.name}_bucket{_LabelForm(row.labels, bound).form} %s\n" for bound in bounds]
    ends = f"{row.name}_count{of} %s\n{row.name}_sum{of} %s\n"

    def write(labels: Labels, value: tuple[list[int], float | None]) -> str:
        counts, total = value
        names, sums = ordered(labels), list(accumulate(counts))
        lines = [form % (*names, count) for form, count in zip(buckets, sums, strict=True)]
        if total is not None:
            lines.append(ends % (*names, sums[-1], *names, _number(total)))
        return "".join(lines)

    return write


_WRITERS: dict[MetricKind, Callable[[MetricRow], Callable[[Labels, Any], str]]] = {
    MetricKind.HISTOGRAM: _histogram,
    MetricKind.SUMMARY: _summary,
}


def _escaped(value: str) -> str:
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    return value


def _number(value: float) -> str:
    value = float(value)
    if value.is_integer() and -_EXACT < value < _EXACT:
        return str(int(value))
    written: str = floatToGoString(value)  # type: ignore[no-untyped-call]
    return written
