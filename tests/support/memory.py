"""Memory that a call takes, measured where nothing else allocates."""

from __future__ import annotations

import gc
import os
import traceback
import tracemalloc
from collections.abc import Callable


def peak(act: Callable[[], object]) -> int:
    """Return the bytes that Python held at most for `act`, in a fork with Python's own thresholds of collections.

    Threads and thresholds that other tests left in this process would count too.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            gc.enable()
            gc.set_threshold(700, 10, 10)  # Python's own: tests of services leave rarer collections behind
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
