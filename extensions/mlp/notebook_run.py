"""Runner of a notebook as the program of a job: `python -m mlp.notebook_run work.ipynb`.

The cells run one after the other in a kernel of the notebook's. As in JupyterLab, its directory is
the working directory, unless `--workdir` names another. Their output is the job's log, and the
number of finished cells is its progress. The executed copy is in the run's directory, whatever the
job's end.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mlp.errors import UsageError
from mlp.inputs.parameters import Params
from mlp.language import say
from mlp.notebooks import notebook_files
from mlp.reporting import points

FAILED, UNUSABLE, STOPPED = 1, 2, 128 + signal.SIGTERM
LONGEST = 4_000
"""Safety: characters of an error's own words in the log's last line."""
SAVE_EVERY_S = 5.0
"""Tuning: seconds between two times that the copy is written; more often costs disk, less often what a killed job leaves."""
LONGEST_PATH = 80
"""Given: characters; a UNIX socket's path has 107 at most, of which the sockets' own names take some."""
_CRASHES = {signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE}
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


class _Stopped(Exception):  # noqa: N818 - what became of it
    """The platform asked the job to end."""


def run_file(path: str) -> int:
    """Run a notebook's file; return the exit status."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        return _unusable(say("{path} cannot be read: {why}", path=path, why=str(error.strerror)))
    # a job that was given no directory starts in the home, and its notebook in its own
    directory = Path.cwd() if os.environ.get("MLP_WORKDIR") else Path(path).resolve().parent
    return _run(Path(path).name, data, directory)


def run_text(name: str, text: str) -> int:
    """Run a notebook that came with the job; return the exit status."""
    return _run(name, text.encode(), Path.cwd())


def _run(name: str, data: bytes, directory: Path) -> int:
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace", line_buffering=True)  # type: ignore[union-attr]
    try:
        notebook = notebook_files.read(name, data)
        notebook_files.check(name, notebook)
        own = notebook_files.running(notebook)
        for line in notebook_files.inject(notebook, Params.of(os.environ)):
            _tell(line)
    except UsageError as error:
        return _unusable(str(error))
    # a grammar for a format that no notebook has; nbformat takes it along, and building it is a second and a half of the start
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # means: not installed
    try:
        import ipykernel  # noqa: F401, PLC0415 - the kernel's own; asked for here, since its process could only fail
        import nbformat  # noqa: PLC0415 - not in every environment
        from nbclient import exceptions  # noqa: PLC0415 - likewise
    except ImportError as error:
        return _unusable(
            say(
                "notebooks cannot run in this job's environment: it has no {package}. It needs {all}",
                package=str(error.name),
                all="nbclient, ipykernel",
            )
        )
    try:
        # by Jupyter's own reader: it joins what Jupyter's writer has split into lines, as pictures in a text
        document = nbformat.reads(json.dumps(notebook), as_version=4)  # type: ignore[no-untyped-call,unused-ignore]
        nbformat.validate(document)
    except Exception as error:  # noqa: BLE001 - of whatever type
        why = str(error).partition("\n")[0]
        return _unusable(say("{path} is not a notebook: {why}", path=name, why=why))
    # connection files are of this run only, and the home may be full
    with tempfile.TemporaryDirectory(prefix="mlp-kernel-") as runtime:
        os.environ["JUPYTER_RUNTIME_DIR"] = runtime
        numbers = [notebook_files.number(cell, own) for cell in notebook_files.running(notebook)]
        run = NotebookRun(name, document, directory, runtime, numbers)
        try:
            return asyncio.run(run.execute())
        except (exceptions.CellExecutionError, exceptions.DeadKernelError) as error:
            return run.failed(error)
        finally:
            run.end()


def _unusable(said: str) -> int:
    _tell(said)
    return UNUSABLE


def _tell(line: str) -> None:
    sys.stdout.flush()
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


class _Exited(Exception):  # noqa: N818 - what became of it
    """A cell called `exit()` or `quit()`, which in a kernel raise nothing."""


