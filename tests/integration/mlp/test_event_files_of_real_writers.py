"""TensorBoard's real writers in real processes: programs without a word of ours in them, and their points stored once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from support.clients.mlp_stand_in import TOKEN, StandIn
from support.waiting import wait_for

TORCH = """
# what torch.utils.tensorboard.SummaryWriter does where there is no TensorFlow; that is tried below
import sys, types
sys.modules["tensorboard.compat.notf"] = types.ModuleType("tensorboard.compat.notf")
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer.event_file_writer import EventFileWriter
writer = EventFileWriter("runs/a", 10, 120, "")
for step in range(50):
    for tag in ("train/loss", "train/acc"):
        value = summary_pb2.Summary.Value(tag=tag, simple_value=step)
        writer.add_event(event_pb2.Event(wall_time=5.0, step=step, summary=summary_pb2.Summary(value=[value])))
{end}
"""
TENSORBOARDX = """
from tensorboardX import SummaryWriter
writer = SummaryWriter("runs/x")
for step in range(50):
    writer.add_scalar("train/loss", step, step)
    writer.add_histogram("weights", __import__("numpy").zeros(10), step)
    writer.add_text("note", "words", step)
"""
KERAS = """
import keras, numpy as np
model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse", metrics=["mae"])
x, y = np.zeros((32, 4)), np.zeros((32, 1))
model.fit(x, y, epochs=3, validation_data=(x, y), verbose=0, callbacks=[keras.callbacks.TensorBoard("logs", update_freq=1)])
"""
TF_SUMMARY = """
import tensorflow as tf
for part in range(2):  # the second one rotates into a file of its own
    writer = tf.summary.create_file_writer("logs")
    with writer.as_default():
        for step in range(part * 5, part * 5 + 5):
            tf.summary.scalar("loss", step * 0.5, step=step)
            tf.summary.histogram("weights", [1.0, 2.0], step=step)
"""
SAME_SECOND = """
import time
really, time.time = time.time, lambda: 5.0
from tensorboardX import SummaryWriter
writer = SummaryWriter("runs")
time.time = really
writer.add_scalar("loss", 1.0, 1)
writer.close()
"""
FORK = """
import os, time
from tensorboardX import SummaryWriter
def write(name):
    writer = SummaryWriter(name)
    for step in range(20):
        writer.add_scalar(name, step, step)
    writer.close()
write("before")
children = []
for number in range(2):
    pid = os.fork()
    if pid == 0:
        try:
            write(f"child{number}")
            from mlp import tensorboard
            tensorboard.finish()
            __import__("mlp").flush(60)
        finally:
            os._exit(0)
    children.append(pid)
for pid in children:
    os.waitpid(pid, 0)
"""


@pytest.fixture
def world():
    with StandIn() as stand_in:
        yield stand_in


def start(world, folder, code, **more):
    env = {
        **os.environ,
        "MLP_JOB": "digits",
        "MLP_USER": "ann",
        "MLP_JOB_TOKEN": TOKEN,
        "MLP_API_URL": world.url,
        "MLP_METRICS_DIR": str(folder / "metrics"),
        "TF_CPP_MIN_LOG_LEVEL": "2",
        **more,
    }
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env=env,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def spooled(folder):
    """What is in the spools, by source, in order; also what the end of a process left to the platform."""
    return {
        path.stem: [json.loads(line)["v"] for line in path.read_text().splitlines()[1:]]
        for path in (folder / "metrics").glob("*.jsonl")
    }


def run(world, folder, code, **more):
    process = start(world, folder, code, **more)
    said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    return said


def values(folder, name):
    return [point[name] for points in spooled(folder).values() for point in points if name in point]


def test_points_of_the_torch_writer_are_drawn(world, tmp_path):
    run(world, tmp_path, TORCH.format(end="writer.close()"))
    assert values(tmp_path, "train/loss") == list(range(50))
    assert values(tmp_path, "train/acc") == list(range(50))
    assert values(tmp_path, "step")[-1] == 49
    lines = [line for file in (tmp_path / "metrics").iterdir() for line in file.read_text().splitlines()[1:]]
    assert {json.loads(line)["t"] for line in lines} == {5.0}  # the time that the program wrote


def test_a_writer_that_is_never_closed_loses_nothing_at_the_end(world, tmp_path):
    run(world, tmp_path, TORCH.format(end=""))
    assert values(tmp_path, "train/loss") == list(range(50))


def test_points_come_while_the_program_runs_and_stay_when_it_is_killed(world, tmp_path):
    process = start(world, tmp_path, TORCH.format(end="import time; time.sleep(10**6)"))
    try:
        wait_for(lambda: len([p for p in world.points.get("digits", []) if "train/acc" in p["v"]]) >= 50)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    stored = world.points["digits"]
    assert [p["v"]["train/loss"] for p in stored if "train/loss" in p["v"]] == list(range(50))


def test_scalars_of_tensorboardx_are_drawn_and_other_values_are_not(world, tmp_path):
    run(world, tmp_path, TENSORBOARDX)
    assert values(tmp_path, "train/loss") == list(range(50))
    assert {name for points in spooled(tmp_path).values() for p in points for name in p} == {
        "train/loss",
        "step",
    }


def test_two_jobs_that_begin_a_file_in_one_second_have_one_each(world, tmp_path):
    for job in ("first", "second"):
        run(world, tmp_path, SAME_SECOND, MLP_JOB=job)
    assert [path.name.rpartition(".")[2] for path in sorted((tmp_path / "runs").iterdir())] == [
        "first",
        "second",
    ]
    assert values(tmp_path, "loss") == [1.0, 1.0]


def test_keras_callback_is_drawn_under_the_names_of_its_logs(world, tmp_path):
    run(world, tmp_path, KERAS)
    points = [point for points in spooled(tmp_path).values() for point in points]
    for name in ("loss", "mae", "val_loss", "val_mae"):
        assert [p["epoch"] for p in points if name in p] == [1, 2, 3]
    assert [p["step"] for p in points if "batch_loss" in p] == [1, 2, 3]


def test_tf_summary_is_drawn_over_several_files(world, tmp_path):
    run(world, tmp_path, TF_SUMMARY)
    assert values(tmp_path, "loss") == [step * 0.5 for step in range(10)]
    assert not values(tmp_path, "weights")


def test_each_process_draws_its_own_files(world, tmp_path):
    run(world, tmp_path, FORK)
    by_source = sorted(
        sorted({name for point in points for name in point} - {"step"})
        for points in spooled(tmp_path).values()
    )
    assert by_source == [["before"], ["child0"], ["child1"]]
    for name in ("before", "child0", "child1"):
        assert values(tmp_path, name) == list(range(20))


def test_it_can_be_switched_off(world, tmp_path):
    _, said = run(world, tmp_path, TENSORBOARDX, MLP_TENSORBOARD="off")
    assert said == ""
    assert not (tmp_path / "metrics").exists()


def test_a_program_without_event_files_loads_nothing_of_ours(world, tmp_path):
    said, _ = run(
        world, tmp_path, "import sys, json; print(sorted(m for m in sys.modules if m.startswith('mlp')))"
    )
    assert said.strip() == "['mlp_job_start']"


def test_outside_of_a_job_nothing_is_watched(tmp_path):
    env = {name: value for name, value in os.environ.items() if not name.startswith("MLP_")}
    command = [sys.executable, "-c", "import sys; assert 'mlp_job_start' not in sys.modules"]
    assert subprocess.run(command, env=env, cwd=tmp_path, check=False).returncode == 0
