"""The static picture: whole, valid, and harmless whatever a job calls itself or writes."""

from __future__ import annotations

import base64
import math
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlp.rendering import job_picture, reasons, stages, svg, tables, terminal
from support.clients.mlp_stand_in import FAILED, RUNNING, job_record, ranks

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>&lt;"
VOID = {"img", "br"}


class Reader(HTMLParser):
    """Notes tags and attributes, and that everything opened is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.images: list[str] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes |= {k for k, _ in attrs}
        self.images += [v for k, v in attrs if k == "src"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def read(html):
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    assert set(reader.tags) <= {"div", "b", "span", "pre", "table", "tr", "th", "td", "img"}
    assert reader.attributes <= {"class", "style", "src", "alt", "width", "height", "title"}
    for source in reader.images:
        drawn = base64.b64decode(source.removeprefix("data:image/svg+xml;base64,"))
        for element in ET.fromstring(drawn).iter():  # noqa: S314 - our own drawing
            assert element.tag.removeprefix("{http://www.w3.org/2000/svg}") in {
                "svg",
                "text",
                "path",
                "circle",
            }
    return reader


def snapshot(word="digits", **changes):
    job = job_record(**{**RUNNING, "progress": 40, "ranks": ranks("running"), **changes})
    log = [{"rank": 0, "time": "t", "stream": "stderr", "text": f"hello {word}"}]
    return {
        "job": job,
        "curves": {f"loss {word}": {"x": [1, 2, 3], "y": [3.0, None, 1.5]}},
        "log": log,
        "saved_at": "2026-11-21T10:00:00.000Z",
    }


def test_the_picture_tells_state_curves_ranks_and_log():
    reader = read(job_picture.html(snapshot()))
    assert "digits running" in reader.text
    assert "40 %" in reader.text
    assert "0: hello digits" in reader.text
    assert reader.text.count("worker") >= 2
    assert len(reader.images) == 1
    assert "  loss digits  █▁  from 3 to 1.5\n" in job_picture.text(snapshot())
    one = {**snapshot(), "curves": {"loss": {"x": [1], "y": [3.0]}, "accuracy": {"x": [], "y": []}}}
    assert "  loss      3\n" in job_picture.text(one)


def test_a_log_that_is_cut_says_so_and_how_to_see_all_of_it():
    log = [{"rank": 0, "time": f"t{n:02d}", "stream": "stdout", "text": f"epoch {n}"} for n in range(40)]
    cut = {**snapshot(), "log": log}
    html, text = read(job_picture.html(cut)).text, job_picture.text(cut)
    assert "The last 15 lines of the log; all of it: mlp logs digits" in html
    assert "epoch 25" in html
    assert "epoch 24" not in html
    assert "The last 5 lines of the log; all of it: mlp logs digits\n  0: epoch 35\n" in text
    whole = {**snapshot(), "log": log[:5]}
    assert "all of it" not in job_picture.html(whole) + job_picture.text(whole)
    long = {**snapshot(), "log": [{**log[0], "text": "x" * 9000}]}
    assert "The end of the log; all of it: mlp logs digits" in read(job_picture.html(long)).text


@pytest.mark.parametrize(
    ("ys", "line"),
    [
        ([], ""),
        ([math.nan], ""),
        ([2, 2], "▁▁"),
        ([0, 1, 2, 3, 4, 5, 6, 7], "▁▂▃▄▅▆▇█"),
        ([1e300, -1e300], "█▁"),
        ([0] * 48 + [1] * 48, "▁" * 12 + "█" * 12),
    ],
)
def test_a_curve_of_one_line_of_characters(ys, line):
    assert svg.spark(ys) == line


def test_the_logs_last_lines_are_those_written_last_whichever_rank_wrote_them():
    log = [
        {"rank": 0, "time": "2026-01-01T00:00:09Z", "stream": "stdout", "text": "the result"},
        {"rank": 1, "time": "2026-01-01T00:00:01Z", "stream": "stderr", "text": "a greeting"},
    ]
    shown_by = {**snapshot(), "log": log}
    for shown in (read(job_picture.html(shown_by)).text, job_picture.text(shown_by)):
        assert shown.index("a greeting") < shown.index("the result")


def test_a_failure_is_told_with_rank_exit_code_and_tail():
    job = snapshot(**FAILED)
    for shown in (read(job_picture.html(job)).text, job_picture.text(job)):
        assert "The program ended with an error (rank 1, exit code 3)" in shown
        assert "ValueError: no such digit" in shown


def test_a_waiting_job_says_why():
    reasons = [{"message": "red may use 2 cpu; 2 are in use"}, {"message": "no node has 8 cpu"}]
    job = {"name": "digits", "phase": "queued", "message": "red may use 2 cpu; 2 are in use", "workers": 1}
    shown = {"job": job, "why": {"reasons": reasons}}
    for text in (read(job_picture.html(shown)).text, job_picture.text(shown)):
        assert text.count("red may use 2 cpu; 2 are in use") == 1
        assert "no node has 8 cpu" in text


def test_a_job_of_which_only_the_name_is_known_is_not_given_a_shape():
    assert job_picture.text({"job": {"name": "digits", "user": "ann"}}) == "digits  unknown"


@pytest.mark.parametrize("field", ["name", "phase", "message", "tenant", "runtime"])
def test_script_in_a_field_of_the_job_stays_text(field):
    reader = read(
        job_picture.html(
            snapshot(**{field: EVIL, "phase": "queued"} if field == "message" else {field: EVIL})
        )
    )
    assert "script" not in reader.tags


def test_script_in_log_metric_rank_and_failure_stays_text():
    failure = {**FAILED["failure"], "message": EVIL, "tail": EVIL, "cause": EVIL}
    evil = snapshot(
        EVIL,
        **{**FAILED, "failure": failure},
        ranks=[{"rank": EVIL, "role": EVIL, "node": EVIL, "state": EVIL}],
    )
    reader = read(job_picture.html(evil))
    assert EVIL in reader.text


def test_job_output_cannot_control_the_terminal():
    shown = job_picture.text(snapshot("\x1b[2J\x1b]0;x\x07\x9b31m"))
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown)
    assert "\x1b" not in repr(tables.jobs([job_record("\x1b[31m")]))


def test_tables_escape_too():
    table = tables.jobs([job_record(EVIL)])
    assert "<script" not in table._repr_html_()


@pytest.mark.parametrize(
    "broken", [{}, {"job": None}, {"job": {}, "curves": [], "log": "x"}, {"curves": {"a": 3}, "log": [1]}]
)
def test_a_snapshot_that_is_not_one_does_no_harm(broken):
    read(job_picture.html(broken))
    job_picture.text(broken)


@settings(max_examples=60, deadline=None)
@given(st.text(), st.lists(st.one_of(st.none(), st.floats(), st.integers(-(10**300), 10**300)), max_size=30))
def test_any_name_and_any_values_give_a_picture_that_parses(name, ys):
    if not all(c.isprintable() for c in name):
        name = "x"
    drawn = svg.curve(name, [float(i) for i in range(len(ys))], ys)
    ET.fromstring(drawn)  # noqa: S314 - our own drawing


def test_a_quota_shows_used_free_borrowed_and_who():
    usage = {
        "tenant": {
            "name": "red",
            "cpu": 2.0,
            "gpu": 0,
            "ram": None,
            "cpu_inuse": 3.0,
            "gpu_inuse": 0,
            "ram_inuse": 2048,
            "borrowed": {"cpu": 1.0},
            "lent": {},
            "free": {"cpu": 0.5},
            "queue_order": "fifo",
        },
        "holdings": [{"holder": "digits", "user": "bob", "cpu": 3.0, "gpu": 0, "ram": 2048}],
    }
    table = tables.quota([usage])
    assert table.columns == ("team", "", "quota", "used", "free", "borrowed", "may borrow", "current users")
    assert table.rows == [
        ["red", "cpu", "2", "2", "0", "1", "0.5", "bob: digits (3 cpu, 2 GiB)"],
        ["", "ram", "no limit", "2 GiB", "no limit", "", "", ""],
    ]
    assert table.notes == [
        "quota = used + free, total in use = used + borrowed. borrowed: in use beyond the quota, and taken back first. "
        "may borrow: quota that others leave idle now.",
        "Order of the jobs of red: age alone.",
    ]
    usage["tenant"] |= {"cpu_inuse": 0.5, "borrowed": {}, "lent": {"cpu": 1.0}, "queue_order": "priority"}
    table = tables.quota([usage])
    assert table.columns == ("team", "", "quota", "used", "lent", "free", "current users")
    assert table.rows[0][:6] == ["red", "cpu", "2", "0.5", "1", "0.5"]
    assert table.notes == [
        "quota = used + lent + free. lent: others have it until your own jobs need it.",
        "Order of the jobs of red: priority, then age.",
    ]
    assert "<p>Order of the jobs of red: priority, then age.</p>" in table._repr_html_()
    assert repr(table).endswith("\nOrder of the jobs of red: priority, then age.")


def test_a_quota_that_was_lowered_or_is_kept_back_still_adds_up():
    tenant = {
        "name": "red",
        "cpu": 2.0,
        "ram": None,
        "cpu_inuse": 3.0,
        "ram_inuse": 0,
        "queue_order": "other",
    }
    lowered = tables.quota([{"tenant": {**tenant, "over": {"cpu": 1.0}, "free": {"cpu": 0}}}])
    assert lowered.columns[2:6] == ("quota", "used", "free", "borrowed")
    assert lowered.rows[0][2:6] == ["2", "2", "0", "1 beyond its limit"]
    assert lowered.notes[-1] == "Order of the jobs of red: other."
    partly = tables.quota(
        [{"tenant": {**tenant, "over": {"cpu": 0.25}, "borrowed": {"cpu": 1.0}, "free": {"cpu": 0}}}]
    )
    assert partly.rows[0][5] == "1 (0.25 beyond its limit)"
    kept = tables.quota([{"tenant": {**tenant, "cpu_inuse": 0.5, "free": {"cpu": 0.5}}}])
    assert kept.rows[0][2:5] == ["2", "0.5", "0.5 (1 kept back)"]
    assert tables.quota([{"tenant": {"name": "red", "cpu": 2.0, "cpu_inuse": 0.5}}]).notes == []


def test_a_long_cell_does_not_break_a_terminals_table():
    table = tables.Table(("name", "failure"), [("digits", "x" * 500)], [])
    assert max(len(line) for line in repr(table).splitlines()) < 80
    assert "x" * 500 in table._repr_html_()
    sentence = tables.Table(("name", "why"), [("digits", 'waits for "red" ' * 20)], [])._repr_html_()
    assert 'title="waits for &quot;red&quot; ' in sentence
    assert ">waits for" in sentence
    assert "&quot;red&quot; waits for...</td>" in sentence


def test_the_only_job_in_the_queue_is_next():
    found = {"job": "digits", "phase": "queued", "position": 1, "queue_length": 1}
    assert "Next in the queue." in reasons.why(found).lines
    assert "Place 2 of 3 in the queue." in reasons.why({**found, "position": 2, "queue_length": 3}).lines


def test_a_terminal_gets_nothing_that_steers_it_or_turns_the_writing():
    assert terminal.plain("a\x1b[2J\x9b\u202egnp\u2066.exe\u2028\n\tb") == "agnp.exe\n\tb"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("10%\r50%\r100%", "100%"),
        ("100 steps\r5", "500 steps"),
        ("windows\r", "windows"),
        ("1/3\b\b\b2/3 \x1b[32mloss\x1b[0m 0.5", "2/3 loss 0.5"),
        ("\b\bx\r\ny\rz", "x\nz"),
    ],
)
def test_text_overwritten_by_a_progress_bar_disappears_as_on_a_terminal(written, shown):
    assert terminal.plain(written) == shown
    job = {"job": {"name": "a"}, "log": [{"rank": 3, "text": written.partition("\n")[0]}]}
    line = f"3: {shown.partition(chr(10))[0]}"
    assert line in job_picture.text(job)
    assert line in job_picture.html(job)


def test_runtimes_are_listed_with_whose_they_are_and_what_they_start():
    found = [
        {"name": "plain", "tenant": None, "title": "Plain", "program": ["{program}"], "state": "approved"},
        {
            "name": "ring",
            "tenant": "red",
            "title": "Ring",
            "program": ["x"],
            "launcher": ["go", "{start_rank}"],
            "state": "approved",
        },
        {"name": "soon", "tenant": "red", "title": "Soon", "program": ["x"], "state": "submitted"},
    ]
    assert [row[:4] for row in tables.runtimes(found).rows] == [
        ["plain", "everybody", "Plain", "{program}"],
        ["ring", "red", "Ring", "go {start_rank}"],
    ]


def way(number, *stages, ended=None):
    told = [
        {"stage": stage, "time": f"2026-11-21T10:00:{at:02d}Z", "seconds": seconds}
        for stage, at, seconds in stages
    ]
    return {"attempt": number, "stages": told, "ended": ended, "ended_at": None}


def test_the_picture_tells_where_the_time_went():
    whole = way(
        1,
        ("queued", 0, None),
        ("admitted", 2, 2.0),
        ("started", 3, 0.44),
        ("first-line", 4, 0.05),
    )
    said = "2.5 s to first output: in the queue 2 s, starting its program 0.4 s, waiting for output 0.05 s"
    told = {**snapshot(), "attempts": [whole]}
    assert f"  {said}.\n" in job_picture.text(told)
    assert f"{said}." in read(job_picture.html(told)).text
    several = [
        {**whole, "ended": "requeued"},
        way(2, ("queued", 0, None), ("admitted", 1, 61.0), ("started", 2, 1.0)),
    ]
    text = job_picture.text({**snapshot(), "attempts": several})
    assert f"Attempt 1: {said}." in text
    assert "Attempt 2: 1 min 2 s until it ran: in the queue 1 min 1 s, starting its program 1 s." in text


def test_a_stage_in_progress_grows_and_one_of_an_ended_attempt_does_not():
    now = datetime(2026, 11, 21, 10, 0, 40, tzinfo=UTC)
    pulls = (("queued", 0, None), ("admitted", 1, 1.0), ("created", 2, 1.0), ("bound", 2, 0.0))
    (line,) = stages.lines([way(1, *pulls)], now)
    assert line.startswith("40 s of startup: in the queue 1 s")
    assert line.endswith("images and containers 38 s so far")
    assert "so far" not in stages.lines([way(1, *pulls, ended="suspended")], now)[0]


def test_a_picture_of_anybodys_does_not_break_it():
    assert stages.lines([{}, {"stages": 3}, {"stages": [3, {"stage": "x"}]}, way(1)]) == []
    assert job_picture.text({**snapshot(), "attempts": "x"}) == job_picture.text(snapshot())


def test_a_holder_of_storage_alone_appears_only_in_the_line_of_the_storage():
    usage = {
        "tenant": {"name": "red", "cpu": 2.0, "cpu_inuse": 1.0, "ram": 2048, "rom": 2**30, "rom_inuse": 4096},
        "holdings": [
            {"holder": "home of ann", "user": "ann", "cpu": 0, "gpu": 0, "ram": 0, "rom": 4096},
            {"holder": "job digits of bob", "user": "bob", "cpu": 1.0, "gpu": 0, "ram": 512, "rom": 0},
        ],
    }
    cpu, _ram, storage = tables.quota([usage]).rows
    assert cpu[-1] == "bob: job digits of bob (1 cpu, 512 MiB)"
    assert storage[-1] == "ann: home of ann (4 KiB)"
