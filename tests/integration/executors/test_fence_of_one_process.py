"""All acts of one process share a lock: it is held as long as one of them is under way, on the file that others find."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlp_hub.domain.errors import Unavailable
from mlp_hub.executors.shared_volume.fence import Fence


def test_a_takeover_waits_for_the_last_of_several_acts(tmp_path: Path) -> None:
    fence, other = Fence(tmp_path), Fence(tmp_path)
    with fence.acting(1):
        with fence.acting(1):
            pass
        with pytest.raises(Unavailable, match="end its process if it hangs"):
            other.raise_to(2, 0.05)
    other.raise_to(2, 0.05)


def test_a_lock_whose_file_was_removed_is_taken_on_the_new_one(tmp_path: Path) -> None:
    fence = Fence(tmp_path)
    with fence.acting(1):
        pass
    (tmp_path / "acts").unlink()
    with fence.acting(1), pytest.raises(Unavailable, match="end its process if it hangs"):
        Fence(tmp_path).raise_to(2, 0.05)