class NotebookRun:
    """A notebook on its way: which cell runs, what became of it, and its copy."""

    def __init__(
        self, name: str, document: Any, directory: Path, runtime: str, numbers: Sequence[int]
    ) -> None:
        self.document = document
        self.numbers = numbers
        """Of each cell that runs its number in the author's notebook; 0: the injected cell, which is not in it."""
        self.directory = directory
        self.runtime = runtime
        self.cells = max(numbers)
        self.cell = 0
        """How many cells have begun, the injected one too."""
        self.stopping = False
        self.copy = Path(os.environ.get("MLP_WORKSPACE") or ".") / name
        self._saved = 0.0
        self._unsaved = True
        self._why = ""
        self._traceback = ""
        self._client: Any = None

    async def execute(self) -> int:
        """Run all cells; return the exit status, or raise what ended the kernel or a cell."""
        from jupyter_client.kernelspec import NoSuchKernel  # noqa: PLC0415 - see above
        from nbclient.exceptions import DeadKernelError  # noqa: PLC0415 - see above

        from mlp.notebooks.outputs import TellingClient  # noqa: PLC0415 - see above

        self._client = client = TellingClient(
            self.document,
            self._listen,
            timeout=None,
            startup_timeout=600,
            resources={"metadata": {"path": str(self.directory)}},
            on_notebook_start=self._begun,
            on_cell_execute=self._cell_begins,
            on_cell_executed=self._cell_ended,
            on_cell_error=self._cell_failed,
            **_transport(self.document, self.runtime),
            **_kernel(self.document),
        )
        try:
            await client.async_execute()
        except NoSuchKernel as error:
            return _unusable(_no_kernel(str(error.name)))
        except _Stopped:
            return self._stopped()
        except _Exited:
            return self._kept(0)
        except RuntimeError as error:
            if isinstance(error, DeadKernelError):
                raise
            return _unusable(say("the notebook's kernel did not start: {why}", why=str(error)))
        return self._kept(0)

    def _listen(self) -> None:
        # nbclient's own handler would end the kernel, and with it what a cell still has to save
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._stop)

    def _begun(self, **_: Any) -> None:
        points.report(progress=0)

    def _stop(self) -> None:
        """Interrupt the cell, which may save what it has; then it is over."""
        self.stopping = True
        self._save()
        if self.cell:  # else it has not begun, and will not
            self._asked = asyncio.ensure_future(self._client.km.interrupt_kernel())

    def _cell_begins(self, **_: Any) -> None:
        if self.stopping:
            raise _Stopped
        self.cell += 1
        said = (
            say("[cell {n} of {all}]", n=self._number, all=self.cells)
            if self._number
            else say("[parameters]")
        )
        sys.stdout.write(said + "\n")

    @property
    def _number(self) -> int:
        return self.numbers[self.cell - 1] if self.cell else 0

    def _cell_failed(self, execute_reply: Any, **_: Any) -> None:
        self._traceback = "\n".join(map(str, execute_reply["content"].get("traceback", ())))

    def _cell_ended(self, execute_reply: Any, **_: Any) -> None:
        self._unsaved = True
        if execute_reply["content"].get("status") == "error":
            return
        points.report(progress=round(100 * self.cell / len(self.numbers), 2))
        if time.monotonic() - self._saved >= SAVE_EVERY_S:
            self._save()
        asked = execute_reply["content"].get("payload") or ()
        if any(one.get("source") == "ask_exit" for one in asked if isinstance(one, dict)):
            raise _Exited

    def failed(self, error: Any) -> int:
        """Say which cell ended it and why, in the log's last lines; return the exit status."""
        name = getattr(error, "ename", "")
        if self.stopping:
            return self._stopped()
        if name == "SystemExit" and error.evalue in {"", "0", "None"}:
            return self._kept(0)
        if not name:
            why = _how_it_ended(self._client.ended_with)
            _tell(
                say("the kernel ended in cell {n} of {all}: {why}", n=self._number, all=self.cells, why=why)
                if self._number
                else say("the kernel ended in the cell of parameters: {why}", why=why)
            )
            return self._kept(FAILED)
        _tell(_ANSI.sub("", self._traceback).strip())
        value = _ANSI.sub("", f"{error.evalue}").strip()[:LONGEST]
        if name == "StdinNotImplementedError":  # its own words are of front ends
            value = say(
                "nobody answers questions in a job; give the value with --param, and read it from mlp.params"
            )
        what = f"{name}: {value}" if value else name
        _tell(
            say("cell {n} of {all} failed: {what}", n=self._number, all=self.cells, what=what)
            if self._number
            else say("the cell of parameters failed: {what}", what=what)
        )
        return self._kept(FAILED)

    def _stopped(self) -> int:
        _tell(
            say("stopped in cell {n} of {all}", n=self._number, all=self.cells)
            if self._number or not self.cell
            else say("stopped in the cell of parameters")
        )
        return self._kept(STOPPED)

    def end(self) -> None:
        """Keep the copy, however it ended."""
        if self._unsaved:
            self._save()

    def _kept(self, status: int) -> int:
        """Keep the copy; return the status, which is not good where that cannot be done."""
        self._save()
        if self._why:
            _tell(
                say("the executed copy {path} cannot be written: {why}", path=str(self.copy), why=self._why)
            )
            return status or FAILED
        if not status:
            sys.stdout.write(say("executed copy: {path}", path=str(self.copy)) + "\n")
        return status

    def _save(self) -> None:
        """Write the copy, whole or not at all."""
        import nbformat  # noqa: PLC0415 - see above

        self._saved, self._unsaved, self._why = time.monotonic(), False, ""
        fresh = self.copy.with_name(f".{self.copy.name}.new")
        try:
            with fresh.open("w", encoding="utf-8", errors="backslashreplace") as out:
                out.write(nbformat.writes(self.document))  # type: ignore[no-untyped-call,unused-ignore]
            fresh.replace(self.copy)
        except OSError as error:
            self._why, self._unsaved = error.strerror or str(error), True
            with contextlib.suppress(OSError):
                fresh.unlink()


