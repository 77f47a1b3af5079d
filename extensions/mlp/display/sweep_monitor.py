"""Showing a sweep: the live monitor where there is a front end, else text; always a still picture for the saved notebook."""

from __future__ import annotations

import sys
import threading
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO

from mlp.client.outlasting_wait import OutlastingWait
from mlp.display.job_monitor import FIRST_REFRESH, LONGEST_REFRESH, mode, write
from mlp.errors import MLPError, Refused, Unauthorized
from mlp.language import say
from mlp.rendering import sweep_picture, words

if TYPE_CHECKING:
    from mlp.handles.sweeping import Sweep

Json = dict[str, Any]
SWEEP_VIEW = "application/vnd.mlp-hub.sweep+json"
"""Which sweep an output shows; `widgets/src/lab.ts` draws it."""
LOOK_S = 2.0


def show(sweep: Sweep, *, started: bool = False) -> None:
    """Show a sweep: in a notebook at once and live, elsewhere as text until it ends, or one line of one that was started."""
    where = mode()
    if where == "text" and started:
        line = say(
            "{name} was started. Follow it: {command}",
            name=sweep.title,
            command=f"%mlp sweep {sweep.reference}",
        )
        write(sys.stdout, f"{line}\n")
        return
    if where != "widget":
        watch_text(sweep)
    if where != "text":
        SweepMonitor(sweep).start()


def watch_text(
    sweep: Sweep, out: TextIO | None = None, *, sleep: Callable[[float], object] = time.sleep
) -> Sweep:
    """Follow a sweep as lines of text until it ends, then sum up. Ctrl-C ends the watching, not the sweep."""
    out = out or sys.stdout
    last = ""
    wait = OutlastingWait(sweep._client)  # noqa: SLF001 - one module family
    try:
        while True:
            if not wait.asked(sweep.refresh):
                sleep(LOOK_S)
                continue
            parts = [
                sweep_picture.state(sweep.data),
                sweep_picture.progress(sweep.data),
                sweep_picture.best(sweep.data),
            ]
            line = "  ".join(filter(None, [sweep.title, *parts]))
            if line != last and not sweep.ended:
                write(out, f"{line}\n")
            last = line
            if sweep.ended:
                break
            sleep(LOOK_S)
    except KeyboardInterrupt:
        stop = words.command(f"sweeps cancel {sweep.reference}")
        write(
            out,
            say("No longer watching; {name} continues. Stop it: {command}", name=sweep.title, command=stop)
            + "\n",
        )
        raise
    if mode() == "text":
        write(out, sweep_picture.text({"sweep": sweep.data}) + "\n")
    return sweep


class SweepMonitor:
    """One display of one sweep in a notebook; a thread renews its picture until the sweep ends."""

    def __init__(self, sweep: Sweep, *, sleep: Callable[[float], object] = time.sleep) -> None:
        self.sweep = sweep
        self.display_id = f"mlp-{uuid.uuid4().hex}"
        self._sleep = sleep

    def start(self) -> None:
        """Show now, and follow in the background."""
        self._publish(update=False)
        if not self.sweep.ended:
            threading.Thread(target=self._run, name=f"mlp-watch-{self.sweep.reference}", daemon=True).start()

    def bundle(self) -> Json:
        """Return what the display holds now."""
        snapshot = self.sweep.snapshot()
        snapshot["sweep"] = {**snapshot["sweep"], "code": None}  # the program is in the cell
        return {
            "text/plain": sweep_picture.text(snapshot),
            "text/html": sweep_picture.html(snapshot),
            SWEEP_VIEW: {"user": self.sweep.user, "name": self.sweep.reference, "snapshot": snapshot},
        }

    def _publish(self, *, update: bool) -> None:
        from IPython.display import display  # noqa: PLC0415 - only in a kernel

        display(  # type: ignore[no-untyped-call,unused-ignore]
            self.bundle(), raw=True, display_id=self.display_id, update=update
        )

    def _run(self) -> None:
        shown, every = time.monotonic(), FIRST_REFRESH
        while True:
            self._sleep(LOOK_S)
            try:
                self.sweep.refresh()
                if self.sweep.ended or time.monotonic() - shown >= every:
                    self._publish(update=True)
                    shown, every = time.monotonic(), min(every * 2, LONGEST_REFRESH)
            except (Refused, Unauthorized):
                return  # deleted, or the token ended: the last picture stays
            except MLPError:
                continue
            if self.sweep.ended:
                return
