"""What a rank in a pod says that it uses: by its control group of either version, or by its processes."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from mlp_hub.executors.kubernetes.rank.told import OwnPlan
from mlp_hub.executors.kubernetes.rank.usage import OwnUse, PodGroup

MIB = 1 << 20


def write(root: Path, **files: object) -> None:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")


def version_1(root: Path, cpu_s: float, rss: int, *, most: int, limit: int = 1 << 40) -> PodGroup:
    stat = f"cache {50 * MIB}\ntotal_rss {rss}\ntotal_shmem {MIB}\ntotal_cache {10 * MIB}"
    write(root, cpuacct__cpuacct_DOT_usage=int(cpu_s * 1e9), memory__memory_DOT_stat=stat)
    write(root, **{"memory__memory.max_usage_in_bytes": most, "memory__memory.limit_in_bytes": limit})
    return PodGroup(str(root))


def version_2(root: Path, cpu_s: float, anon: int, *, most: int, limit: object = "max") -> PodGroup:
    write(root, cpu_DOT_stat=f"usage_usec {int(cpu_s * 1e6)}\nuser_usec 1")
    write(root, memory_DOT_stat=f"anon {anon}\nfile {10 * MIB}\nshmem {MIB}")
    write(root, memory_DOT_peak=most, memory_DOT_max=limit)
    return PodGroup(str(root))


VERSIONS = (version_1, version_2)


@pytest.fixture
def told(tmp_path: Path) -> OwnPlan:
    (tmp_path / "log").mkdir()
    return OwnPlan({"attempt": "a.0", "log": str(tmp_path / "log"), "roles": ["worker"]}, 0)


def written(told: OwnPlan) -> Any:
    return json.loads(Path(told.plan["log"], "a.0.0.use").read_text())


@pytest.mark.parametrize("version", VERSIONS)
def test_cached_files_do_not_count_as_usage_or_in_the_peak(version: Any, tmp_path: Path) -> None:
    group = version(tmp_path, 2.5, 40 * MIB, most=100 * MIB)
    assert group.now() == (2.5, 41 * MIB)
    assert group.most() == 91 * MIB
    # at the limit cached files were given up, nobody knows when
    assert version(tmp_path, 2.5, 40 * MIB, most=100 * MIB, limit=100 * MIB).most() is None


@pytest.mark.parametrize("version", VERSIONS)
def test_the_usage_of_a_rank_is_written_as_it_changes_and_reported_at_the_end(
    version: Any, tmp_path: Path, told: OwnPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: at)
    monkeypatch.setattr("mlp_hub.executors.kubernetes.rank.usage.own_memory", lambda: float(MIB))
    root, file = tmp_path / "group", Path(told.plan["log"], "a.0.0.use")
    use = OwnUse(told, version(root, 3.0, 10 * MIB, most=12 * MIB))
    use.begin(os.getpid())
    at += 0.2
    use.look()
    assert not file.exists()  # who ends at once tells it with that
    version(root, 3.7, 20 * MIB, most=30 * MIB)
    at += 1.0
    use.look()
    assert (written(told)["cpu"], written(told)["ram"], "first_line_at" in written(told)) == (0.7, 20, False)
    before = file.stat().st_ino
    at += 1.0
    use.first_line_at = 123.0
    use.look()  # that it writes is news
    assert written(told)["first_line_at"] == 123.0
    assert file.stat().st_ino != before
    before = file.stat().st_ino
    for _ in range(10):
        at += 1.0
        use.look()
    assert file.stat().st_ino == before  # what stays as it is is not written again
    version(root, 3.7, 50 * MIB, most=70 * MIB)
    for _ in range(5):
        at += 1.0
        use.look()
    assert written(told)["ram"] == 50
    at += 0.8
    version(root, 9.0, 20 * MIB, most=80 * MIB)
    found = use.ended()
    assert (found["first_line_at"], found["ram_peak"], use.due) == (123.0, 70, None)
    assert found["cpu_mean"] == pytest.approx(6.0 / (at - 1000.0), abs=0.001)
    assert not file.exists()


def test_without_a_control_group_its_processes_are_looked_at(tmp_path: Path, told: OwnPlan) -> None:
    group = PodGroup(str(tmp_path / "nothing"))
    assert (group.now(), group.most()) == (None, None)
    use = OwnUse(told, group)
    use.begin(os.getpid())
    use.look()
    found = use.ended()
    assert found["ram_peak"] > 5
    assert found["cpu_mean"] > 0


def test_a_rank_that_never_began_used_nothing(told: OwnPlan) -> None:
    assert OwnUse(told, PodGroup("/nowhere")).ended() == {"first_line_at": None}


def test_a_full_disk_hides_nothing_of_the_end(told: OwnPlan) -> None:
    told.plan["log"] = "/proc/nowhere"
    use = OwnUse(told, PodGroup("/nowhere"))
    use.begin(os.getpid())
    use._write_at = 0.0
    use.look()
    assert "ram_peak" in use.ended()
