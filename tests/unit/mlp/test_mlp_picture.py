"""The static picture: whole, valid, and harmless whatever a job calls itself or writes."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlp import picture, svg, tables
from mlp_stand_in import FAILED, RUNNING, job_record, ranks

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
    reader = read(picture.html(snapshot()))
    assert "digits running" in reader.text
    assert "40 %" in reader.text
    assert "0: hello digits" in reader.text
    assert reader.text.count("worker") >= 2
    assert len(reader.images) == 1
    assert "loss digits 1.5" in picture.text(snapshot())


def test_the_logs_last_lines_are_those_written_last_whichever_rank_wrote_them():
    log = [
        {"rank": 0, "time": "2026-01-01T00:00:09Z", "stream": "stdout", "text": "the result"},
        {"rank": 1, "time": "2026-01-01T00:00:01Z", "stream": "stderr", "text": "a greeting"},
    ]
    shown_by = {**snapshot(), "log": log}
    for shown in (read(picture.html(shown_by)).text, picture.text(shown_by)):
        assert shown.index("a greeting") < shown.index("the result")


def test_a_failure_is_told_with_rank_exit_code_and_tail():
    job = snapshot(**FAILED)
    for shown in (read(picture.html(job)).text, picture.text(job)):
        assert "The program ended with an error (rank 1, exit code 3)" in shown
        assert "ValueError: no such digit" in shown


def test_a_waiting_job_says_why():
    reasons = [{"message": "red may use 2 cpu; 2 are in use"}, {"message": "no node has 8 cpu"}]
    job = {"name": "digits", "phase": "queued", "message": "red may use 2 cpu; 2 are in use", "workers": 1}
    shown = {"job": job, "why": {"reasons": reasons}}
    for text in (read(picture.html(shown)).text, picture.text(shown)):
        assert text.count("red may use 2 cpu; 2 are in use") == 1
        assert "no node has 8 cpu" in text


def test_a_job_of_which_only_the_name_is_known_is_not_given_a_shape():
    assert picture.text({"job": {"name": "digits", "user": "ann"}}) == "digits  unknown"


@pytest.mark.parametrize("field", ["name", "phase", "message", "tenant", "runtime"])
def test_script_in_a_field_of_the_job_stays_text(field):
    reader = read(
        picture.html(snapshot(**{field: EVIL, "phase": "queued"} if field == "message" else {field: EVIL}))
    )
    assert "script" not in reader.tags


def test_script_in_log_metric_rank_and_failure_stays_text():
    failure = {**FAILED["failure"], "message": EVIL, "tail": EVIL, "cause": EVIL}
    evil = snapshot(
        EVIL,
        **{**FAILED, "failure": failure},
        ranks=[{"rank": EVIL, "role": EVIL, "node": EVIL, "state": EVIL}],
    )
    reader = read(picture.html(evil))
    assert EVIL in reader.text


def test_a_terminal_is_not_steered_by_what_a_job_writes():
    shown = picture.text(snapshot("\x1b[2J\x1b]0;x\x07\x9b31m"))
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown)
    assert "\x1b" not in repr(tables.jobs([job_record("\x1b[31m")]))


def test_tables_escape_too():
    table = tables.jobs([job_record(EVIL)])
    assert "<script" not in table._repr_html_()


@pytest.mark.parametrize(
    "broken", [{}, {"job": None}, {"job": {}, "curves": [], "log": "x"}, {"curves": {"a": 3}, "log": [1]}]
)
def test_a_snapshot_that_is_not_one_does_no_harm(broken):
    read(picture.html(broken))
    picture.text(broken)


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
        },
        "holdings": [{"holder": "digits", "user": "bob", "cpu": 3.0, "gpu": 0, "ram": 2048}],
    }
    rows = tables.quota([usage]).rows
    assert rows == [
        ["red", "cpu", "3", "0.5", "2", "1", "bob: digits (3 cpu, 2 GiB)"],
        ["", "ram", "2 GiB", "no limit", "no limit", "", ""],
    ]
    usage["tenant"] |= {"cpu_inuse": 0.5, "borrowed": {}, "lent": {"cpu": 1.0}}
    assert tables.quota([usage]).rows[0][:6] == ["red", "cpu", "0.5", "0.5", "2", "lent 1"]
    usage["tenant"] |= {
        "cpu_inuse": 3.0,
        "lent": {},
        "free": {},
    }  # lowered below what is in use: not borrowed
    assert tables.quota([usage]).rows[0][:6] == ["red", "cpu", "3", "0", "2", ""]


def test_a_long_cell_does_not_break_a_terminals_table():
    table = tables.Table(("name", "failure"), [("digits", "x" * 500)], [])
    assert max(len(line) for line in repr(table).splitlines()) < 80
    assert "x" * 500 in table._repr_html_()


def test_who_is_alone_in_the_queue_is_next():
    found = {"job": "digits", "phase": "queued", "position": 1, "queue_length": 1}
    assert "Next in the queue." in tables.why(found).lines
    assert "Place 2 of 3 in the queue." in tables.why({**found, "position": 2, "queue_length": 3}).lines


def test_a_terminal_gets_nothing_that_steers_it_or_turns_the_writing():
    assert picture.plain("a\x1b[2J\x9b\r\u202egnp\u2066.exe\u2028\n\tb") == "a[2Jgnp.exe\n\tb"
