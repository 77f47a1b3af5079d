"""`report()`: spool first, then delivery; values that can be drawn."""

from __future__ import annotations

import json
import os
import sys
import time
from types import SimpleNamespace

import pytest

from mlp.reporting import delivery, measured
from mlp.reporting import points as reporting
from mlp.reporting.progress import progress
from support.clients.mlp_stand_in import API, TOKEN, StandIn


@pytest.fixture
def process(monkeypatch):
    fresh = reporting._Process()
    monkeypatch.setattr(reporting, "_process", fresh)
    monkeypatch.setattr(delivery, "FIRST_WAIT", 0.02)
    yield fresh
    fresh.at_exit()


@pytest.fixture
def job(monkeypatch, tmp_path, process):
    """A job without a service: the spool alone."""
    for name in (*reporting.RANK_VARIABLES, "MLP_API_URL", "MLP_RESTART_COUNT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MLP_METRICS_DIR", str(tmp_path / "metrics"))
    monkeypatch.setenv("MLP_JOB", "digits")
    monkeypatch.setenv("MLP_USER", "ann")
    monkeypatch.setenv("MLP_JOB_TOKEN", TOKEN)
    return tmp_path / "metrics"


def spooled(directory):
    return entries(directory)[1:]


def lost_of(directory):
    return entries(directory)[0]["lost"]


def entries(directory):
    (path,) = directory.iterdir()
    return [json.loads(x) for x in path.read_text().splitlines()]


def test_a_point_is_in_the_spool_when_the_call_returns(job, monkeypatch):
    monkeypatch.setenv("MLP_RANK", "3")
    monkeypatch.setenv("MLP_RESTART_COUNT", "2")
    before = time.time()
    reporting.report(epoch=1, loss=0.5)
    reporting.report(loss=0.25)
    points = spooled(job)
    assert [p["n"] for p in points] == [1, 2]
    assert points[0]["v"] == {"epoch": 1, "loss": 0.5}
    assert before - 1 <= points[0]["t"] <= time.time() + 1
    assert next(job.iterdir()).name.startswith("3.2.")


@pytest.mark.parametrize("name", ["PMI_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"])
def test_the_rank_is_found_wherever_a_launcher_puts_it(name):
    assert reporting.rank({name: "5"}) == 5
    assert reporting.rank({name: "5", "MLP_RANK": "1"}) == 1
    assert reporting.rank({}) == 0


def test_numbers_of_all_kinds_are_taken():
    np = pytest.importorskip("numpy")
    values = [1, 1.5, True, np.float32(0.5), np.int64(3), np.array([2.0]), np.array(2.0), 2**70]
    assert [measured.number("x", v) for v in values] == [1, 1.5, 1.0, 0.5, 3, 2.0, 2.0, float(2**70)]


class _Hostile:
    """A value of an own class that raises whatever it is asked."""

    def __float__(self):
        raise KeyError("not now")

    def item(self):
        raise OSError("gone")


UNFIT = [
    float("nan"),
    float("inf"),
    -float("inf"),
    10**400,
    "0.5",
    None,
    [1, 2],
    object(),
    b"1",
    1j,
    {},
    _Hostile(),
]


@pytest.mark.parametrize("value", UNFIT, ids=lambda value: str(value)[:12])
def test_a_value_that_cannot_be_drawn_is_told_once_and_left_out(value, job, capsys):
    for step in (1, 2, 3):
        reporting.report(step=step, loss=value, accuracy=0.5)
    assert [(p["n"], p["v"]) for p in spooled(job)] == [(n, {"step": n, "accuracy": 0.5}) for n in (1, 2, 3)]
    said = capsys.readouterr().err
    assert said.count("metric loss") == said.count("\n") == 1
    assert "The value is ignored" in said


def test_an_array_of_several_a_long_name_and_too_many_are_told_and_left_out(job, capsys):
    np = pytest.importorskip("numpy")
    reporting.report(loss=np.zeros(3), kept=1)
    reporting.report(**{"x" * 101: 1, "kept": 2})
    reporting.report(**{f"m{i}": i for i in range(101)})
    reporting.report(**{f"m{i}": i for i in range(101)})
    points = spooled(job)
    assert [p["v"] for p in points[:2]] == [{"kept": 1}, {"kept": 2}]
    assert [len(p["v"]) for p in points[2:]] == [100, 100]
    said = capsys.readouterr().err
    assert "of several" in said
    assert "1 to 100 characters" in said
    assert said.count("at most 100") == 1


def test_a_point_without_any_value_that_can_be_drawn_leaves_no_gap(job):
    reporting.report(loss=1)
    reporting.report(loss=float("nan"))
    reporting.report(loss=2)
    assert [p["n"] for p in spooled(job)] == [1, 2]


