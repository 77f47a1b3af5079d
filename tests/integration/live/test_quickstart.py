"""What the quickstart tells to type works, and prints what it says."""

from __future__ import annotations

from pathlib import Path

from support.hubs.live_hub import BIN, LiveHub
from support.told import do_as_told


def test_every_block_of_the_quickstart_does_what_it_says(hub: LiveHub, tmp_path: Path) -> None:
    env = {**hub.env, "PATH": f"{BIN}:{hub.env['PATH']}", "HOME": str(tmp_path)}
    env.pop("XDG_CONFIG_HOME", None)
    do_as_told("quickstart.md", tmp_path, env)
    hub.wait_phase("mia", "long", "cancelled")