def _how_it_ended(status: int | None) -> str:
    """Say what ended a kernel, by its exit status or minus the signal's number."""
    if status is None:
        return say("it was killed, perhaps because of its memory use, or the cell ended it")
    if status >= 0:
        return say("the cell ended it with exit status {status}", status=status)
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = str(-status)
    if -status == signal.SIGKILL:
        return say("it was killed ({signal}), perhaps because of its memory use", signal=name)
    if -status in _CRASHES:
        return say("it crashed ({signal}) in compiled code that the cell called", signal=name)
    return say("it was ended by {signal}", signal=name)


def _transport(document: Any, runtime: str) -> dict[str, Any]:
    """Have the kernel's messages go by UNIX sockets, which only this user reaches; not every language's kernel can."""
    from traitlets.config import Config  # noqa: PLC0415 - see above

    manager = {"connection_file": f"{runtime}/kernel.json"}
    if notebook_files.language(document) == "python" and len(runtime) <= LONGEST_PATH:
        manager["transport"] = "ipc"
    return {"config": Config(KernelManager=manager)}


def _kernel(document: Any) -> dict[str, str]:
    """Have a notebook of an environment's kernel run by the Python of the job, which has that environment or says that it has not."""
    if notebook_files.environment(document) and os.environ.get("VIRTUAL_ENV"):
        return {"kernel_name": "python3"}
    return {}


def _no_kernel(name: str) -> str:
    if name.startswith(notebook_files.KERNEL_OF_ENVIRONMENT):
        return say(
            "the notebook was saved with the kernel of environment {name}: submit it with --env-name {name}",
            name=name.removeprefix(notebook_files.KERNEL_OF_ENVIRONMENT),
        )
    from jupyter_client.kernelspec import KernelSpecManager  # noqa: PLC0415 - see above

    there = ", ".join(sorted(KernelSpecManager().find_kernel_specs())) or "-"
    return say(
        "kernel {name} does not exist where the job runs; available: {there}. Choose one in JupyterLab (Kernel, Change Kernel) and save the notebook",
        name=name,
        there=there,
    )


if __name__ == "__main__":
    sys.exit(run_file(sys.argv[1]))
