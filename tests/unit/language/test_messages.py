from __future__ import annotations

import json
from zoneinfo import ZoneInfo

import pytest

from mlp_language.catalogue import best_of, of_environment
from mlp_language.message import (
    JobRef,
    Message,
    Moment,
    Quantity,
    Span,
    TenantRef,
    Viewer,
    from_data,
    msg,
    msgs,
    refs,
    to_data,
)
from mlp_language.render import ENGLISH, Reader, plain, render

ANN = JobRef("1", "digits", "ann", "red")
BOB = JobRef("2", "words", "bob", "blue")
CY = JobRef("3", "faces", "cy", "blue")


def ends(*jobs: JobRef) -> Message:
    return msg("starts when {jobs} end", jobs=jobs)


def test_a_message_comes_back_from_json_as_it_was() -> None:
    whole = msg(
        "{a} {b} {c} {d} {e} {f} {g} {h}",
        a="name",
        b=3,
        c=2.5,
        d=Quantity(2.2, "cpu"),
        e=Span(90.0),
        f=Moment(1.8e9, 1.7e9),
        g=(ANN, TenantRef("red"), "x"),
        h=msgs("{n} rank", "{n} ranks", n=2),
    )
    assert from_data(json.loads(json.dumps(to_data(whole)))) == whole


def test_text_written_by_a_person_is_never_a_template() -> None:
    assert plain(msg("job {name} waits", name="{name.__class__}")) == "job {name.__class__} waits"


@pytest.mark.parametrize(
    ("viewer", "text"),
    [
        (Viewer(), "starts when job digits of ann, job words of bob and job faces of cy end"),
        (
            Viewer(frozenset({"red"}), frozenset({"blue"})),
            "starts when job digits of ann and 2 jobs of team blue end",
        ),
        (Viewer(frozenset({"red"})), "starts when job digits of ann and 2 jobs of other teams end"),
        (Viewer(frozenset()), "starts when 3 jobs of other teams end"),
    ],
)
def test_jobs_that_a_reader_may_not_see_are_counted_and_not_named(viewer: Viewer, text: str) -> None:
    assert plain(viewer.hidden(ends(ANN, BOB, CY))) == text


def test_hidden_values_are_not_in_the_data_either() -> None:
    data = json.dumps(to_data(Viewer(frozenset({"red"})).hidden(ends(BOB))))
    assert not any(secret in data for secret in ("words", "bob", "blue", '"2"'))


def test_a_message_tells_whom_it_is_about() -> None:
    assert refs(msg("{x}: {y}", x=ends(ANN, BOB), y=TenantRef("red"))) == (ANN, BOB, TenantRef("red"))


def test_a_literal_brace_is_written_twice_with_and_without_arguments() -> None:
    assert plain(msg("neither {{program}} nor {{entry}}")) == "neither {program} nor {entry}"
    assert plain(msg("there is no {{{name}}}", name="x")) == "there is no {x}"


def test_a_long_list_is_counted() -> None:
    assert plain(msg("{all}", all=("a", "b", "c", "d", "e"))) == "a, b, c and 2 more"


def test_one_and_several_read_as_they_should() -> None:
    assert [plain(msgs("{n} rank", "{n} ranks", n=n)) for n in (0, 1, 2)] == ["0 ranks", "1 rank", "2 ranks"]


@pytest.mark.parametrize(
    ("seconds", "text"), [(90.0, "90 s"), (150.0, "2.5 min"), (7200.0, "2 h"), (302400.0, "3.5 days")]
)
def test_a_span_is_in_the_largest_unit_that_it_fills_twice(seconds: float, text: str) -> None:
    assert plain(msg("{s}", s=Span(seconds))) == text


def test_a_moment_is_in_the_readers_zone() -> None:
    opens = msg("opens {at}", at=Moment(1_800_000_000.0, 1_800_000_000.0 - 60))
    assert render(opens, ENGLISH) == "opens at 08:00:00 UTC"
    assert render(opens, Reader(zone=ZoneInfo("Asia/Shanghai"))) == "opens at 16:00:00"
    other_day = msg("opens {at}", at=Moment(1_800_000_000.0, 1_799_900_000.0))
    assert render(other_day, ENGLISH) == "opens at 2027-01-15 08:00:00 UTC"
    assert plain(msg("opens {at}", at=Moment(100.0, 74.0))) == "opens in 26 s"


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("zh-TW,zh;q=0.9,en;q=0.8", "zh-CN"),
        ("en-GB,zh;q=0.5", "en"),
        ("de,fr;q=0.9", "en"),
        ("de, zh;q=0.1", "zh-CN"),
        ("zh;q=0, en", "en"),
        ("", "en"),
        (";;;q=x,,", "en"),
    ],
)
def test_the_language_is_the_best_of_those_accepted(accepted: str, language: str) -> None:
    assert best_of(accepted) == language


def test_a_terminals_language_is_its_locales() -> None:
    assert of_environment({"LANG": "zh_CN.UTF-8"}) == "zh-CN"
    assert of_environment({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}) == "en"
    assert of_environment({"LANG": "C", "MLP_LANGUAGE": "zh"}) == "zh-CN"
    assert of_environment({}) == "en"
