"""How often Python looks for garbage in cycles, in a process with very many long-lived objects."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


def spare_the_collector() -> None:
    """Reduce the frequency of the collector.

    A backlog of a hundred thousand jobs is millions of objects that all stay. Walking them took a third
    of the longest scheduling cycles and freed nothing. Dropped objects are still freed at once by their
    count of references.
    """
    gc.freeze()  # what was imported is in no cycle
    gc.set_threshold(50_000, 20, 100)


@contextmanager
def while_importing() -> Iterator[None]:
    """Leave the collector out while modules are imported, and what was imported out of its way afterwards.

    They make no garbage, and it would walk all of them again and again, and once more when the process ends: a third of
    the processor time of a start and an end of the hub.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
