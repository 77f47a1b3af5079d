"""Programs of the field that tests run at a port of loopback."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.error import URLError
from urllib.request import urlopen

from support.ports import free_port
from support.waiting import PATIENCE_S, wait_for

P = TypeVar("P")


@contextmanager
def running_program(
    name: str,
    log: Path | None,
    words: Callable[[str], Sequence[str | Path]],
    found: Callable[[str], P],
    *,
    port: int = 0,
    ready: str = "/-/ready",
    env: Mapping[str, str] | None = None,
) -> Iterator[P]:
    """Run a program until the end; yield what `found` makes of its address as soon as it answers at the path `ready`.

    `words` returns its command, with the address that it listens at. 0 as `port`: a free one. Its standard input ends with this
    process.
    """
    address = f"127.0.0.1:{port or free_port()}"
    with open(log or os.devnull, "w") as out:
        process = subprocess.Popen(
            [str(word) for word in words(address)], stdin=subprocess.PIPE, stdout=out, stderr=out, env=env
        )
    try:
        wait_for(lambda: _is_ready(process, address + ready), message=f"for {name}")
        yield found(address)
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
        assert process.stdin is not None
        process.stdin.close()


def _is_ready(process: subprocess.Popen[bytes], place: str) -> bool:
    assert process.poll() is None, f"it ended with {process.returncode}"
    try:
        with urlopen(f"http://{place}", timeout=1) as answer:
            return int(answer.status) == 200
    except (URLError, OSError):
        return False
