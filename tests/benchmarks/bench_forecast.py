"""How well the expected start holds that a job is told when it begins to wait: Microsoft's Philly trace in the simulator."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench_common import Context, Figure, data_path, quantile
from mlp_hub.domain.jobs.run_times import PastRuns, RunTimes
from mlp_hub.scheduler.forecast.forecast import Forecast
from mlp_hub.scheduler.forecast.ranges import outlooks
from mlp_hub.scheduler.forecast.why import MOST_EFFORT, MOST_ENDS
from mlp_hub.scheduler.model.outlook import Outlook
from mlp_hub.scheduler.model.types import Admit
from mlp_hub.simulate.engine import Simulation
from mlp_hub.simulate.progress import Run
from mlp_hub.simulate.scenario import JobLine
from mlp_hub.simulate.scenario_reader import read

NAME = "forecast"
ABOUT = (
    "700 jobs of the Philly trace (CC-BY 4.0, derived by Pollux's authors) on a cluster a fifth too small, a tenant for each "
    "virtual cluster; the expected start that a job is told when it begins to wait, against its start"
)
FILE = "philly/philly.csv"
JOBS = 700
SINCE = "2017-10-09"
LOAD = 1.2
DEEP = 3.0
LONGEST = 2 * 86_400.0  # longer jobs are cut to this, or one of them fills the whole run
LIMITS = (900, 3600, 4 * 3600, 12 * 3600, 86_400, 2 * 86_400)
"""The time limits that people choose: the first of these that is enough."""
FAR = 2_000  # ends looked ahead where the look ahead is not bounded


@dataclass(frozen=True, slots=True)
class Line:
    """A job of the trace; times in seconds."""

    name: str
    tenant: str
    submit: float
    runs: float
    gpus: int


class AsTheHub(Simulation):
    """Looks ahead as `why` does in the hub."""

    steps, effort = MOST_ENDS, float(MOST_EFFORT)

    def _forecast(self, uids: list[str]) -> dict[str, float | None]:
        return Forecast(self._core, self.now, uids, self.steps, self.effort).starts


class WithEarlierRuns(AsTheHub):
    """Looks ahead as `why` does in the hub, with the run times of earlier runs; those before the window are known at its begin.

    The trace has neither users nor names nor programs. The tenant stands for the user; number of GPUs and the limit for the rest.
    """

    before: Sequence[Line] = ()

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.times = RunTimes()
        self.told: dict[str, Outlook] = {}
        self._began: dict[str, float] = {}
        for line in sorted(self.before, key=lambda line: line.submit + line.runs):
            if line.submit + line.runs < 0:
                limit = limit_of(line.runs)
                self.times.add(line.tenant, (_likeness(line.gpus, limit), _likeness(line.gpus, 0)), line.runs)

    def _start(self, run: Run, admit: Admit) -> None:
        self._began[run.uid] = self.now
        super()._start(run, admit)

    def _over(self, run: Run, state: str) -> None:
        began = self._began.pop(run.uid, None)
        if state == "finished" and began is not None:
            self.times.add(run.line.tenant, _keys(run.line), self.now - began)
        super()._over(run, state)

    def _past(self, uid: str) -> tuple[PastRuns, float] | None:
        line = self._runs[uid].line
        found = self.times.of(line.tenant, _keys(line))
        return None if found is None else (found, 0.0)

    def _forecast(self, uids: list[str]) -> dict[str, float | None]:
        new = [uid for uid in uids if self._runs[uid].name not in self.told]
        for uid, outlook in outlooks(self._core, new, self.now, self._past, self.effort).items():
            self.told[self._runs[uid].name] = outlook
        return super()._forecast(uids)


def _keys(line: JobLine) -> tuple[bytes, ...]:
    """Return the likenesses of a job: its GPUs with its limit, if it has one, and its GPUs alone."""
    gpus = round(line.workers_max * line.per_worker.gpu / 1000)
    own = () if line.time_limit is None else (_likeness(gpus, line.time_limit),)
    return (*own, _likeness(gpus, 0))


def _likeness(gpus: int, limit: float) -> bytes:
    return f"{gpus} {limit:g}".encode()


def limit_of(runs: float) -> float:
    """Return the time limit that people would choose."""
    return next((x for x in LIMITS if x >= runs), runs)


class FarSighted(AsTheHub):
    """Looks as far ahead as it takes, at whatever cost."""

    steps, effort = FAR, math.inf


def run(context: Context) -> list[Figure]:
    """Replay the window with limits that people would choose, with true run times, and with limits for half of the jobs.

    Once more on a cluster so small that most of it waits, for what bounds on the look ahead cost.
    """
    del context
    data = data_path(FILE)
    if data is None:
        sys.stdout.write(f"  skipped: no {FILE} in MLP_BENCH_DATA or ../shared/data\n")
        return []
    WithEarlierRuns.before, lines = load(data)
    figures: list[Figure] = []
    cases: tuple[tuple[str, str, type[Simulation]], ...] = (
        ("limits, as far as the hub looks", "limits", AsTheHub),
        ("limits and earlier runs, as the hub", "limits", WithEarlierRuns),
        ("limits of half and earlier runs, as the hub", "half", WithEarlierRuns),
        ("true run times, all ahead", "truth", FarSighted),
        ("limits of half, all ahead", "half", FarSighted),
        ("limits, as simulate tells", "limits", Simulation),
    )
    for title, known, make in cases:
        figures += measure(title, scenario(lines, known), make)
    deep = scenario(lines, "limits", DEEP)
    for title, make in (
        ("deep queue, as far as the hub looks", AsTheHub),
        ("deep queue, all ahead", FarSighted),
    ):
        figures += measure(title, deep, make)
    return figures


def load(path: Path) -> tuple[list[Line], list[Line]]:
    """Read the jobs before the window, with times before 0, and the window."""
    begin = datetime.fromisoformat(SINCE).replace(tzinfo=UTC).timestamp()
    with path.open() as f:
        rows = [
            (
                datetime.fromisoformat(row["timestamp"]).replace(tzinfo=UTC).timestamp() - begin,
                row["cluster"],
                min(float(row["duration"]), LONGEST),
                int(row["num_gpus"]),
            )
            for row in csv.DictReader(f)
        ]
    before = [Line("", cluster, at, max(runs, 1.0), gpus) for at, cluster, runs, gpus in rows if at < 0]
    rows = sorted(r for r in rows if r[0] >= 0)[:JOBS]
    return before, [
        Line(f"j-{n}", cluster, at, max(runs, 1.0), gpus) for n, (at, cluster, runs, gpus) in enumerate(rows)
    ]


def scenario(lines: Sequence[Line], known: str, load: float = LOAD) -> dict[str, Any]:
    """Return the scenario; `known`: limits, truth or half."""
    span = lines[-1].submit - lines[0].submit
    work = sum(line.runs * line.gpus for line in lines)
    nodes = max(round(work / span / load / 8), *(-(-line.gpus // 8) for line in lines))
    jobs = []
    for n, line in enumerate(lines):
        whole, left = divmod(line.gpus, 8)
        job: dict[str, Any] = {
            "name": line.name,
            "tenant": line.tenant,
            "submit": line.submit,
            "duration": line.runs,
            "workers": line.gpus if left or whole < 2 else whole,
            "gpu": 1 if left or whole < 2 else 8,
            "cpu": 1,
        }
        if known == "truth":
            job["estimate"] = line.runs
        elif known == "limits" or n % 2:
            job["time_limit"] = limit_of(line.runs)
        jobs.append(job)
    return {
        "version": 1,
        "policy": {"name": "fair", "preemption": False},
        "nodes": [{"name": "n", "count": nodes, "cpu": 64, "ram": 262_144, "gpu": 8}],
        "tenants": [{"name": t} for t in sorted({line.tenant for line in lines})],
        "jobs": jobs,
    }


def measure(title: str, story: dict[str, Any], make: type[Simulation]) -> list[Figure]:
    """Run one case and return its figures."""
    told: dict[str, float | None] = {}
    began: dict[str, float] = {}
    started: dict[str, float] = {}
    simulation = make(read(json.dumps(story)))
    for line in simulation.lines():
        job = line.get("job", "")
        if line.get("event") == "waiting" and job not in told:
            told[job], began[job] = line["expected_start"], line["t"]
        elif line.get("event") == "started" and job in told:
            started.setdefault(job, line["t"])
    if isinstance(simulation, WithEarlierRuns):
        ranges = {job: o.start for job, o in simulation.told.items() if o.start is not None}
        told |= {job: start.p50 for job, start in ranges.items()}
    off = {job: started[job] - at for job, at in told.items() if at is not None and job in started}
    size = sorted(abs(x) / 60 for x in off.values()) or [0.0]
    waits = sorted((started[job] - began[job]) / 60 for job in started) or [0.0]
    late = 100 * sum(x > 60 for x in off.values()) / max(len(off), 1)
    command = "make bench ONLY=forecast"
    note = f"{len(told)} of {len(story['jobs'])} jobs wait, half of them {quantile(waits, 0.5):.0f} min or longer"
    inside: list[Figure] = []
    if isinstance(simulation, WithEarlierRuns):
        held = [start.holds(started[job]) for job, start in ranges.items() if job in started]
        share = 100 * held.count(0) / max(len(held), 1)
        wide = quantile(sorted((start.p90 - start.p10) / 60 for start in ranges.values()) or [0.0], 0.5)
        inside = [
            Figure(f"start inside its range: {title}", share, "%", command=command),
            Figure(f"width of the range, median: {title}", wide, "min", command=command),
        ]
    return [
        *inside,
        Figure(f"start off, median: {title}", quantile(size, 0.5), "min", note=note, command=command),
        Figure(f"start off, p90: {title}", quantile(size, 0.9), "min", command=command),
        Figure(f"a minute later than told: {title}", late, "%", command=command),
        Figure(
            f"no time told: {title}",
            100 * sum(at is None for at in told.values()) / max(len(told), 1),
            "%",
            command=command,
        ),
    ]
