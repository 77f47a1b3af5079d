"""Real MPI, TensorFlow and plain gangs in sandboxes."""

from __future__ import annotations

import importlib.util
import json

import pytest

from mlp_hub.domain.jobs.job import Cause
from mlp_hub.domain.resources import Resources
from mlp_hub.executors.base import AttemptPhase
from support.executors.executor_lab import Lab

MPI = importlib.util.find_spec("mpi4py") is not None
needs_mpi = pytest.mark.skipif(not MPI, reason="mpi4py is not installed")
needs_tf = pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="no tensorflow")

ALLREDUCE = """
from mpi4py import MPI
import os, sys
world = MPI.COMM_WORLD
total = world.allreduce(world.rank + 1)
print("total", total, "of", world.size, os.environ["MLP_RANK"], os.environ["MLP_WORLD_SIZE"])
print("to stderr", file=sys.stderr)
"""


@needs_mpi
def test_mpi_ranks_find_each_other(lab: Lab) -> None:
    spec = lab.spec(ALLREDUCE, runtime="mpi", workers=2)
    seen = lab.run(spec)
    assert seen.phase is AttemptPhase.SUCCEEDED, seen
    assert [(r.rank, r.role, r.state, r.exit_code) for r in seen.ranks] == [
        (0, "worker", "finished", 0),
        (1, "worker", "finished", 0),
    ]
    for rank in (0, 1):
        assert lab.output(spec, rank) == [f"total 3 of 2 {rank} 2", "to stderr"]


@needs_mpi
def test_the_mpi_rank_that_failed_first_is_named_with_its_traceback(lab: Lab) -> None:
    code = """
from mpi4py import MPI
if MPI.COMM_WORLD.rank == 1:
    raise ValueError("bad batch")
MPI.COMM_WORLD.barrier()
"""
    seen = lab.run(lab.spec(code, runtime="mpi", workers=2))
    assert seen.phase is AttemptPhase.FAILED
    assert seen.failure is not None
    assert (seen.failure.cause, seen.failure.rank, seen.failure.exit_code) == (Cause.PROGRAM_ERROR, 1, 1)
    assert seen.failure.tail.endswith("ValueError: bad batch")


def test_plain_ranks_are_distinguishable_and_have_separate_logs(lab: Lab) -> None:
    spec = lab.spec("import os; print(os.environ['MLP_RANK'], os.environ['MLP_WORLD_SIZE'])", workers=3)
    seen = lab.run(spec)
    assert seen.phase is AttemptPhase.SUCCEEDED, seen
    assert [lab.output(spec, rank) for rank in range(3)] == [["0 3"], ["1 3"], ["2 3"]]


def test_one_failed_rank_ends_the_whole_gang(lab: Lab) -> None:
    code = "import os, sys, time\nif os.environ['MLP_RANK'] == '2': sys.exit('out of data')\ntime.sleep(600)"
    seen = lab.run(lab.spec(code, workers=3))
    assert seen.failure is not None
    assert (seen.failure.cause, seen.failure.rank, seen.failure.exit_code) == (Cause.PROGRAM_ERROR, 2, 1)
    assert seen.failure.tail == "out of data"
    assert [r.state for r in seen.ranks] == ["stopped", "stopped", "failed"]


def test_tf_ranks_get_their_place_in_the_cluster(lab: Lab) -> None:
    spec = lab.spec("import os; print(os.environ['TF_CONFIG'])", runtime="tf", workers=2)
    assert lab.run(spec).phase is AttemptPhase.SUCCEEDED
    tasks = [json.loads(lab.output(spec, rank)[0])["task"] for rank in (0, 1)]
    assert tasks == [{"type": "worker", "index": 0}, {"type": "worker", "index": 1}]


def test_parameter_servers_and_workers_end_with_the_chief(lab: Lab) -> None:
    code = """
import json, os, time
kind = json.loads(os.environ["TF_CONFIG"])["task"]["type"]
print(kind)
time.sleep(0.5 if kind == "chief" else 600)
"""
    spec = lab.spec(code, runtime="tf", workers=2, ps=1)
    seen = lab.run(spec)
    assert seen.phase is AttemptPhase.SUCCEEDED, seen
    assert [(r.role, r.state) for r in seen.ranks] == [
        ("chief", "finished"),
        ("worker", "stopped"),
        ("ps", "stopped"),
    ]
    assert [lab.output(spec, rank) for rank in range(3)] == [["chief"], ["worker"], ["ps"]]


@needs_tf
def test_tensorflow_trains_on_two_workers(lab: Lab) -> None:
    code = """
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    v = tf.Variable(0.0)
@tf.function
def step():
    def one():
        c = tf.distribute.get_replica_context()
        g = c.all_reduce(tf.distribute.ReduceOp.SUM, tf.constant(1.0))
        v.assign_add(g)
        return v.read_value()
    return strategy.run(one)
print("value", float(strategy.reduce(tf.distribute.ReduceOp.MEAN, step(), axis=None)))
"""
    spec = lab.spec(code, runtime="tf", workers=2, per_worker=Resources(cpu=1000, ram=2048))
    seen = lab.run(spec)
    assert seen.phase is AttemptPhase.SUCCEEDED, (seen, lab.output(spec)[-20:])
    assert "value 2.0" in lab.output(spec)


def test_torch_without_torch_says_so(lab: Lab) -> None:
    if importlib.util.find_spec("torch") is not None:
        pytest.skip("torch is installed")
    seen = lab.run(lab.spec("print(1)", runtime="torch", workers=2))
    assert seen.failure is not None
    assert seen.failure.cause is Cause.START_FAILED
    assert "torch" in seen.failure.message
    assert [r.state for r in seen.ranks] == ["stopped", "stopped"]  # never left pending
