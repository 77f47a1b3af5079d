"""Downloads of tests by Maven: once for each machine, kept for later runs."""

from __future__ import annotations

import contextlib
import fcntl
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def alone(cache: Path) -> Iterator[None]:
    """Keep others from fetching into the same directory; it is made where it is not there."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def fetched(what: str, cache: Path, *goal: str, to: str = "", pom: str = "") -> Iterator[Path]:
    """Give a directory with what a goal of Maven copied into `to` below it; what is not moved away is removed again.

    Raises SystemExit where there is no Maven, or it does not find it.
    """
    with tempfile.TemporaryDirectory(dir=cache) as made:
        if pom:
            (Path(made) / "pom.xml").write_text(pom)
        command = ["mvn", "-q", "-B", *goal, f"-DoutputDirectory={Path(made) / to}"]
        try:
            done = subprocess.run(
                command, cwd=made, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
            )
        except FileNotFoundError as missing:
            raise SystemExit(
                f"Maven, which fetches {what}, is missing. As root: apt-get install maven"
            ) from missing
        if done.returncode:
            raise SystemExit(f"{what} could not be fetched: {done.stdout}\n{done.stderr}")
        yield Path(made)
