"""Scenarios of a few lines, run in virtual time, and their results."""

from __future__ import annotations

from typing import Any

from mlp_hub.simulate.engine import Simulation
from mlp_hub.simulate.scenario_reader import read_value

Line = dict[str, Any]
ONE = {"name": "n", "cpu": 4}


def run(*jobs: dict[str, Any], **more: Any) -> list[Line]:
    """Return the lines of these jobs, on one node and for one tenant unless others are given."""
    more.setdefault("nodes", [ONE])
    more.setdefault("tenants", [{"name": "red"}])
    return list(Simulation(read_value({"version": 1, "jobs": list(jobs), **more})).lines())


def told(lines: list[Line], *keys: str) -> list[tuple[Any, ...]]:
    """Return (t, event, job) of each line, with further keys where asked for."""
    return [(x["t"], x["event"], x["job"], *(x.get(k) for k in keys)) for x in lines[:-1]]


def story(lines: list[Line], job: str) -> list[tuple[float, str]]:
    """Return when what happened to a job."""
    return [(x["t"], x["event"]) for x in lines[:-1] if x["job"] == job]


def job(name: str, **more: Any) -> dict[str, Any]:
    """Return a job of 100 seconds."""
    return {"name": name, "duration": 100, **more}
