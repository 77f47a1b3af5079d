"""Two services on one machine: what one is in the middle of, the next waits for, whatever becomes of the first."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mlp_hub.domain.errors import Unavailable
from mlp_hub.executors.base import Superseded
from mlp_hub.executors.shared_volume.fence import Fence
from support.waiting import PATIENCE_S

ACTS = """
import sys
from mlp_hub.executors.shared_volume.fence import Fence
with Fence(sys.argv[1]).acting(int(sys.argv[2])):
    print("acts", flush=True)
    sys.stdin.readline()
"""


LOCKS = """
import fcntl, sys, time
file = open(sys.argv[1])
fcntl.flock(file, int(sys.argv[2]))
print("locked", flush=True)
time.sleep(3600)
"""


@contextmanager
def acting(place: Path, epoch: int) -> Iterator[subprocess.Popen[bytes]]:
    """Let another process be in the middle of an act."""
    with subprocess.Popen(
        [sys.executable, "-c", ACTS, str(place), str(epoch)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"acts\n"
        try:
            yield other
        finally:
            other.kill()


def test_a_takeover_ends_a_process_that_is_stopped_in_an_act(tmp_path: Path) -> None:
    with acting(tmp_path, 1) as old:
        old.send_signal(signal.SIGSTOP)
        fence = Fence(tmp_path)
        with pytest.raises(Unavailable, match="end its process if it hangs"):
            fence.raise_to(2, 0.1)
        assert fence.seen == 2
        assert old.poll() is None
        fence.raise_to(2, PATIENCE_S)
        assert old.wait(PATIENCE_S) == -signal.SIGKILL
        with fence.acting(2):
            assert fence.seen == 2


@pytest.mark.parametrize("how", [fcntl.LOCK_SH, fcntl.LOCK_EX])
def test_a_takeover_ends_a_process_that_is_stopped_while_it_reads_the_epoch(tmp_path: Path, how: int) -> None:
    Fence(tmp_path).raise_to(1, PATIENCE_S)
    with subprocess.Popen(
        [sys.executable, "-c", LOCKS, str(tmp_path / "epoch"), str(how)], stdout=subprocess.PIPE
    ) as old:
        assert old.stdout is not None
        assert old.stdout.readline() == b"locked\n"
        old.send_signal(signal.SIGSTOP)
        Fence(tmp_path).raise_to(2, PATIENCE_S)
        assert old.wait(PATIENCE_S) == -signal.SIGKILL


def test_processes_that_only_wait_for_the_lock_or_have_another_files_are_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with acting(other, 1) as stranger, acting(tmp_path, 1) as old:
        old.send_signal(signal.SIGSTOP)
        Fence(tmp_path).raise_to(2, PATIENCE_S)
        assert old.wait(PATIENCE_S) == -signal.SIGKILL
        assert stranger.poll() is None


def test_an_act_that_ends_well_lets_the_next_one_begin(tmp_path: Path) -> None:
    with acting(tmp_path, 1) as old:
        assert old.stdin is not None
        old.stdin.write(b"\n")
        old.stdin.flush()
        Fence(tmp_path).raise_to(2, 30.0)
        with pytest.raises(Superseded), Fence(tmp_path).acting(1):
            pytest.fail("the older one may act")


CONTENDS = """
import json, sys
from mlp_hub.executors.base import Superseded
from mlp_hub.executors.shared_volume.fence import Fence
fence, taken = Fence(sys.argv[1]), []
for epoch in range(int(sys.argv[2]), 300, 3):
    try:
        fence.raise_to(epoch, 30.0)
        taken.append(epoch)
        with fence.acting(epoch):
            assert fence.seen >= epoch
    except Superseded:
        continue
print(json.dumps(taken))
"""


def test_of_many_who_contend_the_highest_is_seen_in_the_end_and_none_goes_back(tmp_path: Path) -> None:
    contenders = [
        subprocess.Popen(
            [sys.executable, "-c", CONTENDS, str(tmp_path), str(first)], stdout=subprocess.PIPE, text=True
        )
        for first in (1, 2, 3)
    ]
    taken = []
    for contender in contenders:
        out, _ = contender.communicate(timeout=PATIENCE_S)
        assert contender.returncode == 0
        taken.append(json.loads(out))
    assert Fence(tmp_path).seen == 300 - 1
    for mine in taken:
        assert mine == sorted(mine)
    assert 299 in [epoch for mine in taken for epoch in mine]


def test_a_file_of_which_nothing_was_written_yet_counts_as_no_epoch(tmp_path: Path) -> None:
    (tmp_path / "epoch").touch()
    fence = Fence(tmp_path)
    assert fence.seen == 0
    fence.raise_to(3, 1.0)
    assert Fence(tmp_path).seen == 3
    assert sorted(os.listdir(tmp_path)) == ["acts", "epoch"]
