"""Worker of simulations in a separate process, so that the service stays responsive.

It reads a task on stdin, and writes the answer on stdout. The process is this module's `main`, run
by `mlp_hub.confined`, with a low priority. The process that started it ends it when its time is
over.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import msgspec

from mlp_hub.service.whatif.task import Task, WhatIfOutcome
from mlp_hub.simulate.compare import Lives, figures, moves
from mlp_hub.simulate.continued import Continued
from mlp_hub.simulate.engine import Simulation
from mlp_hub.simulate.errors import ScenarioError
from mlp_hub.simulate.gantt import Gantt
from mlp_hub.simulate.scenario_reader import read_value
from mlp_language.message import Message, msg, to_data, verbatim

MOST_LINES = 5000
"""Safety: lines of one answer; the rest is counted."""
MOST_RANKS = 100_000
"""Safety: ranks whose nodes the lines of one answer name; a job may have a million, each time that it is started."""
MOST_ANSWER = 64 * 1024**2
"""Safety: bytes of one answer, all of which the service takes into its memory: bounds memory."""


def run(task: Task) -> WhatIfOutcome:
    """Do a task."""
    if task.scenario is not None:
        return _scenario(task, task.scenario)
    assert task.before is not None and task.after is not None  # noqa: S101, PT018 - it is one or the other
    # the waits of both runs are of the same jobs: those that did not run when they began, whatever is changed
    ran = {j.full_name: j.submitted for j in task.before.jobs if j.started is not None}
    was, before, _, _ = _one(Continued, task.before, "As it is", task, ran=ran, lines=False)
    now, after, lines, left_out = _one(
        Continued, task.after, "With the changes", task, ran=ran, lines=task.lines
    )
    most, counts = moves(was.of, now.of)
    answer = {
        "before": before,
        "after": after,
        "moves": {**counts, "most": most},
        "lines": lines,
        "lines_left_out": left_out,
    }
    return WhatIfOutcome(answer=answer)


def _scenario(task: Task, value: dict[str, Any]) -> WhatIfOutcome:
    try:
        scenario = read_value(value)
    except ScenarioError as error:
        return WhatIfOutcome(refused=to_data(verbatim(str(error)[:4000])))
    for n, most, what in (
        (scenario.number_of_jobs, task.most_jobs, msg("jobs")),
        (len(scenario.nodes), task.most_nodes, msg("nodes")),
    ):
        if n > most:
            return WhatIfOutcome(
                refused=to_data(
                    msg(
                        "this scenario makes {n} {what}; the limit here is {most}. Run it with `mlp-hub simulate FILE` on your own machine, or make it smaller",
                        n=n,
                        what=what,
                        most=most,
                    )
                )
            )
    _, after, lines, left_out = _one(Simulation, scenario, "Scenario", task, ran={}, lines=task.lines)
    return WhatIfOutcome(
        answer={"before": None, "after": after, "moves": None, "lines": lines, "lines_left_out": left_out}
    )


def _one(
    make: Any, source: Any, title: str, task: Task, *, ran: dict[str, float], lines: bool
) -> tuple[Lives, dict[str, Any], list[dict[str, Any]] | None, int]:
    simulation: Simulation = make(source)
    scenario = simulation.scenario
    chart = None
    if task.chart:
        chart = Gantt(scenario, title)
        simulation = make(source, recorder=chart)
    lives = Lives(scenario, ran)
    kept: list[dict[str, Any]] = []
    left_out = ranks = 0
    summary: dict[str, Any] = {}
    for line in simulation.lines():
        if "summary" in line:
            summary = line["summary"]
            continue
        lives.add_line(line)
        if not lines:
            continue
        ranks += len(line.get("placement", ()))
        if not left_out and len(kept) < MOST_LINES and ranks <= MOST_RANKS:
            kept.append(line)
        else:
            left_out += 1
    metrics = figures(lives.of.values(), summary, {t.name: t.weight for t in scenario.tenants})
    metrics["gantt"] = chart.svg() if chart is not None else None
    return lives, metrics, kept if lines else None, left_out


def main() -> int:
    """Read the task, do it, write the outcome."""
    os.nice(10)
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=Task)
    sys.stdout.buffer.write(answer(task))
    return 0


def answer(task: Task) -> bytes:
    """Do a task; return the outcome as the service reads it."""
    try:
        said = msgspec.json.encode(run(task), enc_hook=dict)
    except MemoryError:
        return _refused(msg("this run needs more memory than a what-if can have; make it smaller"))
    if len(said) <= MOST_ANSWER:
        return said
    text = msg(
        "the answer would be {n} MiB long; the limit is {most} MiB. Ask without lines and chart, or for fewer teams and jobs",
        n=round(len(said) / 2**20),
        most=round(MOST_ANSWER / 2**20),
    )
    return _refused(text)


def _refused(why: Message) -> bytes:
    return msgspec.json.encode(WhatIfOutcome(refused=to_data(why)))
