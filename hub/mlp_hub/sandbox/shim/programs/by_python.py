"""Runs the Python program of a rank whose others wait for it: by_python.py PROGRAM [ARGUMENT ...]. Standard library of whatever Python.

An exception that nobody catches ends the rank soon after its traceback. Otherwise a thread of the program could keep it, and with it
all other ranks, for ever. In all else the program runs as by `python PROGRAM`. `by_mpi4py.py`, which lies beside, does the same for MPI.
"""

from __future__ import annotations

import builtins
import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Container, Iterable
from importlib.machinery import SourceFileLoader
from types import ModuleType

SOON_S = 2.0
"""Tuning: seconds that a program has after its traceback, for threads and for its `atexit` functions."""


def end_soon(status: int, last: Callable[[int], None] = os._exit) -> None:
    """End this process in a while, by `last`, if the interpreter has not come to its end by then."""

    def end() -> None:
        time.sleep(SOON_S)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        last(status & 0xFF)  # as Python itself ends with a number that is no exit status

    threading.Thread(target=end, daemon=True).start()


def run(program: str) -> None:
    """Run a program as `__main__`, which it stays: its threads and `atexit` may ask for that later."""
    module = ModuleType("__main__")
    module.__dict__.update(
        __file__=program,
        __builtins__=builtins,
        __cached__=None,
        __loader__=SourceFileLoader("__main__", program),
    )
    sys.modules["__main__"] = module
    with open(program, "rb") as file:
        code = compile(file.read(), program, "exec", dont_inherit=True)
    exec(code, module.__dict__)  # noqa: S102 - that is what it is for


def show(error: BaseException, ours: Container[str]) -> None:
    """Print an exception that nobody caught, by the hook that the program may have set, from the first line that is the program's.

    `ours` has the files that are not.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename in ours:
        trace = trace.tb_next
    sys.excepthook(type(error), error.with_traceback(trace), trace)


def watched(
    program: Callable[[], None],
    end: Callable[[int], None],
    note: Callable[[BaseException], None] = lambda _error: None,
    ours: Iterable[str] = (),
) -> None:
    """Run a program; where it does not end well, tell `note` of the exception and have `end` see to its threads."""
    try:
        program()
    except BaseException as error:
        note(error)
        code = error.code if isinstance(error, SystemExit) else 1
        if code not in (None, 0):
            end(code if isinstance(code, int) else 1)
        if isinstance(error, (SystemExit, KeyboardInterrupt)):
            raise
        show(error, {__file__, *ours})
        sys.exit(1)


def main() -> None:
    """Run the program."""
    del sys.argv[0]
    if not (getattr(sys.flags, "safe_path", False) or sys.flags.isolated):
        sys.path[0] = os.path.dirname(os.path.realpath(sys.argv[0]))
    watched(lambda: run(sys.argv[0]), end_soon)


if __name__ == "__main__":
    main()
