"""Runs the Python program of an MPI rank: by_mpi4py.py PROGRAM [ARGUMENT ...]. Standard library and mpi4py of whatever Python has it.

As with `python -m mpi4py`, an exception that nobody catches aborts all ranks, where otherwise its rank would wait in
MPI_Finalize for ever. mpi4py does so when the interpreter ends, which a thread of the program can keep from happening: then this does
it. And it tells the platform when the program is over: the rank itself lives until all others have come to MPI_Finalize.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import runpy
import socket
import sys
import threading
import time

from mpi4py import run

CONTROL = os.path.dirname(os.path.abspath(__file__)) + "/control.sock"
"""Where the platform listens; found now, since at the end of the program `__file__` is no longer there."""
_NOT_THE_PROGRAMS = {__file__, run.__file__, runpy.__file__, "<frozen runpy>"}
SOON_S = 2.0
"""Tuning: seconds that threads of a program have to end after its traceback."""


def tell_over() -> None:
    """Tell who started the rank, where it listens."""
    with contextlib.suppress(Exception):  # it is the end of somebody else's program
        message = {"t": "over", "rank": int(os.environ["MLP_RANK"])}
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as link:
            link.connect(CONTROL)
            link.send(json.dumps(message).encode())


def abort_soon(status: int) -> None:
    """End all ranks in a while, if the interpreter has not come to its end by then.

    A rank that has not come to MPI_Init cannot abort the others; its exit status makes mpirun do so.
    """
    code = status & 0xFF  # as Python itself ends with a number that is no exit status

    def abort() -> None:
        time.sleep(SOON_S)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        mpi = getattr(sys.modules.get("mpi4py"), "MPI", None)
        if mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized():
            mpi.COMM_WORLD.Abort(code)
        os._exit(code)

    threading.Thread(target=abort, daemon=True).start()


def show(error: BaseException) -> None:
    """Print an exception that nobody caught, by the hook that the program may have set, from the first line that is the program's."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename in _NOT_THE_PROGRAMS:
        trace = trace.tb_next
    sys.excepthook(type(error), error.with_traceback(trace), trace)


def main() -> None:
    """Run the program."""
    atexit.register(tell_over)
    try:
        run.run_command_line(sys.argv[1:])
    except SystemExit as end:
        run.set_abort_status(end)
        if end.code not in (None, 0):
            abort_soon(end.code if isinstance(end.code, int) else 1)
        raise
    except KeyboardInterrupt as error:
        run.set_abort_status(error)
        abort_soon(1)
        raise
    except BaseException as error:  # noqa: BLE001 - which ends the program all the same
        run.set_abort_status(error)
        abort_soon(1)
        show(error)
        sys.exit(1)


if __name__ == "__main__":
    main()
