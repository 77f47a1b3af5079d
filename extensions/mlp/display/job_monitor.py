"""Showing a job: the live monitor where there is a front end, else text; always a still picture for the saved notebook.

An output holds which job it is (`JOB_VIEW`), and its picture. JupyterLab and Notebook draw the live monitor from the
first, by an extension of theirs that comes with this package: no kernel and no widget model is needed, so that it is
there as well when the notebook is opened again. All others draw the picture.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TextIO

from mlp.client import follow
from mlp.errors import MLPError, Refused, Unauthorized
from mlp.language import say
from mlp.rendering import job_picture, terminal, times, words
from mlp.rendering.format import number
from mlp.rendering.history import History
from mlp.rendering.words import sentences

if TYPE_CHECKING:
    from mlp.handles.job import Job

Json = dict[str, Any]
JOB_VIEW = "application/vnd.mlp-hub.job+json"
"""Which job an output shows; `widgets/src/lab.ts` draws it."""
FRONT_ENDS = ("JPY_SESSION_NAME", "VSCODE_PID", "VSCODE_CWD")
"""Set in kernels that a person's notebook started; nbclient, papermill and `jupyter execute` set none of them."""
FIRST_REFRESH, LONGEST_REFRESH = 30.0, 480.0
FAR_STEP = 10


def in_kernel() -> bool:
    """Tell whether outputs of this process are messages that can be updated."""
    return hasattr(words.shell(), "kernel")


def mode(env: Mapping[str, str] = os.environ) -> str:
    """Return `widget` (somebody looks at it live), `kernel` (outputs, but nobody looks) or `text`; MLP_DISPLAY overrules."""
    if not in_kernel():
        return "text"
    asked = env.get("MLP_DISPLAY")
    if asked in {"widget", "kernel", "text"}:
        return asked
    return "widget" if any(env.get(v) for v in FRONT_ENDS) else "kernel"


def show(job: Job) -> None:
    """Show a job: in a notebook at once and live, elsewhere as text until it ends."""
    if mode() != "widget":
        watch_text(job)
    if mode() != "text":
        Monitor(job).start()


def show_submitted(job: Job) -> None:
    """Show a job that was submitted just now, without waiting for anything."""
    if mode() == "text":
        how = say(", ").join(filter(None, [words.state(job.data), times.time_limit(job.data)]))
        follow_it = f"%mlp watch {words.reference(job.data)}"
        line = say(
            "{job}: {how}. Follow it: {command}", job=words.title(job.data), how=how, command=follow_it
        )
        write(sys.stdout, f"{line}\n")
    else:
        Monitor(job).start()


def show_to_the_end(job: Job) -> None:
    """Show a job and stay until it ends; an interrupt leaves the job running and says so."""
    if mode() == "widget":
        Monitor(job).start()
        try:
            job.wait()
        except KeyboardInterrupt:
            write(
                sys.stdout,
                _goes_on(job, say("No longer waiting; {job} continues.", job=words.title(job.data))),
            )
            raise
    else:
        show(job)


def _goes_on(job: Job, what: str) -> str:
    stop = words.command(f"cancel {words.reference(job.data)}")
    return f"{sentences(what, say('Stop it: {command}', command=stop))}\n"


def write(out: TextIO, text: str) -> None:
    """Write and flush."""
    out.write(text)
    out.flush()


class Monitor:
    """One display of one job in a notebook; a thread renews its picture until the job ends."""

    def __init__(self, job: Job, *, sleep: Callable[[float], object] = time.sleep) -> None:
        self.job = job
        self.display_id = f"mlp-{uuid.uuid4().hex}"
        self._sleep = sleep
        self._snapshot: Json = {"job": job.data}
        self._lock = threading.Lock()
        self._ended = False

    def start(self) -> None:
        """Show now, and follow in the background."""
        self._look()
        self._publish(update=False)
        if not self.job.final:
            _open.add(self)
            threading.Thread(target=self._run, name=f"mlp-watch-{self.job.reference}", daemon=True).start()

    def _look(self) -> None:
        try:
            self._snapshot = self.job.history().snapshot()
        except MLPError:
            self._snapshot = {**self._snapshot, "job": self.job.data}

    def bundle(self) -> Json:
        """Return what the display holds now."""
        return {
            "text/plain": job_picture.text(self._snapshot),
            "text/html": job_picture.html(self._snapshot),
            JOB_VIEW: {"user": self.job.user, "name": self.job.reference, "snapshot": self._snapshot},
        }

    def _publish(self, *, update: bool) -> None:
        from IPython.display import display  # noqa: PLC0415 - only in a kernel

        display(  # type: ignore[no-untyped-call,unused-ignore]
            self.bundle(), raw=True, display_id=self.display_id, update=update
        )

    def _run(self) -> None:
        born = shown = time.monotonic()
        every = FIRST_REFRESH
        while True:
            self._sleep(min(max((time.monotonic() - born) / 20, 1.0), 5.0))
            phase = self.job.phase
            try:
                self.job.refresh()
            except (Refused, Unauthorized):
                _open.discard(self)
                return  # deleted, or the token ended: the last picture stays
            except MLPError:
                continue
            if self.job.final:
                self._end()
                return
            due = time.monotonic() - shown >= every
            if due or self.job.phase != phase:
                self._look()
                self._publish(update=True)
                shown = time.monotonic()
                every = min(every * 2, LONGEST_REFRESH) if due else every

    def _end(self) -> None:
        with self._lock:
            if self._ended:
                return
            self._ended = True
            self._look()
            self._publish(update=True)
        _open.discard(self)

    def settle(self, ended: Job) -> None:
        """Draw the end at once when it is this job's: a notebook that is run as a whole may end before the thread looks."""
        if (ended.user, ended.reference) == (self.job.user, self.job.reference):
            self.job.data = ended.data
            self._end()


