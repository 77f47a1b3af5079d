"""Which event files become which points of a job."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mlp import tensorboard
from support.files.event_files import event, record, scalar, simple


class Told:
    def __init__(self):
        self.points = []

    def __call__(self, point, at):
        self.points.append((point, at))


@pytest.fixture
def told():
    return Told()


@pytest.fixture
def follower(told, monkeypatch):
    made = tensorboard.Follower(told)
    monkeypatch.setattr(made, "_start", lambda: None)  # the test looks itself
    return made


def write(directory: Path, *records: bytes, name="events.out.tfevents.1.h"):
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / name).open("ab") as file:
        file.write(b"".join(records))
    return directory / name


def points(told):
    return [point for point, _ in told.points]


def test_scalars_of_one_step_are_one_point_with_its_time(follower, told, tmp_path):
    path = write(
        tmp_path,
        scalar("train/loss", 0.5, 3, 1234.5),
        scalar("train/acc", 0.75, 3),
        scalar("train/loss", 0.25, 4),
    )
    follower.add(path)
    follower.look()
    assert told.points == [
        ({"step": 3, "train/loss": 0.5, "train/acc": 0.75}, 1234.5),
        ({"step": 4, "train/loss": 0.25}, 1000.0),
    ]


def test_later_points_are_reported_once(follower, told, tmp_path):
    path = write(tmp_path, scalar("loss", 1.0, 1))
    follower.add(path)
    follower.look()
    follower.add(path)
    write(tmp_path, scalar("loss", 2.0, 2)[:9])
    follower.look()
    with path.open("r+b") as file:
        file.truncate(len(scalar("loss", 1.0, 1)))
    write(tmp_path, scalar("loss", 2.0, 2))
    follower.look()
    follower.look()
    assert points(told) == [{"step": 1, "loss": 1.0}, {"step": 2, "loss": 2.0}]


def test_keras_epochs_have_the_names_that_its_logs_have(follower, told, tmp_path):
    follower.add(
        write(tmp_path / "train", scalar("epoch_loss", 0.5, 0), scalar("epoch_learning_rate", 0.25, 0))
    )
    follower.add(
        write(tmp_path / "validation", scalar("epoch_loss", 0.75, 0), scalar("evaluation_loss", 0.5, 8))
    )
    follower.look()
    assert points(told) == [
        {"epoch": 1, "loss": 0.5, "learning_rate": 0.25},
        {"epoch": 1, "val_loss": 0.75},
        {"step": 8, "validation/evaluation_loss": 0.5},
    ]


def test_a_second_directory_becomes_a_prefix_of_its_tags(follower, told, tmp_path):
    follower.add(write(tmp_path / "runs" / "a", scalar("loss", 1.0, 1)))
    follower.add(write(tmp_path / "runs" / "a" / "eval", scalar("loss", 2.0, 1)))
    follower.add(write(tmp_path / "runs" / "b", scalar("loss", 3.0, 1)))
    follower.look()
    assert points(told) == [
        {"step": 1, "loss": 1.0},
        {"step": 1, "eval/loss": 2.0},
        {"step": 1, "b/loss": 3.0},
    ]


def test_an_epoch_that_a_program_logs_is_its_own(follower, told, tmp_path):
    follower.add(write(tmp_path, record(event(9, simple("epoch", 2.0), simple("loss", 1.0)))))
    follower.look()
    assert points(told) == [{"step": 9, "epoch": 2.0, "loss": 1.0}]


def test_values_that_are_not_finite_are_left_out(follower, told, tmp_path):
    follower.add(
        write(
            tmp_path, scalar("loss", float("nan"), 1), scalar("acc", float("inf"), 1), scalar("loss", 1.0, 2)
        )
    )
    follower.look()
    assert points(told) == [{"step": 2, "loss": 1.0}]


def test_tags_are_bounded_and_names_are_cut(follower, told, tmp_path, capsys):
    many = [scalar(f"{n}" + "x" * 300, 1.0, n) for n in range(tensorboard.MOST_TAGS + 50)]
    follower.add(write(tmp_path, *many))
    while follower.look():
        pass
    names = {name for point in points(told) for name in point} - {"step"}
    assert len(names) == tensorboard.MOST_TAGS
    assert {len(name) for name in names} == {100}
    said = capsys.readouterr().err
    assert said.count("the rest is left out") == 1


def test_many_values_of_a_step_are_several_points(follower, told, tmp_path):
    follower.add(write(tmp_path, record(event(1, *(simple(f"t{n}", 1.0) for n in range(250))))))
    follower.look()
    assert sum(len(point) - 1 for point in points(told)) == 250
    assert max(map(len, points(told))) <= tensorboard.IN_ONE + 1


def test_one_file_after_the_other_in_a_directory_and_none_of_others(follower, told, tmp_path):
    mine = f"events.out.tfevents.1.h.{os.getpid()}"
    write(tmp_path, scalar("old", 1.0, 1), name=f"{mine}.0.v2")
    follower.add_directory(tmp_path)
    write(tmp_path, scalar("loss", 1.0, 1), name=f"{mine}.1.v2")
    write(tmp_path, scalar("other", 1.0, 1), name="events.out.tfevents.1.h.1.0.v2")
    follower.look()
    write(tmp_path, scalar("loss", 2.0, 2), name=f"{mine}.2.v2")
    follower.look()
    assert points(told) == [{"step": 1, "loss": 1.0}, {"step": 2, "loss": 2.0}]


def test_a_damaged_file_is_reported_and_the_others_continue(follower, told, tmp_path, capsys):
    follower.add(write(tmp_path / "a", scalar("loss", 1.0, 1), b"\x00" * 64))
    follower.add(write(tmp_path / "b", scalar("loss", 2.0, 1)))
    follower.look()
    write(tmp_path / "a", scalar("loss", 9.0, 2))
    write(tmp_path / "b", scalar("loss", 3.0, 2))
    follower.look()
    assert [point for point in points(told) if "loss" in point] == [{"step": 1, "loss": 1.0}]
    assert [point["b/loss"] for point in points(told) if "b/loss" in point] == [2.0, 3.0]
    at = len(scalar("loss", 1.0, 1))
    assert f"damaged from byte {at} on" in capsys.readouterr().err


def test_a_pipe_at_the_path_of_an_event_file_is_reported_and_does_not_block(follower, told, tmp_path, capsys):
    os.mkfifo(tmp_path / "events.out.tfevents.1.h")
    follower.add(tmp_path / "events.out.tfevents.1.h")
    follower.look()
    assert points(told) == []
    assert "no plain file" in capsys.readouterr().err


def test_a_file_written_faster_than_it_is_read_is_read_in_turns(follower, told, tmp_path):
    follower.add(write(tmp_path, *(scalar("loss", 1.0, n) for n in range(tensorboard.AT_ONCE + 10))))
    assert follower.look()
    assert len(told.points) == tensorboard.AT_ONCE
    assert not follower.look()
    assert len(told.points) == tensorboard.AT_ONCE + 10
