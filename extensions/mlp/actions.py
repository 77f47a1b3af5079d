"""What the verbs do, for the magic and the command alike; each returns something that shows itself and has `data`."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from typing import Any

from mlp import picture, tables, words
from mlp.client import Client
from mlp.errors import MLPError, Refused, Unauthorized, UsageError
from mlp.handle import Job, Jobs
from mlp.history import FINAL
from mlp.options import BY_NAME, SHAPE, SIZE
from mlp.verbs import Call

Json = dict[str, Any]
ALIVE = "alive"
SUITS = {"cancel": ALIVE, "suspend": ALIVE, "resume": "suspended", "resubmit": "ended", "delete": "ended"}
DONE = {
    "cancel": "is being cancelled",
    "suspend": "is being suspended",
    "resume": "is in the queue again",
    "resubmit": "was submitted again",
    "delete": "was deleted",
}


class Picture:
    """A job as it is now."""

    def __init__(self, snapshot: Json) -> None:
        self.data = snapshot

    def __repr__(self) -> str:
        return picture.text(self.data)

    def _repr_html_(self) -> str:
        return picture.html(self.data)


class Outcomes(tables.Sentences):
    """What became of each job of a list; `failed` are those that were refused."""

    def __init__(self, lines: list[str], data: list[Json], failed: list[MLPError]) -> None:
        super().__init__(lines, data)
        self.failed = failed


def jobs(client: Client, call: Call) -> Jobs:
    """List."""
    state = call.given.get("state")
    found = [
        j for j in client.jobs(tenant=call.given.get("tenant")) if state in {None, j["state"], j["phase"]}
    ]
    return Jobs([Job(client, data) for data in tables.jobs(found).data])


def job(client: Client, call: Call) -> Picture:
    """Show one."""
    return Picture(Job(client, client.job(call.names[0])).history().snapshot())


def logs(client: Client, call: Call) -> Any:
    """Show the log; the last lines only where it is long is the caller's choice."""
    return Job(client, client.job(call.names[0])).logs(call.given.get("rank"), call.given.get("tail"))


def why(client: Client, call: Call) -> tables.Sentences:
    """Show why."""
    return Job(client, {"name": call.names[0], "user": client.user}).why()


def quota(client: Client, call: Call) -> tables.Table:
    """Show quotas."""
    del call
    return tables.quota(client.quota())


def offer(client: Client, call: Call) -> tables.Sentences:
    """Show an offer."""
    wanted = {o.name for o in SHAPE}
    shape = {k: v for k, v in call.given.items() if k in wanted and v != BY_NAME[k].default}
    return tables.offer(client.offer(shape))


def steer(client: Client, call: Call) -> Outcomes:
    """Cancel, suspend, resume, resubmit or delete several; one refusal does not stop the others."""
    verb = call.verb.name
    size = {o.name: call.given[o.name] for o in SIZE if o.name in call.given}
    lines, data, failed = [], [], []
    for name in select(client, call):
        try:
            after = client.delete(name) if verb == "delete" else client.act(verb, name, size=size)
        except Unauthorized:
            raise
        except MLPError as error:
            failed.append(error)
            lines.append(f"{name}: {error}")
            data.append({"name": name, "error": getattr(error, "reason", error.label), "msg": str(error)})
        else:
            again = ""
            if verb == "resubmit":
                follow = words.command(f"watch {after['name']}")
                again = f" as {after['name']}. Follow it: {follow}"
            lines.append(f"{name} {DONE[verb]}{again}")
            data.append(after or {"name": name})
    if len(failed) == 1 and len(lines) == 1:
        raise failed[0]
    return Outcomes(lines, data, failed)


def select(client: Client, call: Call) -> list[str]:
    """Return the names meant: as given, by pattern, or by filter (then those only that the verb suits)."""
    filters = call.given.keys() & {"state", "tenant"}
    patterns = [n for n in call.names if set(n) & set("*?[")]
    plain = [n for n in call.names if n not in patterns]
    if not patterns and not filters:
        return list(dict.fromkeys(plain))
    if filters and plain:
        raise UsageError(f"names ({', '.join(plain)}) or a filter, not both")
    state = call.given.get("state")
    found = [
        str(j["name"])
        for j in client.jobs(tenant=call.given.get("tenant"))
        if state in {None, j["state"], j["phase"]}
        and _suits(call.verb.name, str(j["phase"]))
        and (not patterns or any(fnmatch.fnmatchcase(str(j["name"]), p) for p in patterns))
    ]
    if not found and not plain:
        asked = " ".join([*patterns, *(f"--{k} {call.given[k]}" for k in sorted(filters))])
        raise Refused("NotFound", f"no job that one could {call.verb.name} fits {asked}")
    return list(dict.fromkeys([*plain, *found]))


def _suits(verb: str, phase: str) -> bool:
    wanted = SUITS[verb]
    return {ALIVE: phase not in FINAL, "ended": phase in FINAL}.get(wanted, phase == wanted)


SIMPLE: dict[str, Callable[[Client, Call], Any]] = {
    "jobs": jobs,
    "job": job,
    "logs": logs,
    "why": why,
    "quota": quota,
    "offer": offer,
    **dict.fromkeys(SUITS, steer),
}
"""Verbs that ask, answer and are done; `submit`, `watch` and `login` have their own ways on each surface."""
