"""Memory that a call takes, measured where nothing else allocates."""

from __future__ import annotations

import os
import traceback
import tracemalloc
from collections.abc import Callable


def peak(act: Callable[[], object]) -> int:
    """Return the bytes that Python held at most for `act`, in a fork: threads that other tests left in this process allocate too."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            tracemalloc.start()
            act()
            os.write(write, b"%d" % tracemalloc.get_traced_memory()[1])
        except BaseException:  # noqa: BLE001 - printed here, and the parent says that it failed
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        found = file.read()
    os.waitpid(child, 0)
    assert found, "the call failed; its traceback is in the output"
    return int(found)
