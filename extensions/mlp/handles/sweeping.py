"""Sweeps from Python: `mlp.sweep(...)` gives a `Sweep`; and what the verbs do with them."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from mlp.client.outlasting_wait import OutlastingWait
from mlp.client.rest import Client
from mlp.errors import MLPError, Refused
from mlp.grammar.job_options import seconds_meant
from mlp.grammar.keywords import describe, parse
from mlp.grammar.sweep_options import EXTEND, SWEEP, own_fields
from mlp.handles.job import Job
from mlp.language import say, says
from mlp.rendering import reasons, sweep_picture, words
from mlp.rendering.format import between, clock_time, core_hours, number, span
from mlp.rendering.tables import Sentences, Table
from mlp.submitting import program, provenance

Json = dict[str, Any]
ENDED = frozenset({"finished", "failed", "cancelled", "deleting"})
"""Seconds between two looks at one that is waited for."""


class Sweep:
    """Sweep of the user; attributes are as last seen, and `refresh()` requests them again."""

    def __init__(self, client: Client, data: Json) -> None:
        self._client = client
        self.data = data
        self.note = ""  # that it is not the one which was asked for, and why

    @property
    def name(self) -> str:
        """Name as it was given; a sweep that is started again under its name is another run of it."""
        return str(self.data["name"])

    @property
    def reference(self) -> str:
        """Reference to this run and no other: search@2."""
        return f"{self.name}@{self.data['run']}"

    @property
    def title(self) -> str:
        """How it is called: the first run by its name alone."""
        return words.title(self.data)

    @property
    def user(self) -> str:
        """Owner of the sweep."""
        return str(self.data["user"])

    @property
    def state(self) -> str:
        """One of: running, ending, finished, failed, cancelled, deleting."""
        return str(self.data["state"])

    @property
    def ended(self) -> bool:
        """Whether it has ended; an extended one continues."""
        return self.state in ENDED

    @property
    def best(self) -> Json | None:
        """The best trial so far, with its `params`, `value` and `job`."""
        found: Json | None = self.data.get("best")
        return found

    @property
    def trials(self) -> Any:
        """All trials: a DataFrame where pandas is there, else a list of dicts."""
        rows = [
            {"trial": t["number"], "job": t["job"], "state": t["state"], **t["params"], "value": t["value"],
             "steps": t["steps"], "core_hours": t["core_hours"]}
            for t in self.data.get("trials") or ()
        ]  # fmt: skip
        try:
            pd = import_module("pandas")  # optional
        except ImportError:
            return rows
        return pd.DataFrame(rows)

    def refresh(self) -> Sweep:
        """Request the present state."""
        self.data = self._client.sweep(self.reference, self.user)
        return self

    def wait(self, timeout: float | None = None) -> Sweep:
        """Return when it has ended, however long the hub is away; raises TimeoutError when it takes longer than `timeout` seconds."""
        wait = OutlastingWait(self._client, timeout)
        while not (wait.asked(self.refresh) and self.ended):
            if wait.over:
                raise TimeoutError(say("{name} has not ended; it continues.", name=self.title))
            time.sleep(wait.pause())
        return self

    def curves(self, most: int = 100) -> dict[int, list[tuple[float, float]]]:
        """Return (step, value) of the metric of each trial, `most` of each."""
        found = self._client.sweep_curves(self.reference, self.user, most)
        return {int(c["trial"]): [(x, y) for x, y in c["points"]] for c in found}

    def cancel(self) -> Sweep:
        """Make no more trials, and end the live ones."""
        self.data = self._client.act_sweep("cancel", self.reference, self.user)
        return self

    def extend(self, /, **more: Any) -> Sweep:
        """Extend it: `trials`, `core_hours`, or `deadline` from now; one that has ended continues."""
        self.data = self._client.act_sweep("extend", self.reference, self.user, parse(more, EXTEND, "extend"))
        return self

    def delete(self) -> None:
        """Delete it with the jobs of its trials."""
        self._client.delete_sweep(self.reference)

    def why(self) -> Sentences:
        """Return what its trials wait for: the reason of each, and the numbers of the first that waits."""
        self.refresh()
        state = say("{job} is {state}.", job=self.title, state=sweep_picture.state(self.data))
        first = next((t for t in self.data["trials"] if sweep_picture.waits(t) and t["job"]), None)
        found = None if first is None else self._client.why(str(first["job"]), self.user)
        numbers = [] if found is None else reasons.why(found).lines
        return Sentences(
            [state, *sweep_picture.summary(self.data), *numbers], {"sweep": self.data, "why": found}
        )

    def snapshot(self) -> Json:
        """Return what its picture is made of."""
        snapshot: Json = {"sweep": self.data}
        if self.data.get("metric"):
            try:
                snapshot["curves"] = self._client.sweep_curves(self.reference, self.user, 50)
            except MLPError:
                snapshot["curves"] = []
        return snapshot

    def watch(self) -> None:
        """Show it: in a notebook live, elsewhere as text until it ends."""
        from mlp.display import sweep_monitor  # noqa: PLC0415 - only who looks needs it

        sweep_monitor.show(self)

    def __repr__(self) -> str:
        return sweep_picture.text({"sweep": self.data})

    def _repr_html_(self) -> str:
        return sweep_picture.html(self.snapshot())


def sweep(
    entry: str | os.PathLike[str] | None = None,
    *,
    code: str | None = None,
    args: Sequence[object] = (),
    variables: Mapping[str, Any] | None = None,
    **options: Any,
) -> Any:
    given = parse(options, SWEEP, "sweep")
    body = build(given, entry=entry, code=code, args=args, variables=variables)
    return begin(Client.from_env(), body, given)


def begin(client: Client, body: Json, given: Mapping[str, Any], out: Any = None) -> Any:
    """Start a sweep, or say what it would take; with `wait` stay until it ends."""
    if given.get("dry_run"):
        return previewed(client.preview_sweep(body), body)
    found = send(client, body, named="name" in given)
    for note in filter(None, (seconds_meant(given), found.note)):
        (out or sys.stderr).write(f"{note}\n")
    if given.get("wait"):
        found.wait()
    return found


def build(given: Mapping[str, Any], **of: Any) -> Json:
    """Make the body of a sweep; raises `UsageError`."""
    return completed(program.build(given, **of), given)


def completed(body: Json, given: Mapping[str, Any]) -> Json:
    """Add the fields of a sweep to the body of a job."""
    body = {**body, **own_fields(given)}
    if given.get("priority"):
        body["priority"] = given["priority"]  # a job's default is another than a sweep's
    return body


def as_array(body: Json, given: Mapping[str, Any]) -> Json:
    """Make the body of an array of that of a job: its members are jobs like all others, and do not give way as trials do."""
    return {**body, "array": given["array"], "priority": given.get("priority") or "normal"}


def send(client: Client, body: Json, *, named: bool) -> Sweep:
    """Start a sweep; if a given name is in use by a live one, return that one with a note."""
    if told := provenance.told():
        body = {**body, "provenance": told}
    try:
        return Sweep(client, client.start_sweep(body))
    except Refused as error:
        if error.reason != "Conflict" or not named:
            raise
        try:
            there = Sweep(client, client.sweep(str(body["name"])))
        except Refused:
            raise error from None
        if there.ended:
            raise
        there.note = say(
            "{name} has not ended; this shows it. To start from the beginning: {command} first, or another name.",
            name=there.title,
            command=words.command(f"sweeps cancel {there.reference}"),
        )
        return there


def job_or_sweep(client: Client, name: str) -> Job | Sweep:
    """Return the job of this name, or the sweep where no job is called so."""
    try:
        return Job(client, client.job(name))
    except Refused as error:
        if error.reason != "NotFound":
            raise
        with contextlib.suppress(Refused):
            return Sweep(client, client.sweep(name))
        raise


def why(client: Client, name: str) -> Sentences:
    """Return why the job of this name waits, or the trials of the sweep where no job is called so."""
    return job_or_sweep(client, name).why()


def get_sweep(name: str) -> Sweep:
    """Return one of your sweeps by its name, the latest run, or a certain one: `search@2`."""
    client = Client.from_env()
    return Sweep(client, client.sweep(name))


def sweeps(tenant: str | None = None) -> Table:
    """Return your sweeps, the newest first."""
    return listed(Client.from_env().sweeps(tenant=tenant))


def act(client: Client, names: Sequence[str], given: Mapping[str, Any]) -> Any:
    """List, show, cancel, extend or remove sweeps."""
    what, *rest = names or ["ls"]
    if what == "ls":
        return listed(client.sweeps(tenant=given.get("tenant")))
    if what == "show":
        return Sweep(client, client.sweep(rest[0]))
    if what == "trials":
        return trials(client.sweep(rest[0]))
    if what == "extend":
        more = {o.name: given[o.name] for o in EXTEND if o.name in given}
        found = client.act_sweep("extend", rest[0], None, more)
        return Sentences([say("{name} continues.", name=words.title(found))], found)
    told: dict[str, Callable[[str], str]] = {
        "cancel": lambda name: say("{name} ends; no more trials are made.", name=name),
        "rm": lambda name: say("{name} is being deleted", name=name),
    }
    done = [client.act_sweep("cancel", n) if what == "cancel" else client.delete_sweep(n) for n in rest]
    return Sentences([told[what](words.title(found)) for found in done], done)


def listed(found: Sequence[Json]) -> Table:
    """List sweeps, the newest first."""
    rows = [
        [
            words.title(s),
            sweep_picture.state(s),
            sweep_picture.progress(s),
            sweep_picture.best(s),
            core_hours(s["core_hours"]),
            str(s["tenant"]),
            clock_time(s.get("submitted_at")) or "",
            str(s.get("message") or ""),
        ]
        for s in found
    ]
    columns = (
        say("name"), say("state"), say("trials"), say("best"), say("core-hours"), say("team"), say("started"), say("note"),
    )  # fmt: skip
    command = words.command("sweep FILE --grid lr=0.1,0.01")
    return Table(
        columns, rows, list(found), empty=say("You have no sweeps. Start one: {command}", command=command)
    )


def trials(found: Json) -> Table:
    """List the trials of a sweep, the best first where there is a best."""
    order = sweep_picture.in_order(found)
    names = list(found["grid"] | found["search"])
    rows = [
        [
            str(t["job"] or t["number"]),
            sweep_picture.trial_state(t),
            *(str(t["params"].get(name, "")) for name in names),
            "" if t["value"] is None else number(t["value"]),
            str(t["steps"]),
            core_hours(t["core_hours"]),
            str(t["message"]) if t["state"] in {"failed", "stopped"} or sweep_picture.waits(t) else "",
        ]
        for t in order
    ]
    columns = (
        say("job"), say("state"), *names, found.get("metric") or say("value"), say("steps"), say("core-hours"), say("note"),
    )  # fmt: skip
    return Table(columns, rows, order, empty=say("{name} has no trials yet", name=words.title(found)))


def previewed(told: Json, body: Json) -> Sentences:
    """Write what a sweep would be and take."""
    lines = [
        says("1 trial", "{n} trials", told["trials"])
        + says(", one at a time as things are now", ", {n} at a time as things are now", told["at_a_time"])
    ]
    if told.get("core_hours") is not None:
        most = told.get("core_hours_most")
        cost = say("About {n} core-hours", n=core_hours(told["core_hours"]))
        lines.append(say("{cost}, {most} at most", cost=cost, most=core_hours(most)) if most else cost)
    if told.get("trial_s") is not None:
        lines.append(say("One trial: about {time}", time=span(told["trial_s"])))
    end = clock_time(told.get("expected_end"))
    start = between((told.get("forecast") or {}).get("start")) or clock_time(told.get("expected_start"))
    if start:
        lines.append(say("Starts: {time}", time=start))
    lines.append(say("Ends: about {time}", time=end) if end else say("Ends: not known"))
    if told.get("because"):
        lines.append(say("Known from: {why}", why=str(told["because"])))
    lines.append(say("Nothing was started."))
    return Sentences(lines, {"request": body, "preview": told})


describe(
    sweep,
    "Start a sweep and return it at once as a `Sweep` (with `wait`, when it has ended).\n\n"
    "    entry: a script in your home; or code: the program's text; args: the script's arguments\n"
    "    variables: sent along as JSON\n"
    "    the program finds what was chosen in `mlp.params`, and says how it does by `mlp.report(accuracy=...)`",
    SWEEP,
)