def test_each_mistake_is_reported_for_each_name_up_to_a_limit(job, capsys):
    reporting.report(loss=None)
    reporting.report(loss=float("nan"))
    reporting.report(other=None)
    assert capsys.readouterr().err.count("metric ") == 3
    for n in range(1000):
        reporting.report(**{f"made-up-{n}": None})
    assert capsys.readouterr().err.count("\n") <= measured.TOLD_MAX + 1


def test_a_dictionary_is_taken_and_what_has_no_name_is_told_once(job, capsys):
    reporting.report({"train/loss": 0.5}, step=1)
    for _ in range(2):
        reporting.report(0.5)
    reporting.report({1: 2.0, "loss": 1})
    assert [p["v"] for p in spooled(job)] == [{"train/loss": 0.5, "step": 1}, {"loss": 1}]
    assert capsys.readouterr().err.count("takes names") == 1


@pytest.mark.parametrize("seconds", [-1, "soon", None, float("nan")])
def test_an_invalid_flush_timeout_is_reported_and_the_training_continues(seconds, job, capsys):
    assert reporting.flush(seconds)
    assert "a number of seconds is needed" in capsys.readouterr().err


@pytest.mark.parametrize("total", ["many", -3, float("nan"), [1]])
def test_a_loop_continues_whatever_its_total_is(total, job):
    assert list(progress("abc", total=total)) == ["a", "b", "c"]
    assert spooled(job)[-1]["v"]["step"] == 3


def test_a_loop_over_an_iterable_without_a_length_continues(job):
    class Stream:
        def __len__(self):
            raise NotImplementedError

        def __iter__(self):
            return iter("ab")

    assert list(progress(Stream())) == ["a", "b"]
    assert spooled(job)[-1]["v"] == {"step": 2}


@pytest.mark.parametrize("url", ["http://[::1", "not a url", "ftp://x"])
def test_an_address_that_is_none_leaves_points_in_the_spool(url, job, monkeypatch):
    monkeypatch.setenv("MLP_API_URL", url)
    reporting.report(loss=1)
    assert [p["n"] for p in spooled(job)] == [1]


def test_a_spool_that_is_closed_under_the_program_costs_points_alone(job, process, capsys):
    reporting.report(loss=1)
    reporting.os.close(process.reporter._fd)
    reporting.report(loss=2)
    assert "points are being lost" in capsys.readouterr().err


def test_progress_stays_within_its_bounds(job):
    reporting.report(progress=100.00001)
    assert spooled(job)[0]["v"] == {"progress": 100}


def test_outside_of_a_job_it_says_so_once(process, monkeypatch, capsys):
    monkeypatch.delenv("MLP_METRICS_DIR", raising=False)
    monkeypatch.delenv("MLP_JOB", raising=False)
    reporting.report(loss=1)
    reporting.report(loss=2)
    assert capsys.readouterr().err.count("not a job of MLP Hub") == 1
    assert reporting.flush()


def test_a_full_disk_costs_points_and_neither_order_nor_the_training(job, monkeypatch, capsys):
    reporting.report(loss=1)
    with monkeypatch.context() as full:
        no_room(full)
        reporting.report(loss=2)
        reporting.report(loss=3)
        assert lost_of(job) == 2
    reporting.report(loss=4)
    assert [(p["n"], p["v"]["loss"]) for p in spooled(job)] == [(1, 1), (2, 4)]
    assert lost_of(job) == 2
    assert capsys.readouterr().err.count("points are being lost") == 1


def no_room(monkeypatch):
    """Have room for nothing but five bytes of each line beyond the head."""
    pwrite = reporting.os.pwrite
    monkeypatch.setattr(
        reporting.os,
        "pwrite",
        lambda fd, data, at: pwrite(fd, data if at == 0 and os.fstat(fd).st_size else data[:5], at),
    )


def test_a_process_that_finds_a_full_disk_leaves_an_empty_file_and_counts_from_the_first_point(
    job, monkeypatch
):
    with monkeypatch.context() as full:
        no_room(full)
        reporting.report(loss=1)
        reporting.report(loss=2)
        (path,) = job.iterdir()
        assert path.stat().st_size == 0
    reporting.report(loss=3)
    assert lost_of(job) == 2
    assert [(p["n"], p["v"]["loss"]) for p in spooled(job)] == [(1, 3)]


def test_points_before_there_was_room_for_a_file_count_as_lost(job, monkeypatch):
    with monkeypatch.context() as full:
        full.setattr(
            reporting.os, "open", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device"))
        )
        reporting.report(loss=1)
    reporting.report(loss=2)
    assert lost_of(job) == 1


def deliver(monkeypatch, world):
    monkeypatch.setenv("MLP_API_URL", world.url)


def numbers(world):
    return [p["n"] for p in world.points.get("digits", [])]


