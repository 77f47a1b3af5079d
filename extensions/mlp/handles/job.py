"""Jobs from Python: `mlp.submit(...)` gives a `Job`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from mlp.client import follow
from mlp.client.downloads import fetch
from mlp.client.outlasting_wait import OutlastingWait
from mlp.client.rest import Client
from mlp.errors import JobFailed, JobTimeout, UsageError
from mlp.grammar.job_options import AGAIN, UPDATE, as_sent, seconds_meant
from mlp.grammar.keywords import parse
from mlp.language import say
from mlp.rendering import ends, reasons, tables, terminal, words
from mlp.rendering.format import clock_time, span
from mlp.rendering.history import FINAL, History
from mlp.submitting import provenance

Json = dict[str, Any]


class Job:
    """Job of the user; attributes are as last seen, and `refresh()` requests them again."""

    def __init__(self, client: Client, data: Json) -> None:
        self._client = client
        self.data = data
        self.note = ""  # that it is not the one which was asked for, and why

    # ------------------------------------------------------------ what it is

    @property
    def name(self) -> str:
        """Name as it was given; a job that is run again under its name is another run of it."""
        return str(self.data["name"])

    @property
    def run(self) -> int:
        """Which run of its name this is, from 1 on."""
        return int(self.data.get("run") or 1)

    @property
    def reference(self) -> str:
        """Reference to this run and no other: digits@2."""
        return f"{self.name}@{self.run}" if self.data.get("run") else self.name

    @property
    def user(self) -> str:
        """Owner of the job."""
        return str(self.data["user"])

    @property
    def phase(self) -> str:
        """Fine life cycle: queued, running, finished, failed, ..."""
        return str(self.data["phase"])

    @property
    def state(self) -> str:
        """Coarse state: creating, running, finished, error, deleting."""
        return str(self.data["state"])

    @property
    def progress(self) -> int:
        """0 to 100."""
        return int(self.data.get("progress") or 0)

    @property
    def final(self) -> bool:
        """Whether it has ended."""
        return self.phase in FINAL

    def refresh(self) -> Job:
        """Ask the service how it is now."""
        self.data = self._client.job(self.reference, self.user)
        return self

    def __repr__(self) -> str:
        running = f"{self.progress} %" if self.phase == "running" else ""
        failure = self.data.get("failure") or {}
        why = running or str(failure.get("message") or "") or ends.cause(self.data)
        return f"<Job {words.title(self.data)}: {words.state(self.data)}{why and say(', ')}{words.bare(why)}>"

    # ---------------------------------------------------------------- waiting

    def wait(self, timeout: float | None = None) -> Job:
        """Wait until it has ended, well or not, also while the hub is away.

        Raises `JobTimeout` after `timeout` seconds; the job then continues.
        """
        wait = OutlastingWait(self._client, timeout)
        while not (wait.asked(self.refresh) and self.final):
            if wait.over:
                raise self.late(timeout or 0.0)
            time.sleep(wait.pause())
        if (shown := sys.modules.get("mlp.display.job_monitor")) is not None:
            shown.settle(self)
        return self

    def late(self, timeout: float) -> JobTimeout:
        """Return the error that it has not ended after `timeout` seconds."""
        return JobTimeout(
            self,
            say(
                "{job} is still {state} after {span}; it continues",
                job=words.title(self.data),
                state=words.state(self.data),
                span=span(timeout),
            ),
        )

    def result(self, timeout: float | None = None) -> dict[str, float]:
        """Wait, and return the last value of each metric; raises `JobFailed` when it did not finish well."""
        self.wait(timeout)
        self.check()
        return self._outcome().latest()

    def _outcome(self) -> History:
        """Return all that was seen of it, however long the hub is away meanwhile."""
        found: list[History] = []
        wait = OutlastingWait(self._client)
        while not wait.asked(lambda: found.append(self.history())):
            time.sleep(wait.pause())
        return found[-1]

    def check(self, *, shown: bool = False) -> None:
        """Raise `JobFailed` when it ended without having finished; in short where it is `shown` already what went wrong."""
        if self.final and self.phase != "finished":
            name = words.title(self.data)
            if shown:
                why = ends.cause(self.data) or words.state_word(self.data)
                raise JobFailed(self, say("{what}: {why}", what=name, why=why))
            why = ends.failure(self.data) or words.state_word(self.data)
            tail = str((self.data.get("failure") or {}).get("tail") or "").rstrip()
            said = say("{what}: {why}", what=name, why=why)
            raise JobFailed(self, terminal.plain(f"{said}\n{tail}" if tail else said))

    def watch(self) -> None:
        """Show it live: the widget in a notebook, else text until it ends."""
        from mlp.display import job_monitor  # noqa: PLC0415 - a program that only submits needs no display

        job_monitor.show(self)

    # ---------------------------------------------------------------- looking

    def history(self, *, keep_points: bool = False) -> History:
        """Return all that was seen of it so far."""
        seen = History(self.data)
        seen.points = [] if keep_points else None
        for frame in follow.replay(self._client, self.reference, self.user):
            seen.take(frame)
        if seen.job:
            self.data = seen.job
        return seen

    def metrics(self) -> Any:
        """Return all reported points, in order: a pandas DataFrame where pandas is there, else a list of dicts."""
        points = self.history(keep_points=True).points or []
        rows = []
        for p in points:
            own = {} if p.get("step") is None else {"step": p["step"]}
            rows.append({"time": p["time"], "rank": p["rank"], **own, **p["values"]})
        try:
            pd = import_module("pandas")  # optional
        except ImportError:
            return rows
        frame = pd.DataFrame(rows)
        if rows:
            frame["time"] = pd.to_datetime(frame["time"], unit="s", utc=True)
        return frame

    def logs(self, rank: int | None = None, tail: int | None = None) -> Log:
        """Return the output of one rank, or of all, each line then with its rank; the last `tail` lines of each.

        A log keeps its first 4 MiB and its last 12 MiB. Where others are missing, a line of the stream `mlp` says how many.
        """
        if tail is not None and tail < 1:
            raise UsageError(say("tail={n}: at least 1", n=tail))
        now = {int(r["rank"]) for r in self.refresh().data.get("ranks") or ()}
        ranks = sorted(now | self._ranks_before(now)) if rank is None else [rank]
        lines = [
            {"rank": r, **line}
            for r in ranks
            for line in self._client.log(self.reference, self.user, rank=r, tail=tail)
        ]
        lines.sort(key=lambda line: str(line.get("time", "")))
        return Log(lines, with_rank=len(ranks) > 1, empty="" if lines else self._why_empty(rank, now))

    def files(self, path: str = "") -> tables.Table:
        """Return what is in a directory that the job wrote, as `ckpt`; without one, in /workspace itself."""
        return tables.files(self._client.files(self.reference, path, self.user), path)

    def get(self, path: str, to: str | os.PathLike[str] = ".") -> Path:
        """Fetch a file, or a directory with all below, into a directory or under another name; return where it is."""
        of = self._client.job_path(self.reference, self.user)
        return fetch(self._client, of, path, Path(to), self.reference).to

    def _ranks_before(self, now: set[int]) -> set[int]:
        """Return the ranks that earlier attempts may have had: one that waits has none now, an elastic one had more at times."""
        if not self.data.get("restarts"):
            return set() if now else {0}
        most = str(self.data.get("workers", 1)).rpartition(":")[2]
        return set(range(int(most) + int(self.data.get("ps") or 0)))

    def _why_empty(self, rank: int | None, now: Collection[int]) -> str:
        """Say why a rank of the job, or all (None), wrote no output; `now` are the ranks that it has now."""
        if rank is not None and rank not in now and self.data.get("restarts"):
            return say("Rank {rank} of {job} has written nothing.", rank=rank, job=words.title(self.data))
        phase, name = str(self.data.get("phase")), words.title(self.data)
        if phase in {"queued", "suspended"}:
            why = words.command(f"why {words.reference(self.data)}")
            return say(
                "{job} is {state} and has no output yet; {command} shows more.",
                job=name,
                state=words.phase_word(phase),
                command=why,
            )
        how = {"job": name, "state": words.state_word(self.data)}
        if self.final:
            is_whole = rank is None or len(now) == 1
            if is_whole and (wrote := self._first_line_at()):
                return say(
                    "{job} is {state}. It wrote its first line at {time}, but its log has no readable lines, perhaps after a power cut or on a full disk.",
                    time=clock_time(wrote),
                    **how,
                )
            if not is_whole:
                return say("{job} is {state}; its rank {rank} has written nothing.", rank=rank, **how)
            return say("{job} is {state}; it has written nothing.", **how)
        return say("{job} is {state}; it has written nothing yet.", **how)

    def _first_line_at(self) -> str | None:
        """Return when the newest attempt that wrote something wrote its first line."""
        stages = (s for a in self._client.attempts(self.reference, self.user) for s in a["stages"])
        return max((str(s["time"]) for s in stages if s["stage"] == "first-line"), default=None)

    def why(self) -> tables.Sentences:
        """Return the reason for its state, with numbers, and the change that would let it start now."""
        found = self._client.why(self.reference, self.user)
        began = found.get("phase") == "running" or found.get("phase") in FINAL
        told = [] if found.get("phase") == "queued" else self._client.decisions(self.reference, self.user)
        return reasons.why(found, self.refresh().data if began else None, told)

    def events(self) -> list[Json]:
        """Return its timeline."""
        return self._client.events(self.reference, self.user)

    # --------------------------------------------------------------- steering

    def _act(self, verb: str) -> Job:
        self.data = self._client.act(verb, self.reference, self.user)
        return self

    def cancel(self) -> Job:
        """Stop it for good."""
        return self._act("cancel")

    def suspend(self) -> Job:
        """Stop it for now; it gives back what it holds."""
        return self._act("suspend")

    def resume(self) -> Job:
        """Queue it again after a suspend."""
        return self._act("resume")

    def resubmit(self, /, **other: Any) -> Job:
        """Run it again, as the next run of its name and from then on this object, with other `workers`, `cpu`, `gpu`, `ram`, `priority`, `time_limit` or `params` where they are given; or `exactly=True`."""
        given = parse(other, AGAIN, "resubmit")
        told = {**as_sent(given), "provenance": provenance.told()}
        self.data = self._client.act("resubmit", self.reference, self.user, size=told)
        if note := seconds_meant(given):
            sys.stderr.write(f"{note}\n")
        return self

    def update(self, /, **changes: Any) -> Job:
        """Change its `priority`, `time_limit` or `place` while it has not ended, as far as you may."""
        given = parse(changes, UPDATE, "update")
        self.data = self._client.act("update", self.reference, self.user, size=given)
        return self

    def keep(self, hours: int = 4) -> Job:
        """Keep it for some hours, 24 at most, where its team would take its unused GPUs back soon."""
        self.data = self._client.act("keep", self.reference, self.user, size={"hours": hours})
        return self

    def delete(self) -> None:
        """Remove it with its files; only after it ended."""
        self._client.delete(self.reference, self.user)


class Log(list[Json]):
    """Log lines; shows as text, or as `empty` where there is none."""

    def __init__(self, lines: Sequence[Json], *, with_rank: bool, empty: str = "") -> None:
        super().__init__(lines)
        self.with_rank = with_rank
        self.empty = empty

    def __repr__(self) -> str:
        if not self:
            return self.empty
        return "\n".join(
            terminal.rows(str(x["text"]), f"{x['rank']}: " if self.with_rank else "") for x in self
        )

    __str__ = __repr__


def listed(client: Client, state: str | None, tenant: str | None) -> JobList:
    """Return the jobs of a client in a state or phase, of a tenant."""
    every = client.jobs(tenant=tenant)
    found = [j for j in every if state in {None, j.get("state"), j.get("phase")}]
    shown = JobList([Job(client, data) for data in tables.jobs(found).data])
    if every and not found:
        shown.none = say(
            "No job is {state}; to list all {n} jobs: {command}",
            state=words.phase_word(state),
            n=len(every),
            command=words.command("jobs"),
        )
    return shown


class JobList(list[Job]):
    """A list of jobs that shows as a table; `none` is what it says where it is empty, `wide` has all columns on any terminal."""

    none = ""
    wide = False

    @property
    def table(self) -> tables.Table:
        """The same as a table."""
        table = tables.jobs([job.data for job in self], none=self.none)
        table.wide = self.wide
        return table

    def __repr__(self) -> str:
        return repr(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()
