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
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType

from mpi4py import run

_HERE = os.path.dirname(os.path.abspath(__file__))
CONTROL = _HERE + "/control.sock"
"""Where the platform listens; found now, since at the end of the program `__file__` is no longer there."""
_NOT_THE_PROGRAMS = {__file__, run.__file__, runpy.__file__, "<frozen runpy>"}


def _beside(name: str) -> ModuleType:
    """Load a module from this module's directory, whatever the Python path is."""
    spec = spec_from_file_location(name, f"{_HERE}/{name}.py")
    assert spec is not None  # noqa: S101 - of a path that ends with .py
    assert spec.loader is not None  # noqa: S101
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


by_python = _beside("by_python")


class ProgramEnd:
    """The end of the program; `raised`: by an exception or an exit status, of which MPI_Finalize makes an abort."""

    raised = False

    def note(self, error: BaseException) -> None:
        """Keep what ended it, and have mpi4py abort all ranks."""
        self.raised = not (isinstance(error, SystemExit) and error.code in (None, 0))
        run.set_abort_status(error)


def tell_over(ending: ProgramEnd) -> None:
    """Tell who started the rank, where it listens."""
    with contextlib.suppress(Exception):  # it is the end of somebody else's program
        message = {"t": "over", "rank": int(os.environ["MLP_RANK"]), "raised": ending.raised}
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as link:
            link.connect(CONTROL)
            link.send(json.dumps(message).encode())


def abort(code: int) -> None:
    """End all ranks. One that has not come to MPI_Init cannot abort the others; its exit status makes mpirun do so."""
    mpi = getattr(sys.modules.get("mpi4py"), "MPI", None)
    if mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized():
        mpi.COMM_WORLD.Abort(code)
    os._exit(code)


def main() -> None:
    """Run the program."""
    ending = ProgramEnd()
    atexit.register(tell_over, ending)
    by_python.watched(
        lambda: run.run_command_line(sys.argv[1:]),
        lambda status: by_python.end_soon(status, abort),
        ending.note,
        _NOT_THE_PROGRAMS,
    )


if __name__ == "__main__":
    main()
