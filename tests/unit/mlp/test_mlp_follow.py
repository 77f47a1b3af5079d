"""Following: replay, outages, what is kept."""

from __future__ import annotations

import io
import math
import sys

import pytest

from mlp.client import follow
from mlp.client.rest import Client
from mlp.display import job_monitor, log_tail
from mlp.errors import Refused, Unreachable
from mlp.handles.job import Job
from mlp.rendering import job_picture, terminal
from mlp.rendering.history import CURVE_POINTS, LOG_LINES, SAVED_LINES, TRACK_MAX, History
from support.clients.mlp_stand_in import FAILED, FINISHED, RUNNING, TOKEN, StandIn, job_record, line, point


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
    assert kinds(found)[-5:] == ["job", "events", "attempts", "synced", "end"]


def test_where_nothing_can_open_a_stream_it_asks_at_once(world, monkeypatch):
    monkeypatch.setitem(sys.modules, "websocket", None)
    assert kinds(frames(world)) == ["job", "events", "attempts", "synced", "end"]


def test_a_token_follows_no_redirect(world):
    world.streams_are_at = f"{world.url}/auth"
    found = frames(world)
    assert kinds(found)[-5:] == ["job", "events", "attempts", "synced", "end"]
    assert ("GET", "/auth") not in world.seen


def test_a_stream_that_is_closed_for_a_reason_tells_it(world):
    world.drop_after, world.close_code = 3, 4401
    lost = next(f for f in frames(world) if f["type"] == "lost")
    assert lost["message"] == "closed with 4401 no more"


def test_a_job_that_is_not_there_is_refused_not_waited_for(world):
    world.jobs.clear()
    world.accept_streams = False
    with pytest.raises(Refused, match="job digits does not exist"):
        frames(world)


def test_an_outage_longer_than_the_patience_ends_it():
    asked = Client("http://127.0.0.1:9/api/v1", TOKEN, "ann")
    with pytest.raises(Unreachable, match="The job continues"):
        list(follow.frames(asked, "digits", "ann", patience=0, sleep=lambda _: None))


def test_text_elsewhere_than_on_a_terminal_is_a_few_lines_with_the_end_summed_up(world):
    world.jobs["digits"] |= RUNNING
    world.jobs["digits"]["_born"] = 0.0
    out = io.StringIO()
    job = job_monitor.watch_text(Job(Client(world.url, TOKEN, "ann"), job_record()), out)
    text = out.getvalue()
    assert job.phase == "finished"
    assert "\r" not in text
    assert "digits  finished" in text
    assert "accuracy 0.9667" in text


BAR = [
    (" 10%|#   |", True),
    ("\r 20%|##", True),
    ("\r 3", True),
    ("0%|###", True),
    ("\r100%|####|", False),
    ("over", False),
]


def test_a_progress_bar_is_one_line_of_the_picture_however_its_parts_come():
    seen = History()
    for number, (text, partial) in enumerate(BAR[:4]):
        seen.add_lines(0, [line(text, number) | {"partial": partial}], replay=False)
        seen.add_lines(1, [line(f"other {number}", number)], replay=False)
    shown = [terminal.plain(x["text"]) for x in seen.last_lines(40) if x["rank"] == 0]
    assert shown == [" 30%|### |"]
    whole = "".join(text for text, _ in BAR[:5])
    seen.add_lines(0, [line(whole, 9)], replay=True)
    assert [terminal.plain(x["text"]) for x in seen.last_lines(40) if x["rank"] == 0] == ["100%|####|"]


@pytest.mark.parametrize(("live", "written"), [(False, "100%|####|\nover\n"), (True, None)])
def test_a_followed_progress_bar_is_written_over_on_a_terminal_and_once_elsewhere(live, written):
    out = io.StringIO()
    out.isatty = lambda: live
    seen, writer = History(), log_tail._Writer(out, many=False)
    for text, partial in BAR:
        for fresh in seen.add_lines(0, [line(text) | {"partial": partial}], replay=False):
            writer.write(fresh)
    writer.end()
    over = "\r\x1b[J"
    drawn = [" 10%|#   |", " 20%|##  |", " 30%|##  |", " 30%|### |"]
    assert out.getvalue() == (written or over.join([*drawn, "100%|####|\nover\n"]))


def test_text_on_a_terminal_is_one_line_written_over(world):
    out = io.StringIO()
    job_monitor.watch_text(Job(Client(world.url, TOKEN, "ann"), job_record()), out, live=True)
    assert out.getvalue().startswith("\rdigits  finished  [####")


