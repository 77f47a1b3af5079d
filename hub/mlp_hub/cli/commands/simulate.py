"""`mlp-hub simulate`: runs a scenario in virtual time, prints its lines or a report, and draws it; exports the hub as one."""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from mlp_hub.cli.commands.accounts import ask_service
from mlp_hub.cli.errors import CommandFailed, UsageFailure
from mlp_hub.domain.text import escaped_json
from mlp_hub.gc_tuning import spare_the_collector
from mlp_hub.scheduler.policy import POLICIES
from mlp_hub.settings import Settings
from mlp_hub.simulate.engine import Simulation
from mlp_hub.simulate.errors import ScenarioError
from mlp_hub.simulate.gantt import Gantt
from mlp_hub.simulate.report import tables
from mlp_hub.simulate.scenario import Scenario
from mlp_hub.simulate.scenario_reader import read
from mlp_language.render import say

MOST_DAYS = 3650


def simulate(source: str, *, as_json: bool, policy: str | None = None, plot: str | None = None) -> int:
    """Run the scenario of a file, `-` for standard input. A scenario with faults ends with status 2 and all of them."""
    if policy is not None and policy not in POLICIES:
        raise UsageFailure(
            say(
                "policy {policy} does not exist; choose one of {policies}",
                policy=policy,
                policies=", ".join(POLICIES),
            )
        )
    if plot is not None and Path(plot).suffix.lower() != ".svg":
        raise UsageFailure(
            say("--plot is {plot}; the chart is an SVG, so name a file that ends in .svg", plot=plot)
        )
    spare_the_collector()  # what is read and simulated stays to the end
    scenario = _scenario(source)
    if policy is not None:
        scenario = scenario.with_policy(policy)
    name = "standard input" if source == "-" else Path(source).name
    chart = Gantt(scenario, f"{name}, policy {scenario.policy.name}") if plot else None
    simulation = Simulation(scenario, clock=time.perf_counter, recorder=chart)
    for line in simulation.lines():
        if as_json:
            sys.stdout.write(escaped_json(json.dumps(line, ensure_ascii=False)) + "\n")
    if not as_json:
        sys.stdout.write(tables(simulation.tally))
    if chart is not None and plot is not None:
        try:
            Path(plot).write_text(chart.svg(), encoding="utf-8")
        except OSError as error:
            raise CommandFailed(
                say("{plot} cannot be written: {strerror}", plot=plot, strerror=str(error.strerror))
            ) from error
    sys.stdout.flush()  # a reader that has gone away is noticed here and not at the very end
    return 0


def export(settings: Settings, what: str, *, as_json: bool) -> int:
    """Print the running hub's present, or its jobs of the last days, as a scenario to edit and run."""
    query = "source=now"
    if what != "now":
        try:
            days = float(what)
        except ValueError:
            days = 0.0
        if not 0 < days <= MOST_DAYS:
            raise UsageFailure(
                say(
                    "--export is {what}; write now, or a number of days up to {most_days}",
                    what=what,
                    most_days=MOST_DAYS,
                )
            )
        query = f"source=history&days={days:g}"
    found = ask_service(settings, "GET", f"/simulate?{query}", timeout=120.0).json()
    said, begin = found.pop("remarks"), datetime.fromisoformat(found.pop("begin"))
    notes = found.pop("notes")
    if as_json:
        sys.stdout.write(escaped_json(json.dumps(found, ensure_ascii=False)) + "\n")
        return 0
    span = what if what == "now" else f"the last {what} days"
    lines = [f"The hub of {settings.home}, {span}.", f"Seconds count from {_moment(begin)}.", *said]
    sys.stdout.write("".join(f"# {line}\n" for line in lines))
    jobs = found.pop("jobs")
    sys.stdout.write(_yaml(found))
    sys.stdout.write("jobs:\n" if jobs else "jobs: []\n")
    for job, note in zip(jobs, notes, strict=True):
        sys.stdout.write(f"{_yaml([job]).rstrip()}  # {note}\n")
    return 0


def _yaml(value: object) -> str:
    import yaml  # noqa: PLC0415 - needed here only

    text: str = yaml.safe_dump(
        value, sort_keys=False, allow_unicode=True, default_flow_style=None, width=1_000_000
    )
    return text


def _moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _scenario(source: str) -> Scenario:
    try:
        data = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
        return read(data.decode("utf-8-sig"))
    except OSError as error:
        raise UsageFailure(
            say("{source} cannot be read: {strerror}", source=source, strerror=str(error.strerror))
        ) from error
    except UnicodeDecodeError as error:
        raise UsageFailure(
            say("{source} is not text in UTF-8: byte {start} does not fit", source=source, start=error.start)
        ) from error
    except ScenarioError as error:
        raise UsageFailure(
            str(error), say("The format: docs/reference/scenarios.md. {source} was not run.", source=source)
        ) from error
