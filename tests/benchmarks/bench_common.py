"""What the benchmarks share: one live hub, and figures beside their anchors."""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.hubs.live_hub import BIN, LiveHub
from support.ports import free_port

ROOT = Path(__file__).parents[2]
_BARE = """
c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.hub_port = {hub_port}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api_port}"
c.ConfigurableHTTPProxy.command = {command!r}
c.JupyterHub.authenticator_class = "native"
c.Authenticator.allow_all = True
c.JupyterHub.db_url = "sqlite:///{dir}/hub.sqlite"
c.JupyterHub.cookie_secret_file = "{dir}/cookie"
"""


def data_path(name: str) -> Path | None:
    """Return a trace's file or folder, below MLP_BENCH_DATA or `shared/data` beside the checkout; None where it is not there.

    Not every trace may be copied into the project, so none is.
    """
    found = Path(os.environ.get("MLP_BENCH_DATA") or ROOT.parent / "shared" / "data") / name
    return found if found.exists() else None


def anchor_proxy() -> list[str]:
    """Return the command of configurable-http-proxy as it comes, which JupyterHub alone is measured with."""
    from mlp_hub.proxy import node

    program = ROOT / "hub/mlp_hub/proxy/node_modules/configurable-http-proxy/bin/configurable-http-proxy"
    if not program.exists():
        raise FileNotFoundError(f"{program} is missing: npm --prefix {program.parents[3]} ci")
    return [node(), str(program)]


@contextlib.contextmanager
def bare_hub(directory: Path, more: str = "") -> Iterator[tuple[str, int]]:
    """Start a JupyterHub alone with its state in a directory, and give its address and pid; `more` are lines of its settings."""
    port = free_port()
    config = directory / "c.py"
    config.write_text(
        (_BARE + more).format(
            port=port, hub_port=free_port(), api_port=free_port(), dir=directory, command=anchor_proxy()
        )
    )
    child = subprocess.Popen(
        [str(BIN / "jupyterhub"), "-f", str(config)],
        cwd=directory,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield f"http://127.0.0.1:{port}", child.pid
    finally:
        child.terminate()
        child.wait(30)


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number. `ratio` is ours divided by the anchor's; `note` tells the method and what is not equal."""

    name: str
    ours: float
    unit: str
    anchor: float | None = None
    anchor_name: str = ""
    note: str = ""
    command: str = ""

    @property
    def ratio(self) -> float | None:
        return None if not self.anchor else self.ours / self.anchor

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "ours": self.ours,
            "unit": self.unit,
            "anchor": self.anchor,
            "anchor_name": self.anchor_name,
            "ratio": self.ratio,
            "command": self.command,
            "note": self.note,
        }

    def line(self) -> str:
        beside = (
            f" | {self.anchor_name} {self.anchor:g} ({self.ratio:.2f}x)"
            if self.ratio
            else f" | {self.anchor_name}"
        )
        return (
            f"{self.name:44} {self.ours:>10.4g} {self.unit}{beside if self.anchor_name else ''}  {self.note}"
        )


class Context:
    """A hub that is started when first asked for and shared by the benchmarks."""

    def __init__(self, tmp: Path) -> None:
        self.tmp = tmp
        self._hub: LiveHub | None = None

    @property
    def hub(self) -> LiveHub:
        if self._hub is None:
            self._hub = LiveHub(self.tmp / "h")
            self._hub.up()
            self._hub.add_user("bench")
        return self._hub

    def close(self) -> None:
        if self._hub is not None:
            self._hub.destroy()


def median_of(values: Sequence[float]) -> float:
    return statistics.median(values)


def quantile(values: Sequence[float], q: float) -> float:
    """Return the nearest-rank quantile, `q` between 0 and 1."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self.began = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.began


_BATCH, _BATCHES = 5000, 60
POINTS = _BATCH * _BATCHES


def post_points(hub: LiveHub) -> Stopwatch:
    """Post points of 3 values to a job `sink` of the user `bench`, which is started for them; return what ran since the first."""
    hub.submit("bench", "sink", "import time; time.sleep(600)", cpu=0.5, ram=128)
    hub.wait_phase("bench", "sink", "running")
    batches = [
        {
            "source": "0.0.bench",
            "points": [
                {"n": b * _BATCH + i + 1, "t": 1e9 + i, "v": {"step": i, "loss": 0.5, "accuracy": 0.9}}
                for i in range(_BATCH)
            ],
        }
        for b in range(_BATCHES)
    ]
    watch = Stopwatch()
    for batch in batches:
        answer = hub.ok("POST", "/users/bench/job_metrics/sink", "bench", batch)
        assert answer["last"] == batch["points"][-1]["n"]
    return watch
