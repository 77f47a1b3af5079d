"""Real processes that report, fork and are killed: the spool is complete, each point is stored exactly once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from support.clients.mlp_stand_in import TOKEN, StandIn

WRITER = """
import sys, mlp
for i in range(1, 10**9):
    mlp.report(step=i)
    if i % 500 == 0:
        print(i, flush=True)
"""
FORKER = """
import os, mlp
mlp.report(step=1)
children = []
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        for i in range(20):
            mlp.report(step=i)
        assert mlp.flush(10)
        os._exit(0)
    children.append(pid)
for pid in children:
    assert os.waitpid(pid, 0)[1] == 0
mlp.report(step=2)
"""
THREADS = """
import threading, mlp
def many():
    for i in range(500):
        mlp.report(step=i)
threads = [threading.Thread(target=many) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
"""


@pytest.fixture
def world():
    with StandIn() as stand_in:
        yield stand_in


def start(world, tmp_path, code, **more):
    env = {
        **os.environ,
        "MLP_JOB": "digits",
        "MLP_USER": "ann",
        "MLP_JOB_TOKEN": TOKEN,
        "MLP_API_URL": world.url,
        "MLP_METRICS_DIR": str(tmp_path),
        **more,
    }
    return subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True)


def stored(world, source):
    return [p["n"] for p in world.points.get("digits", []) if p["source"] == source]


def spools(tmp_path):
    return {
        p.stem: [json.loads(x)["n"] for x in p.read_text().splitlines()[1:]] for p in tmp_path.glob("*.jsonl")
    }


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_process_leaves_a_spool_without_a_gap_and_nothing_is_stored_twice(world, tmp_path, signum):
    process = start(world, tmp_path, WRITER)
    assert process.stdout is not None
    for _ in range(5):
        said = int(process.stdout.readline())
    process.send_signal(signum)
    process.wait(10)
    process.stdout.close()
    ((source, numbers),) = spools(tmp_path).items()
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= said
    delivered = stored(world, source)
    assert delivered == list(range(1, len(delivered) + 1))


def test_a_process_that_ends_by_itself_delivers_all(world, tmp_path):
    process = start(world, tmp_path, "import mlp\nfor i in range(1000): mlp.report(step=i)")
    assert process.wait(20) == 0
    process.stdout.close()
    ((source, numbers),) = spools(tmp_path).items()
    assert stored(world, source) == numbers == list(range(1, 1001))


def test_a_service_that_hangs_does_not_keep_a_process_from_its_end(tmp_path, world):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/api/v1"
        process = start(world, tmp_path, "import mlp\nmlp.report(step=1)", MLP_API_URL=url)
        assert process.wait(60) == 0  # nothing ever answers it: who waits for that never ends
        process.stdout.close()
    assert list(spools(tmp_path).values()) == [[1]]


def test_forked_children_are_separate_sources(world, tmp_path):
    process = start(world, tmp_path, FORKER)
    assert process.wait(30) == 0
    process.stdout.close()
    found = spools(tmp_path)
    assert sorted(len(n) for n in found.values()) == [2, 20, 20, 20]
    for source, numbers in found.items():
        assert stored(world, source) == numbers == list(range(1, len(numbers) + 1))


def test_threads_share_one_source_in_one_order(world, tmp_path):
    process = start(world, tmp_path, THREADS)
    assert process.wait(30) == 0
    process.stdout.close()
    ((source, numbers),) = spools(tmp_path).items()
    assert stored(world, source) == numbers == list(range(1, 2001))
