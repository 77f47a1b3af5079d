"""Jobs from Python: `mlp.submit(...)` gives a `Job`."""

from __future__ import annotations

import inspect
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from mlp import follow, picture, program, tables, words
from mlp.client import Client
from mlp.errors import JobFailed, JobTimeout, Refused, UsageError
from mlp.history import FINAL, History
from mlp.options import BY_NAME, SHAPE, SIZE, SUBMIT, Option
from mlp.verbs import STATE

Json = dict[str, Any]
_SOON, _LATE = 0.2, 2.0


class Job:
    """A job of yours. Attributes are as last seen; `refresh()` asks anew."""

    def __init__(self, client: Client, data: Json) -> None:
        self._client = client
        self.data = data

    # ------------------------------------------------------------ what it is

    @property
    def name(self) -> str:
        """Unique among its user's jobs."""
        return str(self.data["name"])

    @property
    def user(self) -> str:
        """Whose it is."""
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
        self.data = self._client.job(self.name, self.user)
        return self

    def __repr__(self) -> str:
        return f"<Job {self.name}: {words.state(self.data)}, {self.progress} %>"

    # ---------------------------------------------------------------- waiting

    def wait(self, timeout: float | None = None) -> Job:
        """Wait until it has ended, well or not. Raises `JobTimeout` after `timeout` seconds; the job goes on then."""
        until = None if timeout is None else time.monotonic() + timeout
        pause = _SOON
        while not self.refresh().final:
            left = pause if until is None else until - time.monotonic()
            if left <= 0:
                raise JobTimeout(
                    self, f"{self.name} is still {words.state(self.data)} after {timeout:g} s; it goes on"
                )
            time.sleep(min(pause, left))
            pause = min(pause * 1.2, _LATE)
        if (shown := sys.modules.get("mlp.display")) is not None:
            shown.settle(self)
        return self

    def result(self, timeout: float | None = None) -> dict[str, float]:
        """Wait, and return the last value of each metric; raises `JobFailed` when it did not finish well."""
        self.wait(timeout)
        self.check()
        return self.history().latest()

    def check(self) -> None:
        """Raise `JobFailed` when it ended without having finished."""
        if self.final and self.phase != "finished":
            why = words.failure(self.data) or f"{self.name} was {self.phase}"
            tail = str((self.data.get("failure") or {}).get("tail") or "").rstrip()
            raise JobFailed(
                self, picture.plain(f"{self.name}: {why}\n{tail}" if tail else f"{self.name}: {why}")
            )

    def watch(self) -> None:
        """Show it live: the widget in a notebook, else text until it ends."""
        from mlp import display  # noqa: PLC0415 - a program that only submits needs no display

        display.show(self)

    # ---------------------------------------------------------------- looking

    def history(self, *, keep_points: bool = False) -> History:
        """Return all that was seen of it so far."""
        seen = History(self.data)
        seen.points = [] if keep_points else None
        for frame in follow.replay(self._client, self.name, self.user):
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
        """Return the output of one rank, or of all, each line then with its rank; the last `tail` lines of each."""
        if tail is not None and tail < 1:
            raise UsageError(f"tail={tail}: at least 1")
        now = {int(r["rank"]) for r in self.refresh().data.get("ranks") or ()}
        ranks = sorted(now | self._ranks_before(now)) if rank is None else [rank]
        lines = [
            {"rank": r, **line}
            for r in ranks
            for line in self._client.log(self.name, self.user, rank=r, tail=tail)
        ]
        lines.sort(key=lambda line: str(line.get("time", "")))
        return Log(lines, with_rank=len(ranks) > 1, empty=self._silence(rank if rank not in now else None))

    def _ranks_before(self, now: set[int]) -> set[int]:
        """Return the ranks that earlier attempts may have had: one that waits has none now, an elastic one had more at times."""
        if not self.data.get("restarts"):
            return set() if now else {0}
        most = str(self.data.get("workers", 1)).rpartition(":")[2]
        return set(range(int(most) + int(self.data.get("ps") or 0)))

    def _silence(self, absent: int | None = None) -> str:
        """Say why there is no output; `absent` is a rank that was asked for and that the job has not now."""
        if absent is not None and self.data.get("restarts"):
            return f"Rank {absent} of {self.name} has written nothing."
        phase = str(self.data.get("phase"))
        if phase in {"queued", "suspended"}:
            return f"{self.name} is {phase} and has no output yet; {words.command(f'why {self.name}')} says more."
        return f"{self.name} is {phase}; it has written nothing{'' if self.final else ' yet'}."

    def why(self) -> tables.Sentences:
        """Return why it stands where it stands, with numbers, and what would let it start now."""
        found = self._client.why(self.name, self.user)
        ended = self.refresh().data if found.get("phase") in FINAL else None
        told = [] if found.get("phase") == "queued" else self._client.decisions(self.name, self.user)
        return tables.why(found, ended, told)

    def events(self) -> list[Json]:
        """Return its timeline."""
        return self._client.events(self.name, self.user)

    # --------------------------------------------------------------- steering

    def _act(self, verb: str) -> Job:
        self.data = self._client.act(verb, self.name, self.user)
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

    def resubmit(self, **size: Any) -> Job:
        """Run it again, with other `workers`, `cpu`, `gpu`, `ram`, `priority` or `time_limit` where they are given."""
        self.data = self._client.act("resubmit", self.name, self.user, size=parse(size, SIZE, "resubmit"))
        return self

    def delete(self) -> None:
        """Remove it with its files; only after it ended."""
        self._client.delete(self.name, self.user)


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
            picture.plain(f"{x['rank']}: {x['text']}" if self.with_rank else str(x["text"])) for x in self
        )

    __str__ = __repr__


