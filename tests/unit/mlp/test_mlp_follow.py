"""Following: replay, outages, what is kept."""

from __future__ import annotations

import io

import pytest

from mlp import display, follow
from mlp.client import Client
from mlp.errors import Refused, Unreachable
from mlp.handle import Job
from mlp.history import CURVE_POINTS, LOG_LINES, SAVED_LINES, TRACK_MAX, History, Track
from mlp_stand_in import FINISHED, RUNNING, TOKEN, StandIn, job_record, line, point


@pytest.fixture
def world():
    with StandIn() as stand_in:
        stand_in.jobs["digits"] = job_record(**FINISHED)
        stand_in.points["digits"] = [point(i, step=i, loss=1 / i) for i in range(1, 6)]
        stand_in.lines["digits"] = [line(f"line {i}", i) for i in range(3)]
        yield stand_in


def frames(world, **more):
    return list(follow.frames(Client(world.url, TOKEN, "ann"), "digits", "ann", sleep=lambda _: None, **more))


def kinds(found):
    return [f["type"] for f in found]


def test_a_stream_is_read_from_replay_to_end(world):
    assert kinds(frames(world)) == ["live", "job", "metrics", "log", "synced", "end"]


def test_a_stream_that_breaks_is_resumed_and_nothing_counts_twice(world):
    world.drop_after = 3
    found = frames(world)
    assert kinds(found).count("lost") == 1
    seen = History()
    fresh = []
    replay = True
    for frame in found:
        fresh += seen.take(frame, replay=replay)
        if frame["type"] in {"lost", "synced"}:
            replay = frame["type"] == "lost"
    assert seen.tracks["loss"][0].seen == 5
    assert [x["text"] for x in fresh] == ["line 0", "line 1", "line 2"]


def test_where_streams_cannot_pass_it_asks(world):
    world.accept_streams = False
    found = frames(world)
    assert kinds(found)[-4:] == ["job", "events", "synced", "end"]


def test_a_job_that_is_not_there_is_refused_not_waited_for(world):
    world.jobs.clear()
    world.accept_streams = False
    with pytest.raises(Refused, match="there is no job digits"):
        frames(world)


def test_an_outage_longer_than_the_patience_ends_it():
    asked = Client("http://127.0.0.1:9/api/v1", TOKEN, "ann")
    with pytest.raises(Unreachable, match="The job goes on"):
        list(follow.frames(asked, "digits", "ann", patience=0, sleep=lambda _: None))


def test_text_elsewhere_than_on_a_terminal_is_a_few_lines_with_the_end_summed_up(world):
    world.jobs["digits"] |= RUNNING
    world.jobs["digits"]["_born"] = 0.0
    out = io.StringIO()
    job = display.watch_text(Job(Client(world.url, TOKEN, "ann"), job_record()), out)
    text = out.getvalue()
    assert job.phase == "finished"
    assert "\r" not in text
    assert "digits  finished" in text
    assert "accuracy 0.9667" in text


def test_text_on_a_terminal_is_one_line_written_over(world):
    out = io.StringIO()
    display.watch_text(Job(Client(world.url, TOKEN, "ann"), job_record()), out, live=True)
    assert out.getvalue().startswith("\rdigits  finished  [####")


def test_a_long_curve_keeps_its_ends_and_its_bounds():
    track = Track()
    for i in range(50_000):
        track.add(float(i), float(i))
    assert len(track.x) <= TRACK_MAX
    assert track.x == track.y == sorted(track.x)
    seen = History()
    seen.tracks = {"loss": {0: track}}
    curve = seen.curve("loss")
    assert len(curve["x"]) <= CURVE_POINTS
    assert curve["x"][-1] > 49_000


def test_a_curve_of_several_ranks_is_their_mean():
    seen = History()
    seen.add_points(
        [point(1, 0, step=1, loss=1.0), point(2, 1, step=1, loss=3.0), point(3, 0, step=2, loss=0.5)]
    )
    assert seen.curve("loss") == {"x": [1.0, 2.0], "y": [2.0, 0.5]}
    assert seen.latest()["loss"] == pytest.approx(1.75)


def test_values_that_are_not_finite_come_as_null_and_are_left_out():
    seen = History()
    seen.add_points([{"seq": 1, "time": 0, "rank": 0, "values": {"loss": None, "accuracy": 0.5}}])
    assert set(seen.tracks) == {"accuracy"}


def test_a_flood_of_log_lines_is_bounded():
    seen = History()
    seen.add_lines(0, [line(str(i)) for i in range(10 * LOG_LINES)], replay=False)
    assert LOG_LINES <= len(seen.log) <= 2 * LOG_LINES
    assert seen.last_lines(1)[0]["text"] == str(10 * LOG_LINES - 1)


def test_the_last_lines_are_those_written_last_also_where_a_rank_was_given_up_long_before():
    seen = History()
    for rank, second in ((0, 30), (1, 40), (2, 10)):
        seen.add_lines(rank, [line(f"rank {rank}", second) for _ in range(LOG_LINES)], replay=True)
    assert {x["text"] for x in seen.snapshot()["log"]} == {"rank 1"}
    assert len(seen.snapshot()["log"]) == SAVED_LINES


def test_a_rank_that_the_job_gave_up_has_no_part_in_the_last_values():
    seen = History({"ranks": [{"rank": 0}, {"rank": 1}]})
    seen.add_points([point(1, 0, loss=1.0), point(2, 1, loss=3.0), point(3, 2, loss=50.0)])
    assert seen.latest()["loss"] == 2.0
    seen.job = {"ranks": []}
    assert seen.latest()["loss"] == 18.0