_open: set[Monitor] = set()
"""Displays of jobs that have not ended yet."""


def settle(ended: Job) -> None:
    """Bring all displays of a job that has ended to their last state."""
    for monitor in list(_open):
        monitor.settle(ended)


# --------------------------------------------------------------------- plain text


class TextFollower:
    """Progress as text: one line that is overwritten on a terminal, a few lines elsewhere."""

    def __init__(self, out: TextIO, *, live: bool) -> None:
        self.out = out
        self.live = live
        self._last = ""
        self._width = 0
        self._step = -1

    def show(self, seen: History) -> None:
        """Show how the job is, where that is news."""
        line = self.line(seen)
        if self.live:
            if line != self._last:
                write(self.out, "\r" + line.ljust(self._width))
                self._width = len(line)
        else:
            step = int(float(seen.job.get("progress") or 0)) // FAR_STEP
            state = words.state(seen.job)
            if (state, step) != (self._last, self._step):
                write(self.out, line + "\n")
            self._step, line = step, state
        self._last = line

    def line(self, seen: History) -> str:
        """Return the one line."""
        job = seen.job
        progress = float(job.get("progress") or 0)
        parts = [words.title(job), words.state(job)]
        if progress or job.get("phase") == "running":
            parts += [job_picture.bar(progress), f"{progress:g} %"]
        parts += [f"{k} {number(v)}" for k, v in seen.latest().items() if k != "progress"][:4]
        parts += [left] if (left := times.left_or_end(job)) else []
        text = terminal.plain("  ".join(parts)).replace("\n", " ")
        return text[:150]

    def note(self, text: str) -> None:
        """Say something in between."""
        self.end()
        write(self.out, terminal.plain(text) + "\n")

    def end(self) -> None:
        """Leave the line."""
        if self.live and self._width:
            write(self.out, "\n")
        self._width, self._last = 0, ""


def watch_text(job: Job, out: TextIO | None = None, *, live: bool | None = None) -> Job:
    """Follow a job as text until it ends, then sum up. Ctrl-C ends the watching, not the job."""
    out = out or sys.stdout
    teller = TextFollower(out, live=out.isatty() and not in_kernel() if live is None else live)
    seen = History(job.data)
    replay = True
    drawn = 0.0
    told: list[str] = []
    try:
        for frame in follow.frames(job._client, job.reference, job.user):  # noqa: SLF001 - one module family
            kind = frame.get("type")
            seen.take(frame, replay=replay)
            if kind == "lost":
                replay = True
                lost = say(
                    "the connection was lost ({why}); the job continues, trying again",
                    why=str(frame["message"]),
                )
                teller.note(lost)
            replay = replay and kind != "synced"
            if kind == "why" and seen.phase == "queued" and (news := words.prospects(seen.why or {})) != told:
                told = news
                for line in news:
                    teller.note(f"  {line}")
            if not replay and (kind in {"job", "synced"} or time.monotonic() - drawn > 0.2):
                drawn = time.monotonic()
                teller.show(seen)
    except KeyboardInterrupt:
        teller.end()
        write(out, _goes_on(job, say("No longer watching; {job} continues.", job=words.title(job.data))))
        raise
    teller.end()
    job.data = seen.job or job.data
    if mode() == "text":  # else a picture follows, which says the same
        write(out, job_picture.text(seen.snapshot()) + "\n")
    settle(job)
    return job