# --------------------------------------------------------------------- functions


def send(client: Client, body: Json, *, named: bool) -> Job:
    """Submit a request; a name of ours that is taken gets a number, for one of the user's a free one is named."""
    try:
        return Job(client, client.submit(body))
    except Refused as refused:
        if refused.reason != "Conflict":
            raise
        taken = {str(j["name"]) for j in client.jobs()}
        free = free_name(body["name"], taken)
        if body["name"] not in taken or named:
            text = refused.msg if free in refused.msg else f"{refused.msg}. Free: --name {free}"
            again = (
                f". To see it again: {words.command('watch')} {body['name']}" if body["name"] in taken else ""
            )
            raise Refused("Conflict", f"{text}{again}") from None
        return Job(client, client.submit({**body, "name": free}))


def free_name(name: str, taken: set[str]) -> str:
    """Return the next name with a number that nobody has: digits-2 for digits, digits-3 for digits-2."""
    stem, dash, last = name.rpartition("-")
    # mpi-1121-103205: a date is no number to count on from
    number = int(last) if dash and last.isdecimal() and len(last) < 4 else 0
    stem = stem if number else name
    number = max(number, 1)
    while True:
        number += 1
        tail = f"-{number}"
        free = stem[: 50 - len(tail)].rstrip("-") + tail
        if free not in taken:
            return free


def parse(options: Mapping[str, Any], table: Sequence[Option], function: str) -> Json:
    """Parse Python's keyword options by the table; raises TypeError for one that is not in it."""
    known = {o.name: o for o in table}
    for key in options:
        if key not in known:
            raise TypeError(f"{function}() has no option {key!r}; it has: {', '.join(known)}")
    return {key: known[key].value(value) for key, value in options.items() if value is not None}


def submit(
    entry: str | os.PathLike[str] | None = None,
    *,
    code: str | None = None,
    args: Sequence[object] = (),
    variables: Mapping[str, Any] | None = None,
    **options: Any,
) -> Any:
    given = parse(options, SUBMIT, "submit")
    body = program.build(given, entry=entry, code=code, args=args, variables=variables)
    client = Client.from_env()
    if given.get("dry_run"):
        return dry_run(client, body)
    job = send(client, body, named="name" in given)
    if given.get("wait"):
        job.wait()
        job.check()
    return job


def dry_run(client: Client, body: Json) -> tables.Sentences:
    """Say what would be sent and what it would get, without sending it."""
    offered = tables.offer(client.offer({o.name: body[o.name] for o in SHAPE if o.name in body}))
    lines = len(body.get("code", "").splitlines())
    what = body.get("entry") or f"a program of {lines} line{'' if lines == 1 else 's'}"
    written = {"time_limit": words.span, "checkpoint_every": words.span, "ram": words.memory}
    shape = ", ".join(
        f"{BY_NAME[k].flag} {written.get(k, str)(v)}" for k, v in body.items() if k in BY_NAME and k != "env"
    )
    return tables.Sentences(
        [f"Would submit {what}: {shape}", *offered.lines], {"request": body, "offer": offered.data}
    )


def get_job(name: str) -> Job:
    """Return one of your jobs by its name."""
    client = Client.from_env()
    return Job(client, client.job(name))


def jobs(state: str | None = None, tenant: str | None = None) -> Jobs:
    """Return your jobs, those that have not ended first; `state` is a state or a phase."""
    state = None if state is None else STATE.value(state)
    client = Client.from_env()
    found = [j for j in client.jobs(tenant=tenant) if state in {None, j.get("state"), j.get("phase")}]
    return Jobs([Job(client, data) for data in tables.jobs(found).data])


class Jobs(list[Job]):
    """A list of jobs that shows as a table."""

    @property
    def table(self) -> tables.Table:
        """The same as a table."""
        return tables.jobs([job.data for job in self])

    def __repr__(self) -> str:
        return repr(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def quota() -> tables.Table:
    """Return what your tenants may use, what is used of it, and by whom."""
    return tables.quota(Client.from_env().quota())


def offer(**options: Any) -> tables.Sentences:
    shape = parse(options, SHAPE, "offer")
    return tables.offer(Client.from_env().offer({k: v for k, v in shape.items() if v != BY_NAME[k].default}))


def _describe(function: Callable[..., Any], summary: str, table: Sequence[Option]) -> None:
    """Give a function the signature and the help of the option table."""
    fixed = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
    made = [inspect.Parameter(o.name, inspect.Parameter.KEYWORD_ONLY, default=o.default) for o in table]
    function.__signature__ = inspect.Signature([*fixed, *made])  # type: ignore[attr-defined]
    rows = [f"    {o.name}: {o.help} (default: {o.shown_default or o.default})" for o in table]
    function.__doc__ = "\n".join([summary, "", *rows])


_describe(
    submit,
    "Submit a job and return it at once as a `Job` (with `wait`, when it has finished well).\n\n"
    "    entry: a script in your home; or code: the program's text; args: the script's arguments\n"
    "    variables: sent along as JSON; in a program's text they are variables, a script reads `mlp.variables()`",
    SUBMIT,
)
_describe(
    offer, "Return what a job of this shape would get: start now or when, on what, at what cost.", SHAPE
)
