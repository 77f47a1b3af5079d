"""Jobs that write TensorBoard's event files and say nothing to the platform: their curves are there."""

from __future__ import annotations

from typing import Any

import pytest

from support.hubs.live_hub import LiveHub
from support.waiting import wait_for

MPI = """
from mpi4py import MPI
from tensorboardX import SummaryWriter
rank = MPI.COMM_WORLD.rank
writer = SummaryWriter(f"runs/digits-{rank}")  # in the home: two jobs may write there at once
for step in range(20):
    writer.add_scalar("train/loss", rank * 100 + step, step)
writer.close()
"""
TF = """
import os, keras, numpy as np
model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
callbacks = [keras.callbacks.TensorBoard("/workspace/logs")] if os.environ["MLP_RANK"] == "0" else []
model.fit(np.zeros((32, 4)), np.zeros((32, 1)), epochs=3, verbose=0, callbacks=callbacks)
"""
HOSTILE = """
import os, struct
from tensorboardX import SummaryWriter
from tensorboardX.event_file_writer import EventsWriter
writer = SummaryWriter("/workspace/good")
writer.add_scalar("loss", 1.0, 1)
for number, content in enumerate((b"", os.urandom(4096), struct.pack("<Q", 2**63) * 100)):
    bad = EventsWriter(f"/workspace/bad{number}")
    bad.close()
    with open(bad._file_name, "ab") as file:
        file.write(content)
writer.add_scalar("loss", 2.0, 2)
writer.close()
"""


def told(hub: LiveHub, job: str, name: str) -> list[tuple[int, Any, float]]:
    return [(p["rank"], p["step"], p["values"][name]) for p in hub.points("ann", job) if name in p["values"]]


def test_ranks_of_an_mpi_job_have_a_curve_each(hub: LiveHub) -> None:
    jobs = ("boards-1", "boards-2")
    for job in jobs:  # side by side, in the same folders, with the same numbers of processes
        hub.submit("ann", job, MPI, workers=2, cpu=0.5, ram=512)
    for job in jobs:
        hub.wait_phase("ann", job, "finished")
        for rank in (0, 1):
            wanted = [(rank, step, rank * 100.0 + step) for step in range(20)]
            assert [p for p in told(hub, job, "train/loss") if p[0] == rank] == wanted


@pytest.mark.whole
def test_a_tensorflow_job_with_keras_callback_has_the_curves_of_its_logs(hub: LiveHub) -> None:
    hub.submit("ann", "keras-board", TF, runtime="tf", workers=2, cpu=0.5, ram=1024)
    hub.wait_phase("ann", "keras-board", "finished")
    epochs = [p["values"]["epoch"] for p in hub.points("ann", "keras-board") if "loss" in p["values"]]
    assert epochs == [1, 2, 3]


def test_damaged_files_cost_their_own_curves_only(hub: LiveHub) -> None:
    hub.submit("ann", "hostile-board", HOSTILE, cpu=0.5, ram=512)
    hub.wait_phase("ann", "hostile-board", "finished")
    assert told(hub, "hostile-board", "loss") == [(0, 1, 1.0), (0, 2, 2.0)]
    assert "is damaged from byte" in hub.log("ann", "hostile-board")


def test_the_option_switches_it_off(hub: LiveHub) -> None:
    assert (
        hub.submit("ann", "no-board", MPI, workers=2, cpu=0.5, ram=512, tensorboard="off")["tensorboard"]
        == "off"
    )
    hub.wait_phase("ann", "no-board", "finished")
    wait_for(lambda: hub.points("ann", "no-board") == [])
