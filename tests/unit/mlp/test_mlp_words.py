"""How facts read: amounts as in the widget, how jobs and ranks ended, what a waiting job says."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from mlp.handles.compared_runs import RunsTable
from mlp.rendering import ends, job_picture, rank_use, reasons, tables, times, words
from mlp.rendering.format import amount, clock_time, memory, starts
from support.clients.mlp_stand_in import FAILED, FINISHED, RUNNING, job_record, ranks

TABLE = json.loads((Path(__file__).parents[3] / "widgets/test/format/amounts.json").read_text())
USED = json.loads((Path(__file__).parents[3] / "widgets/test/jobs/used.json").read_text())
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
QUEUED = {
    "job": "l2",
    "phase": "queued",
    "reasons": [{"reason": "WaitingForQuota", "message": "red may use 1 cpu", "numbers": {}}],
    "position": 1,
    "queue_length": 2,
    "expected_start": None,
    "expected_because": "no time can be estimated: long of bob has no time limit",
    "would_start_now": ["--cpu 0.4"],
}
UNKNOWN = "No time can be estimated: long of bob has no time limit."


@pytest.mark.parametrize(
    ("write", "rows"),
    [(memory, TABLE["ram"]), (amount, TABLE["cpu"])],
)
def test_amounts_read_as_in_the_widget(write, rows):
    assert [[value, write(value)] for value, _ in rows] == rows


@pytest.mark.parametrize("told", USED)
def test_the_usage_of_ranks_reads_as_in_the_widget(told):
    first = told["job"]["ranks"][0]
    assert (rank_use.used(told["job"]), rank_use.cpu_used(first), rank_use.memory_used(first)) == (
        told["sentence"], told["cpu"], told["ram"],
    )  # fmt: skip


def test_picture_and_command_of_an_ended_job_say_what_was_asked_for_and_used():
    job = job_record(**{**FINISHED, **USED[0]["job"]})
    job["ranks"] = [
        {"rank": 0, "role": "worker", "node": "n1", "state": "finished", **USED[0]["job"]["ranks"][0]}
    ]
    for shown in (job_picture.html({"job": job}), job_picture.text({"job": job})):
        assert USED[0]["sentence"] in shown
    assert USED[0]["cpu"] in job_picture.html({"job": job})


def test_a_missing_amount_means_no_limit():
    assert {memory(None), amount(None)} == {"no limit"}


def test_why_of_a_failed_job_names_rank_and_exception():
    failure = {"cause": "program-error", "rank": 1, "exit_code": 1, "message": "ValueError: boom", "tail": ""}
    job = job_record(**{**FAILED, "failure": failure})
    lines = reasons.why({"job": "digits", "phase": "failed", "reasons": []}, job).lines
    assert lines[0].startswith("digits failed at ")
    assert lines[1] == "The program ended with an error (rank 1, exit code 1): ValueError: boom."
    assert lines[2] == "Full output: mlp logs digits --rank 1"


def test_why_of_a_finished_job_says_when_and_how_long():
    (line,) = reasons.why({"job": "digits", "phase": "finished"}, job_record(**FINISHED)).lines
    assert line.startswith("digits finished at ")
    assert " after " in line


def test_the_reason_of_a_suspended_job_shows_how_to_resume_it():
    found = {"job": "digits", "phase": "suspended", "reasons": []}
    assert reasons.why(found).lines[-1] == "To continue: mlp resume digits"


def test_a_waiting_job_without_an_estimate_says_why_there_is_none_everywhere():
    waiting = job_record("l2", phase="queued", state="creating", message="")
    for text in (repr(reasons.why(QUEUED)), job_picture.text({"job": waiting, "why": QUEUED})):
        assert UNKNOWN in text
        assert "Could start now with --cpu 0.4: mlp cancel l2, then mlp resubmit l2 --cpu 0.4" in text
    assert UNKNOWN in job_picture.html({"job": waiting, "why": QUEUED})
    assert words.unknown_start({**QUEUED, "expected_start": "2026-11-21T12:00:00Z"}) == ""
    whole = words.unknown_start(
        {**QUEUED, "expected_because": "Its tenant is gone. Submit it to another one."}
    )
    assert whole == "No time can be estimated: Its tenant is gone. Submit it to another one."


def test_a_rank_that_another_took_along_says_which():
    job = {"failure": {"rank": 1}}
    assert (
        ends.rank_state(job, {"rank": 0, "state": "stopped", "signal": 9}) == "stopped because rank 1 failed"
    )
    assert ends.rank_state(job, {"rank": 1, "state": "failed", "exit_code": 3}) == "failed, exit code 3"
    assert ends.rank_state({}, {"rank": 0, "state": "stopped", "signal": 15}) == "stopped"
    assert ends.rank_state({}, {"rank": 0, "state": "stopped"}) == "never started"
    assert ends.rank_state({}, {"rank": 0, "state": "finished", "exit_code": 0}) == "finished"


def test_a_suspended_job_does_not_claim_to_have_waited_all_the_time():
    job = {"phase": "suspended", "submitted_at": (NOW - timedelta(seconds=139)).isoformat()}
    assert times.age(job, NOW) == "submitted 2 min 19 s ago"
    queued = {**job, "phase": "queued", "waiting_since": job["submitted_at"]}
    assert times.age(queued, NOW) == "waits 2 min 19 s"


def ago(seconds: float) -> str:
    return (NOW - timedelta(seconds=seconds)).isoformat()


def test_a_job_that_was_stopped_for_others_waits_since_then_and_has_run():
    job = {
        "name": "j",
        "phase": "queued",
        "submitted_at": ago(330),
        "waiting_since": ago(15),
        "ran_s": 310.0,
        "waited_s": 5.0,
    }
    assert times.age(job, NOW) == "waits 15 s, ran 5 min 10 s"
    assert times.age({**job, "phase": "suspended", "waiting_since": None}, NOW) == "ran 5 min 10 s"
    again = {**job, "phase": "running", "waiting_since": None, "started_at": ago(8)}
    assert times.age(again, NOW) == "for 8 s, 5 min 18 s in all"
    dropped = {**job, "phase": "cancelled", "waiting_since": None, "finished_at": ago(0)}
    assert times.age(dropped, NOW) == "ran 5 min 10 s"
    assert ends.ended(dropped).endswith("; it had run for 5 min 10 s.")
    done = {**again, "phase": "finished", "finished_at": ago(0), "ran_s": 318.0}
    assert times.age(done, NOW) == "ran 5 min 18 s"
    assert ends.ended(done).endswith(" after 5 min 18 s.")


def test_a_job_that_is_about_to_start_tells_what_it_waited():
    job = {
        "phase": "starting",
        "submitted_at": ago(80),
        "waiting_since": None,
        "waited_s": 75.2,
        "ran_s": 0.0,
    }
    assert times.age(job, NOW) == "waited 1 min 15 s"


def test_a_saved_picture_of_an_older_hub_tells_what_it_knows():
    assert times.age({"phase": "finished", "started_at": ago(20), "finished_at": ago(10)}, NOW) == "ran 10 s"


def test_the_time_left_follows_the_progress_of_the_current_attempt():
    job = {"phase": "running", "progress": 64, "started_at": ago(100), "restarts": 1}
    first = {**job, "restarts": 0, "progress_from": 0, "progress_since": ago(100)}
    assert times.time_left(first, NOW) == "about 56 s left"
    later = {**job, "progress_from": 60, "progress_since": ago(60)}
    assert times.time_left(later, NOW) == "about 9 min left"
    assert times.time_left({**later, "progress": 61}, NOW) == ""
    assert times.time_left({**job, "progress_from": 0, "progress_since": None}, NOW) == ""


def test_of_a_job_that_just_began_no_time_left_is_said():
    job = {"phase": "running", "progress": 2, "progress_from": 0, "progress_since": ago(20)}
    assert times.time_left(job, NOW) == ""  # it imported for long; the rest takes half a minute
    assert times.time_left({**job, "progress": 50, "progress_since": ago(5)}, NOW) == ""
    assert times.time_left({**job, "progress": 10}, NOW) == "about 3 min left"
    assert times.time_left({**job, "progress_since": ago(90)}, NOW) == "about 1 h 13 min left"


def test_a_traceback_is_shown_once():
    log = [
        {"rank": 0, "time": "t", "stream": "stdout", "text": "hello"},
        {"rank": 1, "time": "t", "stream": "stderr", "text": "ValueError: no such digit"},
        {"rank": 0, "time": "t", "stream": "stderr", "text": "other"},
    ]
    html = job_picture.html({"job": job_record(**FAILED), "log": log})
    assert html.count("ValueError: no such digit") == 1
    assert "0: hello" in html
    assert "0: other" in html


def test_an_unknown_value_of_a_rank_is_a_dash():
    known = [{**r, "cpu": None, "ram": None} for r in ranks("running")]
    assert job_picture.html({"job": job_record(**{**RUNNING, "ranks": known})}).count(">–<") == 2 * len(known)


@pytest.mark.parametrize(
    ("shell", "cancel", "first"),
    [
        (None, "mlp cancel digits", "Start one: mlp submit SCRIPT --workers 2 --cpu 0.4"),
        (object(), "%mlp cancel digits", "Start one: %%mlp submit --workers 2 --cpu 0.4"),
    ],
)
def test_a_command_is_named_as_one_would_type_it_here(monkeypatch, shell, cancel, first):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert words.command("cancel digits") == cancel
    assert repr(tables.jobs([])).endswith(first)


def test_why_says_how_sure_a_start_is() -> None:
    told = {**QUEUED, "expected_start": "2026-11-21T13:00:00Z", "expected_because": "job a ends"}
    sure = {"how_sure": "sure", "sure_because": "every job ahead has a time limit"}
    text = str(reasons.why({**told, **sure}))
    assert "Confidence: sure, every job ahead has a time limit." in text
    assert "Confidence" not in str(reasons.why(told))


STOPPED = {
    "kind": "preempted",
    "time": "2026-11-21T12:00:00Z",
    "message": "stopped to make room for a job of team blue: blue takes back what red had borrowed",
    "kept": "its newest checkpoint was written 35 s before it was stopped; later work must be repeated",
    "checkpoint_at": "2026-11-21T11:59:25Z",
}


def test_why_of_a_job_that_was_stopped_says_for_whom_and_what_is_kept() -> None:
    told = {**QUEUED, "stopped": STOPPED, "cut_short": "with 900 jobs waiting no smaller request was tried"}
    lines = reasons.why(told).lines
    at = clock_time(STOPPED["time"])
    assert lines[1:4] == [
        f"Its last attempt ended {at}: {STOPPED['message']}.",
        "Its newest checkpoint was written 35 s before it was stopped; later work must be repeated.",
        "Waits for quota: red may use 1 cpu",
    ]
    assert lines[-1] == "With 900 jobs waiting no smaller request was tried."
    drawn = job_picture.text({"job": job_record(phase="queued"), "why": told})
    assert "stopped to make room for a job of team blue" in drawn
    assert ends.stopped({}) == ends.stopped({"stopped": None}) == []


def test_a_hint_to_a_smaller_request_warns_about_a_lost_checkpoint_in_the_same_sentence() -> None:
    way = "Could start now with --cpu 0.4: mlp cancel l2, then mlp resubmit l2 --cpu 0.4"
    lost = "; that is a new job. It starts from the beginning and does not use the checkpoint of l2"
    assert words.prospects({**QUEUED, "stopped": STOPPED})[-1] == way + lost
    assert words.prospects({**QUEUED, "stopped": {**STOPPED, "checkpoint_at": None}})[-1] == way
    assert words.prospects({**QUEUED, "stopped": None})[-1] == way


OFFER = {
    "fits_now": True, "expected_start": None, "placement": {"n1": 2}, "cpu": 2.0, "gpu": 0, "ram": 2048,
    "reasons": [], "would_start_now": [], "gives_way": [], "grace": 0.0,
}  # fmt: skip


def test_an_offer_that_stops_others_does_not_say_that_it_starts_now() -> None:
    assert reasons.offer(OFFER).lines[0] == "Would start now: 2 ranks on n1."
    gives_way = [
        "job low of ann is stopped for it and goes back into the queue",
        "a job of team blue gives up 1 worker for it",
    ]
    assert reasons.offer({**OFFER, "gives_way": gives_way, "grace": 30.0}).lines == [
        "Would start as soon as others have made room, within 30 s: 2 ranks on n1.",
        "Job low of ann is stopped for it and goes back into the queue.",
        "A job of team blue gives up 1 worker for it.",
        "Needed quota: 2 cpu, 0 gpu, 2 GiB.",
    ]


def test_why_tells_what_the_scheduler_decided_and_names_no_strangers() -> None:
    decision = {
        "time": "2026-11-21T12:00:00Z",
        "summary": "stopped to make room for a job of another team",
        "waited_for": "Needs 1 cpu, 0 free.",
        "changed": ["job a of bob ended"],
        "nodes": [{"node": "n-1", "chosen": True}, {"node": "n-2", "chosen": False}],
        "victims": [
            {"job": None, "user": None, "priority": 50, "chosen": True, "why": "the least work is lost"}
        ],
        "spared": ["2 jobs have no lower priority"],
    }
    found = {"job": "l2", "phase": "running", "reasons": [], "expected_because": "running on n-1"}
    text = str(reasons.why(found, None, [decision]))
    for part in (
        "stopped to make room for a job of another team.",
        "Reason for the wait until then: Needs 1 cpu, 0 free.\n",
        "Changes: job a of bob ended.",
        "Next best: n-2.",
        "a job of another team, priority low: stopped, the least work is lost.",
        "Not touched: 2 jobs have no lower priority.",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("workers", "placed", "text"),
    [
        ("1:3", ["worker", "worker"], "2 workers (1 to 3)"),
        ("1:3", ["chief", "ps"], "1 worker (1 to 3) + 1 ps"),
        ("1:3", [], "1 to 3 workers"),
        (2, ["worker", "worker"], "2 workers"),
        (1, [], "1 worker"),
    ],
)
def test_an_elastic_job_says_how_many_workers_it_has_now(workers, placed, text):
    found = [{"rank": n, "role": role} for n, role in enumerate(placed)]
    assert words.workers({"workers": workers, "ranks": found, "ps": placed.count("ps")}) == text


def test_the_state_of_a_waiting_job_is_one_word_and_the_reason_has_a_separate_column():
    message = "red may use 4 cpu; 4 in use"
    waiting = job_record("digits", phase="queued", state="creating", position=2, message=message)
    table = tables.jobs([waiting, job_record("a", **FAILED)])
    shown = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    assert [(row["state"], row["why"]) for row in shown] == [
        ("queued", "place 2 in the queue; red may use 4 cpu; 4 in use"),
        ("failed", ends.failure(FAILED)),
    ]


def test_a_row_of_jobs_is_one_line_of_a_narrow_terminal(monkeypatch):
    message = "red may use 4 cpu; 4 in use by job long of ann (4)"
    rows = [
        job_record(name, phase="queued", state="creating", position=1, message=message)
        for name in ("digits", "d" * 60)
    ]
    monkeypatch.setattr(tables, "terminal_width", lambda: 0)
    piped = repr(tables.jobs(rows)).splitlines()
    assert len(piped) == 3
    assert max(map(len, piped)) > 80
    for columns in (120, 80, 60, 40):
        monkeypatch.setattr(tables, "terminal_width", lambda columns=columns: columns)
        head, *narrow = repr(tables.jobs(rows)).splitlines()
        assert max(map(len, [head, *narrow[:2]])) <= columns
        assert {"name", "state", "why"} <= set(head.split()), columns
        assert sum("digits" in line for line in narrow) == 1
        assert len(narrow) == (2 if columns == 120 else 3)
    # at 80: the columns that say least
    monkeypatch.setattr(tables, "terminal_width", lambda: 80)
    assert (
        repr(tables.jobs(rows)).splitlines()[-1]
        == "Not shown: run, team, runtime, ranks. All columns: --wide"
    )
    wide = tables.jobs(rows)
    wide.wide = True
    assert repr(wide).splitlines() == piped


def test_a_row_of_runs_is_one_line_of_a_narrow_terminal(monkeypatch):
    run = {
        "job": "digits", "run": 3, "user": "ann", "phase": "finished", "state": "finished", "duration_s": 61.0, "core_hours": 0.5,
        "ram_peak": 512, "tags": ["good", "paper"], "note": "the one of the paper, with a long note that goes on for a while",
        "params": {"lr": 0.1, "batch": 64, "depth": 3}, "metrics": {"loss": {"best": 0.25}, "accuracy": {"best": 0.9711}},
    }  # fmt: skip
    found = {"runs": [run], "total": 1, "params": ["lr", "batch", "depth"], "metrics": ["loss", "accuracy"]}
    monkeypatch.setattr(tables, "terminal_width", lambda: 80)
    head, row, *notes = repr(RunsTable(found)).splitlines()
    assert max(len(head), len(row)) <= 80
    assert head.startswith("run ")
    assert "best loss" in head
    assert "finished" in row
    assert notes[0] == "1 run"
    assert notes[1].startswith("Not shown: ")
    assert notes[1].endswith("--wide")
    table = RunsTable(found)
    table.wide = True
    assert "the one of the paper" in repr(table)


def test_a_table_without_an_order_of_columns_continues_below_and_loses_nothing(monkeypatch):
    rows = [
        [
            "digits",
            "red may use 4 cpu; 4 in use by job long of ann (4)",
            "a sentence of some length that has no room",
        ]
    ]
    table = tables.Table(("name", "why", "note"), rows, rows)
    monkeypatch.setattr(tables, "terminal_width", lambda: 60)
    narrow = repr(table).splitlines()
    assert max(map(len, narrow)) <= 60
    assert sorted(" ".join(narrow[1:]).split()) == sorted(" ".join(rows[0]).split())


def test_a_start_that_is_soon_is_told_by_how_long_it_is_until_then() -> None:
    now = datetime(2026, 11, 22, 7, 1, 0, tzinfo=UTC)

    def told(seconds: float) -> str:
        return starts((now + timedelta(seconds=seconds)).isoformat(), now)

    assert [told(26), told(119), told(0), told(-40)] == [
        "in 26 s",
        "in 1 min 59 s",
        "any moment now",
        "any moment now",
    ]
    far = (now + timedelta(seconds=120)).isoformat()
    assert told(120) == clock_time(far)
    assert starts(None) == ""
    due = {
        "job": "l2",
        "phase": "queued",
        "reasons": [],
        "expected_because": "job a of bob ends by then at the latest",
    }
    due |= {"expected_start": (datetime.now(UTC) - timedelta(seconds=5)).isoformat()}
    assert (
        "Expected to start any moment now (job a of bob ends by then at the latest)."
        in reasons.why(due).lines
    )
    assert words.state(due) == "queued: expected to start any moment now"


def test_an_offer_says_where_its_expected_start_comes_from() -> None:
    window = "window demo (2031-03-01 08:00 to 18:00 UTC) of red closes then"
    at = "2031-03-01T18:00:00Z"
    found = {
        "fits_now": False,
        "cpu": 3.0,
        "gpu": 0.0,
        "ram": 0,
        "expected_start": at,
        "expected_because": window,
    }
    assert reasons.offer(found).lines[0] == f"Would wait; expected to start {clock_time(at)} ({window})."
    unknown = found | {"expected_start": None, "expected_because": "long of bob has no time limit"}
    assert reasons.offer(unknown).lines[0] == (
        "Would wait. No time can be estimated: long of bob has no time limit."
    )


def test_priorities_are_called_by_the_names_of_their_classes() -> None:
    assert [words.priority(p) for p in (200, 100, 50, 70)] == ["high", "normal", "low", "70"]


def test_why_shows_the_facts_behind_a_reason_as_a_small_table() -> None:
    facts = [
        {"label": "asked", "value": "2 cpu", "who": ""},
        {"label": "in use", "value": "10 cpu", "who": "job long of ann"},
        {"label": "借出", "value": "1 cpu", "who": "tenant blue"},
    ]
    reason = {"reason": "WaitingForQuota", "message": "Needs 2 cpu, 0 free.", "facts": facts}
    lines = reasons.why({**QUEUED, "reasons": [reason]}).lines
    at = next(i for i, line in enumerate(lines) if line.endswith("Needs 2 cpu, 0 free."))
    assert lines[at + 1 : at + 4] == [
        "  asked   2 cpu",
        "  in use  10 cpu  job long of ann",
        "  借出    1 cpu   tenant blue",
    ]


def test_a_reason_that_is_newer_is_shown_as_it_is() -> None:
    assert [words.reason(r) for r in ("WaitingForQuota", "Other", None)] == ["Waits for quota", "Other", ""]


def test_why_of_a_starting_job_says_what_its_cluster_says() -> None:
    said = "its image cannot be fetched, but the cluster tries again: no such host"
    found = {"job": "digits", "phase": "starting", "reasons": [], "expected_because": said}
    assert reasons.why(found).lines == ["digits is starting.", f"I{said[1:]}."]
    assert reasons.why({**found, "expected_because": "it is starting"}).lines == ["digits is starting."]
    assert reasons.why({**found, "phase": "running", "expected_because": "it is running"}).lines == [
        "digits is running."
    ]


def test_the_table_says_why_a_job_does_not_run_yet() -> None:
    job = job_record(phase="starting", state="running", message="starting 2 ranks on node n1")
    assert tables.jobs([job]).rows[0][-1] == "starting 2 ranks on node n1"


def test_why_of_a_running_job_says_which_of_its_use_is_its_own_report() -> None:
    job = {
        "name": "train",
        "run": 1,
        "phase": "running",
        "ranks": [{"rank": 0, "reported": True}],
        "idle": {"idle_s": 0, "left_s": None, "kept_s": 0, "claims": True},
    }
    lines = reasons.why({"job": "train", "run": 1, "phase": "running"}, job).lines
    assert "It reports that it works, but the cluster measures no work of it." in lines
    assert "Use of CPU and memory by the job's own report." in lines
    measured = {**job, "ranks": [{"rank": 0, "reported": False}], "idle": None}
    assert len(reasons.why({"job": "train", "run": 1, "phase": "running"}, measured).lines) == 1


@pytest.mark.parametrize(
    ("asked", "fitting", "end"),
    [
        (8192, 2560, "--ram auto requests 2.5 GiB, 5.5 GiB less."),
        (512, 640, "--ram auto requests 640 MiB, 128 MiB more, because it adds a margin."),
        (640, 640, "--ram auto requests the same amount."),
    ],
)
def test_auto_memory_says_whether_it_is_less_or_more_than_before(asked: int, fitting: int, end: str) -> None:
    text = f"the last run like it used at most 300 MiB of {asked} MiB per rank"
    found = {
        "memory": {"runs": 1, "used": 300, "asked": asked, "ran_out": 0, "fitting": fitting, "text": text}
    }
    said = rank_use.memory_of_earlier_runs(found)
    assert said == f"T{text[1:]}; {end}"
