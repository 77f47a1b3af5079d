"""Runs the Python program of a rank whose others wait for it: by_python.py PROGRAM [ARGUMENT ...]. Standard library of whatever Python.

An exception that nobody catches ends the rank soon after its traceback. Otherwise a thread of the program could keep it, and with it
all other ranks, for ever.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import sys
import threading
import time

SOON_S = 2.0
"""Tuning: seconds that threads of a program have to end after its traceback."""


def end_soon(status: int) -> None:
    """End this process in a while, if the interpreter has not come to its end by then."""

    def end() -> None:
        time.sleep(SOON_S)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(status)

    threading.Thread(target=end, daemon=True).start()


def main() -> None:
    """Run the program."""
    del sys.argv[0]
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0):
            end_soon(end.code if isinstance(end.code, int) else 1)
        raise
    except BaseException:
        end_soon(1)
        raise


if __name__ == "__main__":
    main()
