"""The reference page of scenarios, from the keys that their reader knows."""

from __future__ import annotations

from collections.abc import Iterator

from mlp_hub.simulate.forms import SECTIONS, Form, keys_of
from reference.rest import markdown_table

_PAGE = """# Scenarios

What `mlp-hub simulate SCENARIO` reads, in YAML or JSON ([how to use it](../how-to/simulate.md)). Times are in seconds of
virtual time. An unknown key, a key given twice, a negative or infinite number, a name that is not there: each is a fault,
all of them are told at once, in YAML with their lines, and nothing is run. A job that can never run is no fault: its line says `refused`.

YAML is read as its version 1.2 has it: `no` and `2:4` are text. A scenario of very many lines is read much faster as JSON.

"""
_TITLES = {
    "scenario": "The scenario",
    "policy": "policy",
    "flavors": "flavors",
    "nodes": "nodes",
    "tenants": "tenants",
    "jobs": "jobs",
    "events": "events",
    "bookings": "bookings",
}
_EVENTS = """
An event has `at` and one of `node_down`, `node_up`, `cancel`, or `tenant` with `quota`. Within one instant ends of jobs
come first, then events in the order of the file, then submissions, then the scheduler decides.
"""
_BOOKINGS = """
From when a window opens until it closes, the amount is kept free for its tenant. Before, a job of another tenant starts
only if it ends in time, as its time limit or estimate tells, or if what is booked is free beside it.
"""
_NOTES = {"events": _EVENTS, "bookings": _BOOKINGS}
_OUTPUT = """
## Output

With `--json` one object a line, in order of time: `{"t": seconds, "event": E, "job": NAME}`, and besides

"""
_LINES = (
    ("`submitted`", "", "the job is there"),
    ("`refused`", "`reason`, `message`", "it can never run here, and is not tried"),
    (
        "`waiting`",
        "`reason`, `message`, `expected_start`",
        (
            "it begins to wait, or waits for a reason that it was not told since; null where no start can be told, or "
            "looking ahead for it would take more than about a quarter of a long run"
        ),
    ),
    ("`admitted`", "", "it has quota and nodes"),
    ("`started`", "`placement`", "it runs; the node of each rank"),
    (
        "`grown`, `shrunk`",
        "`placement`",
        "an elastic job has another number of workers; its whole new placement",
    ),
    ("`preempted`", "`reason`, `message`", "it is stopped for another job"),
    ("`evicted`", "`reason`, `message`", "it is stopped because a node of it was lost"),
    ("`requeued`", "", "it waits again, with its age; follows `preempted` and `evicted`"),
    ("`finished`", "", "its work is done"),
    ("`failed`", "`reason`, `message`", "it ran into its time limit"),
    ("`cancelled`", "", "it was cancelled"),
)
_SUMMARY_HEAD = """
The last line is `{"summary": {...}}`:

"""
SUMMARY = (
    (
        "`makespan_s`",
        "from the first submission to the last end of a job, or to `until` if work was left then",
    ),
    ("`jobs`, `finished`", "how many were submitted, and how many did their work"),
    ("`avg_jct_s`", "submission to finish, of those that finished"),
    (
        "`avg_wait_s`, `p50_wait_s`, `p99_wait_s`",
        "all the time a job spent in the queue, after a preemption too; of those that started at least once",
    ),
    (
        "`utilization`",
        "cpu and gpu: what was held over the makespan, by what the nodes that were up had (0 to 1)",
    ),
    ("`allocation`", "cpu and gpu: the highest share held at one time (0 to 1)"),
    ("`preemptions`", "how often a job was stopped for another"),
    ("`lost_work_s`", "worker-seconds since the last checkpoint of jobs that were preempted or evicted"),
    (
        "`per_tenant`, `per_priority`",
        (
            "by name: `jobs`, `finished`, `avg_jct_s`, `avg_wait_s`, `p50_wait_s`, `p99_wait_s`, `preemptions`, and "
            "`cpu_s` and `gpu_s`, what was held in core-seconds and device-seconds"
        ),
    ),
    ("`cycles`", "how often the scheduler planned"),
    (
        "`cycle_p50_ms`, `cycle_p99_ms`",
        "how long that took on this machine: the only figures that differ from run to run",
    ),
)


def scenarios_page() -> str:
    """Return the page as Markdown."""
    page = _PAGE
    for section, form in SECTIONS.items():
        page += f"## {_TITLES[section]}\n\n"
        page += markdown_table(("key", "values", "default", "meaning"), _rows(form))
        page += _NOTES.get(section, "\n")
    page += _OUTPUT + markdown_table(("event", "with", "meaning"), _LINES)
    page += _SUMMARY_HEAD + markdown_table(("key", "meaning"), SUMMARY)
    return page


def _rows(form: type[Form]) -> Iterator[tuple[str, str, str, str]]:
    for info, key in keys_of(form):
        default = "**must be there**" if info.required else key.default.strip() or _shown(info.default)
        yield f"`{info.encode_name}`", key.takes, "" if key.default == " " else default, key.meaning


def _shown(value: object) -> str:
    if isinstance(value, str):
        return value
    return "null" if value is None else str(value).lower().removesuffix(".0")
