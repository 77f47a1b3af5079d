"""What people write of sweeps, what is sent of it, and how one is shown without a browser."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

import mlp
from mlp.client.rest import Client
from mlp.commands import actions
from mlp.errors import Refused, UsageError
from mlp.grammar.job_options import BY_NAME
from mlp.grammar.parsing import parse
from mlp.grammar.sweep_options import OWN, SWEEP
from mlp.grammar.verbs import COMMAND, MAGIC, find, options_of
from mlp.handles import sweeping
from mlp.handles.compared_runs import RunPicture, RunsTable
from mlp.rendering import ends, sweep_picture, tables, words
from mlp.rendering.format import between
from mlp_api.jobs.sweeps import SweepCreate, SweepExtend
from support.clients.mlp_stand_in import NOW, job_record
from support.clients.sweep_shapes import curves, sweep, trial


class Answering(Client):
    """A client whose answers are given, and that notes what it was asked."""

    def __init__(self, **sweeps: dict[str, Any]) -> None:
        super().__init__("http://hub.test/services/mlp/api/v1", "token")
        self.there, self.asked = sweeps, list[tuple[Any, ...]]()

    def start_sweep(self, create: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(("start", create))
        if create["name"] in self.there:
            raise Refused("Conflict", "has not ended")
        return sweep(create["name"])

    def sweep(self, name: str, user: str | None = None) -> dict[str, Any]:
        if name.partition("@")[0] not in self.there:
            raise Refused("NotFound", f"sweep {name} does not exist")
        return self.there[name.partition("@")[0]]

    def sweeps(self, /, **query: Any) -> list[dict[str, Any]]:
        return list(self.there.values())

    def job(self, name: str, user: str | None = None) -> dict[str, Any]:
        raise Refused("NotFound", f"job {name} does not exist")

    def act_sweep(self, verb: str, name: str, user: str | None = None, more: Any = None) -> dict[str, Any]:
        self.asked.append((verb, name, more))
        return self.sweep(name)

    def delete_sweep(self, name: str) -> dict[str, Any]:
        return self.sweep(name)


def test_the_table_holds_exactly_what_the_service_takes() -> None:
    fields = {f.name: f.default for f in msgspec.structs.fields(SweepCreate)}
    assert {o.name for o in SWEEP if o.wire and not o.amount} == fields.keys() - {
        "amounts",
        "entry",
        "code",
        "args",
        "array",
        "provenance",  # is told by itself
    }
    for option in OWN:
        if option.name not in {"grid", "search"}:
            assert option.default == fields[option.name], option.name
    assert next(o for o in SWEEP if o.name == "priority").default == fields["priority"]


def test_magic_command_and_python_take_the_same_options() -> None:
    magic = {o.name for o in options_of(find("sweep", MAGIC), MAGIC)}
    command = {o.name for o in options_of(find("sweep", COMMAND), COMMAND)}
    python = set(inspect.signature(mlp.sweep).parameters) - {"entry", "code", "args", "variables"}
    assert magic - {"with"} == command - {"json"} == python == {o.name for o in SWEEP}


def test_a_line_becomes_what_the_service_takes() -> None:
    words = "sweep --name s --grid lr=0.1,0.01 --grid act=relu,tanh --search drop=uniform(0,0.5) --trials 40 --metric acc --goal max --stop asha"
    words += " --parallel 8 --core-hours 2.5 --deadline 2h --param epochs=3 --priority normal"
    given = parse(words.split(), MAGIC).given
    body = sweeping.completed({"name": "s", "code": "x", "params": given["params"]}, given)
    made = msgspec.convert(body, SweepCreate)
    assert (made.grid, made.search) == (
        {"lr": [0.1, 0.01], "act": ["relu", "tanh"]},
        {"drop": "uniform(0,0.5)"},
    )
    assert (made.trials, made.parallel, made.core_hours, made.deadline) == (40, 8, 2.5, 7200)
    assert (made.metric, made.goal, made.stop, made.params, made.priority) == (
        "acc",
        "max",
        "asha",
        {"epochs": 3},
        "normal",
    )


def test_members_of_an_array_are_of_normal_priority_unless_said_otherwise() -> None:
    for line, priority in (
        ("submit a.py --array 0-31%8", "normal"),
        ("submit a.py --array 1,3 --priority low", "low"),
    ):
        given = parse(line.split(), COMMAND).given
        assert sweeping.as_array({"name": "s"}, given) == {
            "name": "s",
            "array": given["array"],
            "priority": priority,
        }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sweep", "--grid", "lr"], "is not a parameter; write NAME=VALUE"),
        (["sweep", "--grid", "lr="], "lr has no values; write lr=0.1,0.01"),
        (["sweep", "--search", "lr=0.1"], "lr is not a space; write uniform"),
        (["sweep", "--goal", "up"], "is not one of max, min"),
        (["sweep", "--trials", "0"], "from 1 to 1,000 trials"),
        (["sweep", "--core-hours", "nan"], "core-hours"),
        (["sweep", "--name", "x" * 44], "at most 43 characters"),
        (["sweep", "a.py", "b"], "a.py -- b"),
        (["submit", "--array", "x"], "is not an array; write 0-31"),
        (["sweeps", "extend", "s"], "sweeps extend s is not understood. Usage"),
        (["sweeps", "show"], "sweeps show is not understood. Usage"),
    ],
)
def test_an_invalid_sweep_command_is_refused_with_a_valid_form(words: list[str], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(words, COMMAND)
    assert said in str(refused.value)


def test_a_named_sweep_in_progress_is_shown_and_other_refusals_are_raised() -> None:
    client = Answering(search=sweep())
    found = sweeping.send(client, {"name": "search"}, named=True)
    assert found.note.startswith("search has not ended; this shows it.")
    with pytest.raises(Refused):
        sweeping.send(client, {"name": "search"}, named=False)
    with pytest.raises(Refused):
        sweeping.send(Answering(search=sweep(state="finished")), {"name": "search"}, named=True)


def test_where_no_job_is_called_so_a_sweep_is_meant() -> None:
    assert isinstance(sweeping.job_or_sweep(Answering(search=sweep()), "search"), mlp.Sweep)
    with pytest.raises(Refused, match="job search does not exist"):
        sweeping.job_or_sweep(Answering(), "search")


def test_a_sweep_reads_in_a_terminal() -> None:
    text = sweep_picture.text({"sweep": sweep(budget_core_hours=1.0)})
    assert text.splitlines() == [
        "search  running  [############------------] 3/6",
        "3 of 6 trials have ended, 1 running, 1 waiting, 1 was stopped early",
        "0.25 of 1 core-hours",
        "Best: accuracy 0.97, trial 1 (width=64 lr=0.002)",
        "1 trial waits: Waits for nodes.",
        "     1        0.97  finished        width=64 lr=0.002",
        "     0        0.91  finished        width=64 lr=0.001",
        "     3         0.8  running         width=64 lr=0.004",
        "     2         0.4  stopped early   width=64 lr=0.003",
    ]


def test_its_picture_has_all_curves_and_is_text_whatever_a_program_says() -> None:
    evil = '<script>alert("x")</script>'
    found = sweep(
        metric=evil,
        message=evil,
        trials=[trial(0, params={"act": evil}), trial(1, "stopped", 0.1, params={"act": "b"})],
    )
    html = sweep_picture.html(
        {"sweep": {**found, "grid": {"act": [evil, "b"]}, "search": {}}, "curves": curves()[:2]}
    )
    assert "<script" not in html
    assert html.count("<img") == 2
    drawn = sweep_picture.drawn_curves(sweep(), {c["trial"]: c["points"] for c in curves()})
    assert drawn is not None
    assert drawn[1].count('<path d="M') - drawn[1].count("H612") == 4
    assert 'stroke-opacity="0.18"' in drawn[1]


@pytest.mark.parametrize("values", [[], [None], [float("inf")], [1e308, -1e308], [0.5]])
def test_any_values_can_be_drawn(values: list[Any]) -> None:
    trials = [trial(n, value=v) for n, v in enumerate(values)]
    assert "mlp-picture" in sweep_picture.html(
        {
            "sweep": sweep(trials=trials, best=None),
            "curves": [{"trial": 0, "points": [[1, v] for v in values]}],
        }
    )


def test_verbs_list_show_and_steer() -> None:
    client = Answering(search=sweep())
    assert "search  running  3/6     accuracy 0.97" in repr(sweeping.act(client, [], {}))
    assert (
        repr(sweeping.act(client, ["trials", "search"], {})).splitlines()[1].startswith("search.1  finished")
    )
    assert str(sweeping.act(client, ["cancel", "search"], {})) == "search ends; no more trials are made."
    assert str(sweeping.act(client, ["extend", "search"], {"trials": 5})) == "search continues."
    assert client.asked[-1] == ("extend", "search", {"trials": 5})
    msgspec.convert(client.asked[-1][2], SweepExtend)
    assert "You have no sweeps" in repr(sweeping.act(Answering(), ["ls"], {}))


def test_before_it_starts_it_says_what_it_would_take() -> None:
    told = {"trials": 40, "at_a_time": 2, "core_hours": 1.5, "core_hours_most": 20, "trial_s": 90.0, "expected_start": None,
            "expected_end": None, "because": "the median run of job s took 90 s", "tenant": "red"}  # fmt: skip
    lines = str(sweeping.previewed(told, {"name": "s"})).splitlines()
    assert lines[:2] == ["40 trials, 2 at a time as things are now", "About 1.5 core-hours, 20 at most"]
    assert lines[-2:] == ["Known from: the median run of job s took 90 s", "Nothing was started."]
    begin = datetime.now(UTC) + timedelta(days=3)
    start = {
        "p10": begin.isoformat(),
        "p50": begin.isoformat(),
        "p90": (begin + timedelta(hours=2)).isoformat(),
    }
    ranged = str(sweeping.previewed({**told, "forecast": {"start": start}}, {"name": "s"})).splitlines()
    assert f"Starts: {between(start)}" in ranged


def test_python_refuses_an_option_that_is_not_there() -> None:
    with pytest.raises(TypeError, match="sweep\\(\\) has no option 'trails'"):
        mlp.sweep(code="x", trails=3)
    assert BY_NAME["array"].wire is False


def test_where_it_is_started_from_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlp.submitting.provenance.told", lambda: {"commit": "a" * 40, "dirty": False})
    client = Answering()
    sweeping.send(client, {"name": "search", "code": "1"}, named=True)
    ((_, sent),) = client.asked
    assert sent["provenance"] == {"commit": "a" * 40, "dirty": False}


def test_the_usage_of_a_run_appears_in_its_table_and_its_picture() -> None:
    run = {
        **job_record("s.1"),
        "params": {},
        "metrics": {},
        "duration_s": 90.0,
        "core_hours": 0.05,
        "ram_peak": None,
        "tags": [],
        "note": "",
    }
    found = RunsTable({"runs": [run], "total": 1})
    heads, row, *_ = repr(found).splitlines()
    assert row[heads.index("core-hours") :].startswith("0.05")
    assert "core-hours: 0.05" in repr(RunPicture({"run": run}))
    frame = found.to_frame()
    assert (frame[0] if isinstance(frame, list) else frame.iloc[0])["core_hours"] == 0.05
    short = RunsTable({"runs": [run | {"core_hours": 0.000026}], "total": 1})
    assert "0.000026" in repr(short)
    older = {key: value for key, value in run.items() if key != "core_hours"}
    assert "core-hours" not in repr(RunPicture({"run": older})), "an older hub tells none"


def test_a_trial_that_was_stopped_early_is_not_said_to_be_cancelled_anywhere() -> None:
    stopped = job_record("s.1", phase="cancelled", state="error", reason="StoppedEarly", finished_at=NOW)
    run = {**stopped, "metrics": {}, "duration_s": 3.0, "ram_peak": None, "tags": [], "note": ""}
    found = RunsTable({"runs": [run], "total": 1})
    shown = [
        repr(found),
        repr(RunPicture({"run": {**run, "params": {}}})),
        repr(tables.jobs([stopped])),
        words.state(stopped),
        ends.ended(stopped),
        sweep_picture.trial_state(trial(1, state="stopped", phase="cancelled")),
    ]
    for text in shown:
        assert "stopped early" in text
        assert "cancelled" not in text
    frame = found.to_frame()
    assert (frame[0] if isinstance(frame, list) else frame.iloc[0])["reason"] == "StoppedEarly"
    assert words.state({**stopped, "reason": None}) == "cancelled"
    assert words.state({**stopped, "phase": "cancelling"}) == "cancelling"


def test_why_of_a_sweep_says_what_its_trials_wait_for() -> None:
    class Waiting(Answering):
        user = "ann"

        def why(self, name: str, user: str | None = None) -> dict[str, Any]:
            if name != "search.4":
                raise Refused("NotFound", f"job {name} does not exist")
            return {"job": name, "run": 1, "phase": "queued", "reasons": [], "position": 2, "queue_length": 3}

    client = Waiting(search=sweep())
    said = actions.why(client, parse(["why", "search"], COMMAND))
    assert said.lines[0] == "search is running."
    assert "1 trial waits: Waits for nodes." in said.lines
    assert said.lines[-2:] == ["search.4 is queued.", "Place 2 of 3 in the queue."]
    assert "Waits for nodes." in repr(sweeping.trials(sweep()))
    with pytest.raises(Refused, match="job other does not exist"):
        actions.why(client, parse(["why", "other"], COMMAND))
