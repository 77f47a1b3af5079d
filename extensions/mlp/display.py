"""Showing a job: the live widget where there is a front end, else text; always a still picture for the saved notebook."""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from mlp import follow, picture, words
from mlp.errors import MLPError, Refused, Unauthorized
from mlp.handle import Job
from mlp.history import History

Json = dict[str, Any]
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
FRONT_ENDS = ("JPY_SESSION_NAME", "VSCODE_PID", "VSCODE_CWD")
"""Set in kernels that a person's notebook started; nbclient, papermill and `jupyter execute` set none of them."""
FIRST_REFRESH, LONGEST_REFRESH = 30.0, 480.0
FAR_STEP = 10


def in_kernel() -> bool:
    """Tell whether outputs of this process are messages that can be updated."""
    return hasattr(words.shell(), "kernel")


def mode(env: Mapping[str, str] = os.environ) -> str:
    """Return `widget`, `kernel` (outputs, but nobody who runs a widget) or `text`; MLP_DISPLAY overrules."""
    if not in_kernel():
        return "text"
    asked = env.get("MLP_DISPLAY")
    if asked in {"widget", "kernel", "text"}:
        return asked
    there = all(importlib.util.find_spec(m) is not None for m in ("anywidget", "mlp_widgets"))
    return "widget" if there and any(env.get(v) for v in FRONT_ENDS) else "kernel"


def show(job: Job) -> None:
    """Show a job: in a notebook at once and live, elsewhere as text until it ends."""
    if mode() == "widget":
        Monitor(job, widget=True).start()
    else:
        watch_text(job)
        if mode() == "kernel":
            Monitor(job, widget=False).start()


def show_submitted(job: Job) -> None:
    """Show a job that was submitted just now, without waiting for anything."""
    if mode() == "text":
        write(sys.stdout, f"{job.name}: {words.state(job.data)}. Follow it: %mlp watch {job.name}\n")
    else:
        Monitor(job, widget=mode() == "widget").start()


def write(out: TextIO, text: str) -> None:
    """Write and flush."""
    out.write(text)
    out.flush()


class Monitor:
    """One display of one job in a notebook, kept right by a thread until the job ends."""

    def __init__(self, job: Job, *, widget: bool, sleep: Callable[[float], object] = time.sleep) -> None:
        self.job = job
        self.display_id = f"mlp-{uuid.uuid4().hex}"
        self._sleep = sleep
        self._snapshot: Json = {"job": job.data}
        self._widget = self._make_widget() if widget else None
        self._lock = threading.Lock()
        self._ended = False

    def _make_widget(self) -> Any:
        if self.job.final:
            return None
        try:
            from mlp_widgets import JobMonitor  # noqa: PLC0415 - only where there is a front end
        except ImportError as error:  # it is not built, or anywidget is missing: the picture will do
            write(sys.stderr, f"mlp: {error}\n")
            return None
        return JobMonitor(user=self.job.user, name=self.job.name, snapshot=self._snapshot)

    def start(self) -> None:
        """Show now, and follow in the background."""
        self._look()
        self._publish(update=False)
        if not self.job.final:
            _open.add(self)
            threading.Thread(target=self._run, name=f"mlp-watch-{self.job.name}", daemon=True).start()

    def _look(self) -> None:
        try:
            self._snapshot = self.job.history().snapshot()
        except MLPError:
            self._snapshot = {**self._snapshot, "job": self.job.data}

    def bundle(self) -> Json:
        """Return what the display holds now: the widget only while the job has not ended."""
        data: Json = {"text/plain": picture.text(self._snapshot), "text/html": picture.html(self._snapshot)}
        if self._widget is not None and not self.job.final:
            made = self._widget._repr_mimebundle_() or {}
            found = made[0] if isinstance(made, tuple) else made
            data |= {k: v for k, v in found.items() if k == WIDGET_VIEW}
        return data

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
            # a widget is live by itself, and drawing it anew would reset what a person has opened in it
            if self._widget is None and time.monotonic() - shown >= every:
                self._look()
                self._publish(update=True)
                shown = time.monotonic()
                every = min(every * 2, LONGEST_REFRESH)

    def _end(self) -> None:
        with self._lock:
            if self._ended:
                return
            self._ended = True
            self._look()
            self._publish(update=True)
            if self._widget is not None:
                self._widget.close()
        _open.discard(self)

    def settle(self, ended: Job) -> None:
        """Draw the end at once when it is this job's: a notebook that is run as a whole may end before the thread looks."""
        if (ended.user, ended.name) == (self.job.user, self.job.name):
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
        parts = [str(job.get("name")), words.state(job)]
        if progress or job.get("phase") == "running":
            parts += [picture.bar(progress), f"{progress:g} %"]
        parts += [f"{k} {words.number(v)}" for k, v in seen.latest().items() if k != "progress"][:4]
        parts += [words.time_left(job)] if words.time_left(job) else []
        text = picture.plain("  ".join(parts)).replace("\n", " ")
        return text[:150]

    def note(self, text: str) -> None:
        """Say something in between."""
        self.end()
        write(self.out, picture.plain(text) + "\n")

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
        for frame in follow.frames(job._client, job.name, job.user):  # noqa: SLF001 - one module family
            kind = frame.get("type")
            seen.take(frame, replay=replay)
            if kind == "lost":
                replay = True
                teller.note(f"the connection was lost ({frame['message']}); the job goes on, trying again")
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
        write(
            out, f"No longer watching; {job.name} goes on. Stop it: {words.command(f'cancel {job.name}')}\n"
        )
        raise
    teller.end()
    job.data = seen.job or job.data
    write(out, picture.text(seen.snapshot()) + "\n")
    settle(job)
    return job
