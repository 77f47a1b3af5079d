"""The leader of two services hangs at any moment, or is cut off from the database: the other takes writes, and nothing is lost.

The supervisor, which would end one that hangs, is stopped as well. `make torture-failover` does this for long, and measures.
"""

from __future__ import annotations

from pathlib import Path

from support.failover.failover_rig import failover_rig


def test_the_other_one_takes_writes_and_none_that_was_acknowledged_is_lost(tmp_path: Path) -> None:
    with failover_rig(tmp_path / "home") as rig, rig.load():
        for _ in range(2):
            rig.stopped()
        rig.cut_off()
        assert rig.lost() == []
        assert len(rig.acknowledged) >= 3
