"""Shockwave's TACC trace in the simulator: 120 gangs on 32 GPUs, their run times hidden from the policy."""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from bench_common import Context, Figure, data_path
from mlp_hub.simulate.engine import Simulation
from mlp_hub.simulate.scenario_reader import read

NAME = "tacc"
ABOUT = (
    "120 gangs on 8 nodes of 4 GPUs in virtual time; the policy knows the nominal duration as the user's estimate, nothing is "
    "preempted; finish-time fairness = completion time / (time alone x 3.75), unfair above 1.05"
)
FILE = "shockwave_tacc32_120jobs.csv"
SHARE = 3.75  # jobs for each cluster's worth of GPUs, as the authors count contention
UNFAIR = 1.05
POLICIES = ("finish", "fair", "maxmin", "priority", "fifo")
PUBLISHED = {
    "makespan": ("s", 24_197.0),
    "average completion time": ("s", 9_958.0),
    "worst finish-time fairness": ("", 1.784),
    "unfair jobs": ("%", 5.0),
}


@dataclass(frozen=True, slots=True)
class Gang:
    """A line of the trace; times in seconds."""

    name: str
    arrival: float
    gpus: int
    nominal: float
    runs: float
    alone: float


def run(context: Context) -> list[Figure]:
    """Replay the trace under each order; ours stands beside Shockwave's published figures."""
    data = data_path(FILE)
    if data is None:
        sys.stdout.write(f"  skipped: no {FILE} in MLP_BENCH_DATA or ../shared/data\n")
        return []
    gangs = load(data)
    figures = []
    for policy in POLICIES:
        for (name, (unit, anchor)), ours in zip(PUBLISHED.items(), replay(gangs, policy), strict=True):
            beside = (anchor, "Shockwave") if policy == "finish" else (None, "")
            figures.append(
                Figure(f"P5 TACC {name}, {policy}", ours, unit, *beside, command="make bench ONLY=tacc")
            )
    return figures


def load(path: Path) -> list[Gang]:
    """Read the trace."""
    with path.open() as f:
        return [
            Gang(
                f"j-{row['job_id']}",
                float(row["arrival_s"]),
                int(row["gpus"]),
                float(row["nominal_duration_s"]),
                float(row["run_time_s"]),
                float(row["exclusive_s"]),
            )
            for row in csv.DictReader(f)
        ]


def replay(gangs: list[Gang], policy: str) -> tuple[float, float, float, float]:
    """Return makespan, average completion time, worst finish-time fairness and the unfair per cent."""
    scenario = {
        "version": 1,
        "policy": {"name": policy},
        "nodes": [{"name": "n", "count": 8, "cpu": 32, "ram": 65_536, "gpu": 4}],
        "tenants": [{"name": "tacc"}],
        "jobs": [
            {
                "name": g.name,
                "tenant": "tacc",
                "submit": g.arrival,
                "duration": g.runs,
                "estimate": g.nominal,
                "workers": g.gpus,
                "cpu": 1,
                "ram": 100,
                "gpu": 1,
            }
            for g in gangs
        ],
    }
    ends = {
        line["job"]: line["t"]
        for line in Simulation(read(json.dumps(scenario))).lines()
        if line.get("event") == "finished"
    }
    took = [ends[g.name] - g.arrival for g in gangs]
    fairness = [t / (g.alone * SHARE) for t, g in zip(took, gangs, strict=True)]
    unfair = sum(f > UNFAIR for f in fairness)
    return max(ends.values()), sum(took) / len(took), max(fairness), 100 * unfair / len(gangs)