@pytest.mark.parametrize("count", [1, 2, 119, 121, 5_000, 50_001])
def test_a_curve_of_any_length_shows_reported_points_alone_with_its_ends_and_extremes(count):
    values = [math.sin(i / 7) / (1 + i) for i in range(count)]
    values[count // 3], values[count // 2] = 5.0, -3.0
    seen = History()
    seen.add_points({"seq": i + 1, "rank": 0, "step": i, "values": {"loss": v}} for i, v in enumerate(values))

    curve = seen.curve("loss")

    points = list(zip(curve["x"], curve["y"], strict=True))
    assert len(points) <= CURVE_POINTS
    assert set(points) <= set(enumerate(values))
    assert points == sorted(points)
    assert (points[0][1], points[-1][1]) == (values[0], values[-1])
    assert (min(curve["y"]), max(curve["y"])) == (min(values), max(values))
    assert seen.latest() == {"loss": values[-1]}
    assert len(seen.tracks["loss"][0].x) <= TRACK_MAX


def test_a_long_curve_of_several_ranks_shows_means_of_single_steps_and_ends_with_the_last():
    seen = History()
    steps = range(10_001)
    seen.add_points(
        {"seq": 2 * i + rank + 1, "rank": rank, "step": i, "values": {"loss": i + rank}}
        for i in steps
        for rank in (0, 1)
    )

    curve = seen.curve("loss")

    assert [y - x for x, y in zip(curve["x"], curve["y"], strict=True)] == [0.5] * len(curve["x"])
    assert (curve["x"][0], curve["x"][-1]) == (0.0, 10_000.0)


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


def test_a_followed_log_tells_why_the_job_waits_and_how_it_ended_beside_the_log(world):
    told, out = [], io.StringIO()
    world.jobs["digits"] = job_record(position=3, message="waits for 2 cpu of the quota of red")
    world.lines["digits"] = []
    found = Job(Client(world.url, TOKEN, "ann"), world.jobs["digits"])

    def tell(line):
        told.append(line)
        world.lines["digits"] = [line_of_the_job]
        world.jobs["digits"].update(FAILED, version=2)

    line_of_the_job = line("its only line", 1)
    log_tail.follow_lines(found, out, tell=tell)
    assert "place 3 in the queue; waits for 2 cpu of the quota of red" in told[0]
    assert "digits failed at" in told[-1]
    assert "rank 1" in told[-1]
    assert out.getvalue() == "its only line\n"
    assert found.phase == "failed"


def test_rows_of_a_growing_line_are_overwritten_on_a_terminal_and_printed_once_elsewhere():
    state, rows = terminal.STATE, terminal.BREAK
    pieces = [
        ("outer 0", True),
        (f"{state}outer 0{rows}inner 1", True),
        (f"{state}outer 1", False),
        ("over", False),
    ]
    for live, written in (
        (True, "0: outer 0\r\x1b[J0: outer 0\n0: inner 1\x1b[1A\r\x1b[J0: outer 1\n0: over\n"),
        (False, "0: outer 0\n0: over\n".replace("outer 0", "outer 1")),
    ):
        out = io.StringIO()
        out.isatty = lambda live=live: live
        seen, writer = History(), log_tail._Writer(out, many=True)
        for number, (text, partial) in enumerate(pieces):
            for fresh in seen.add_lines(0, [{**line(text, number), "partial": partial}], replay=False):
                writer.write(fresh)
        writer.end()
        assert out.getvalue() == written


def test_a_gap_in_a_log_is_shown_at_its_position_and_below_the_picture():
    gap = {
        **line(
            "[mlp] 136,018 lines (31 MiB) are missing here: a log keeps its first 4 MiB and its last 12 MiB.",
            1,
            "mlp",
        )
    }
    seen = History(job_record(**FINISHED))
    seen.take(
        {
            "type": "log",
            "rank": 0,
            "lines": [line("first"), gap, line("last", 2)],
            "dropped": 31 << 20,
            "dropped_lines": 136_018,
        }
    )
    assert [x["text"][:5] for x in seen.log] == ["first", "[mlp]", "last"]
    snapshot = seen.snapshot()
    assert snapshot["missing"] == [{"rank": 0, "bytes": 31 << 20, "lines": 136_018}]
    for drawn in (job_picture.text(snapshot), job_picture.html(snapshot)):
        assert "136,018 lines (31 MiB)" in drawn.replace("136018", "136,018")
        assert "a log keeps its first 4 MiB and its last 12 MiB" in drawn
