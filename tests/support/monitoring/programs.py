"""Programs of the field that tests run at a port of loopback."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
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
    name: str, log: Path, words: Callable[[str], Sequence[str | Path]], found: Callable[[str], P]
) -> Iterator[P]:
    """Run a program until the end; yield what `found` makes of its address as soon as it is ready.

    `words` returns its command, with the address that it listens at.
    """
    address = f"127.0.0.1:{free_port()}"
    with log.open("w") as out:
        process = subprocess.Popen([str(word) for word in words(address)], stdout=out, stderr=out)
    try:
        wait_for(lambda: _is_ready(address), message=f"for {name}")
        yield found(address)
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def _is_ready(address: str) -> bool:
    try:
        with urlopen(f"http://{address}/-/ready", timeout=1) as answer:
            return int(answer.status) == 200
    except (URLError, OSError):
        return False