def test_the_storage_of_a_process_is_bounded_and_lost_points_are_counted(job, monkeypatch, capsys, process):
    monkeypatch.setenv("MLP_METRICS_MAX", "1000")
    for step in range(100):
        reporting.report(step=step)
    kept = spooled(job)
    assert [p["n"] for p in kept] == list(range(1, len(kept) + 1))
    assert 0 < len(kept) < 100
    assert lost_of(job) == 100 - len(kept)
    process.at_exit()
    said = capsys.readouterr().err
    assert said.count("points are being lost") == 1
    assert f"{100 - len(kept)} of 100 points were lost" in said


def test_points_are_delivered_in_order_in_few_batches(job, monkeypatch):
    with StandIn() as world:
        deliver(monkeypatch, world)
        for i in range(3000):
            reporting.report(step=i)
        assert reporting.flush(10)
        assert numbers(world) == list(range(1, 3001))
        assert len(world.batches) < 300


@pytest.mark.parametrize(("takes", "pauses"), [(0.002, [0.008, 0.008]), (0.05, [])])
def test_a_batch_begins_some_time_after_the_one_before_and_at_once_where_that_took_longer(
    takes, pauses, tmp_path, monkeypatch
):
    now, slept = [100.0], []

    def sleep(seconds):
        slept.append(round(seconds, 6))
        now[0] += seconds

    class Timed(delivery.Delivery):
        def _batch(self, spool):
            now[0] += takes
            self.stored += 1
            self._closing = self.stored == self._wanted
            return True

    monkeypatch.setattr(delivery, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    (tmp_path / "spool").touch()
    timed = Timed(None, "", "", "0", tmp_path / "spool")
    timed._wanted = 3
    timed._run()
    assert slept == pauses


def test_an_outage_costs_nothing(job, monkeypatch):
    with StandIn() as world:
        deliver(monkeypatch, world)
        world.fail_next = [(503, {}), (0, {}), (500, {}), (0, {})]
        for i in range(200):
            reporting.report(step=i)
        assert reporting.flush(10)
        assert numbers(world) == list(range(1, 201))


def test_a_batch_whose_answer_was_lost_is_stored_once(job, monkeypatch):
    with StandIn() as world:
        deliver(monkeypatch, world)
        post = delivery.Delivery._post
        lost = []

        def forgetful(self, body):
            last = post(self, body)
            if len(lost) < 2:
                lost.append(last)
                raise OSError("the answer was lost")
            return last

        monkeypatch.setattr(delivery.Delivery, "_post", forgetful)
        for i in range(50):
            reporting.report(step=i)
        assert reporting.flush(10)
        assert numbers(world) == list(range(1, 51))
        assert len(lost) == 2


def test_a_service_that_knows_less_than_was_sent_gets_the_rest_again(job, monkeypatch):
    with StandIn() as world:
        deliver(monkeypatch, world)
        reporting.report(step=0)
        assert reporting.flush(10)
        post = delivery.Delivery._post
        cut = []

        def half(self, body):
            batch = json.loads(body)
            if len(batch["points"]) > 1 and not cut:
                cut.append(True)
                batch["points"] = batch["points"][: len(batch["points"]) // 2]
            return post(self, json.dumps(batch).encode())

        monkeypatch.setattr(delivery.Delivery, "_post", half)
        for i in range(40):
            reporting.report(step=i)
        assert reporting.flush(10)
        assert cut
        assert numbers(world) == list(range(1, 42))


def test_a_service_that_is_away_does_not_hold_up_the_end(job, monkeypatch):
    monkeypatch.setenv("MLP_API_URL", f"http://127.0.0.1:9{API}")
    reporting.report(loss=1)
    assert not reporting.flush(0.05)
    reporter = reporting._process.get()
    assert reporter is not None
    reporter.close(0.05)
    assert len(spooled(job)) == 1


def test_the_end_of_a_process_gives_delivery_two_seconds(job, monkeypatch):
    reporting.report(loss=1)  # nobody to deliver to yet
    given = []
    monkeypatch.setattr(reporting._process.get(), "delivery", SimpleNamespace(close=given.append))
    reporting._process.at_exit()
    assert given == [2.0]


def test_a_loop_reports_its_progress_seldom_and_its_end(job):
    ticks = iter(x / 10 for x in range(1000))
    assert list(progress(range(20), clock=lambda: next(ticks))) == list(range(20))
    values = [p["v"] for p in spooled(job)]
    assert values[-1] == {"progress": 100, "step": 20}
    assert 3 <= len(values) <= 6


def test_a_loop_without_a_length_reports_steps(job):
    assert list(progress(iter("abc"))) == ["a", "b", "c"]
    assert spooled(job)[-1]["v"] == {"step": 3}


def test_only_one_rank_reports_the_progress_of_a_loop(job, monkeypatch):
    monkeypatch.setenv("PMI_RANK", "1")
    assert list(progress([1, 2])) == [1, 2]
    assert not job.exists()


def test_reporting_loads_nothing_that_is_not_needed():
    import subprocess

    code = "import sys, mlp; mlp.report; print([m for m in ('IPython', 'numpy', 'pandas', 'mlp.kernel.magics') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
