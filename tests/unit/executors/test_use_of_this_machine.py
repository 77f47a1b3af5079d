"""The use of a machine is read from what the kernel counts, and from nothing where it counts nothing."""

from __future__ import annotations

from pathlib import Path

from mlp_hub.executors.local.machine_use import read_node_use

STAT = "cpu  100 20 300 4000 50 6 7 80 0 0\ncpu0 100 20 300 4000 50 6 7 80 0 0\nintr 1\n"
MEMORY = "MemTotal:       1000 kB\nMemFree:        10 kB\nMemAvailable:   400 kB\n"
NETWORK = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 999999 1 0 0 0 0 0 0 999999 1 0 0 0 0 0 0
  eth0: 1000 1 0 0 0 0 0 0 2000 1 0 0 0 0 0 0
  eth1:10 1 0 0 0 0 0 0 20 1 0 0 0 0 0 0
"""


def test_all_is_read(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    for name, text in (("stat", STAT), ("meminfo", MEMORY), ("net/dev", NETWORK)):
        (tmp_path / name).write_text(text)
    use = read_node_use("n1", str(tmp_path), tmp_path)
    assert {mode: round(s, 2) for mode, s in use.cpu_s.items()} == {
        "user": 1.0, "system": 3.0, "idle": 40.0, "iowait": 0.5, "steal": 0.8, "other": 0.33,
    }  # fmt: skip
    assert (use.memory_total, use.memory_available) == (1000 * 1024, 400 * 1024)
    assert (use.received, use.sent) == (1010, 2020)
    assert use.disk_total is not None
    assert use.disk_available is not None
    assert 0 < use.disk_available <= use.disk_total


def test_a_machine_without_a_network_says_nothing_of_it(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    for name, text in (("stat", STAT), ("meminfo", "MemTotal: 1000 kB\n"), ("net/dev", "a\nb\n lo: 1 0\n")):
        (tmp_path / name).write_text(text)
    use = read_node_use("n1", str(tmp_path), tmp_path)
    assert (use.received, use.sent, use.memory_available) == (None, None, None)


def test_this_very_machine_can_be_read(tmp_path: Path) -> None:
    use = read_node_use("n1", str(tmp_path))
    assert use.cpu_s["user"] > 0
    assert use.memory_total is not None
