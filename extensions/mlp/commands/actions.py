"""Actions of the verbs, for the magic and the command; each result displays itself and has `data`."""

from __future__ import annotations

import contextlib
import difflib
import fnmatch
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from mlp.client.downloads import fetch
from mlp.client.rest import Client
from mlp.commands import alerts as alert_acts
from mlp.commands import announcements, environments, notices, teams
from mlp.commands import apps as app_words
from mlp.commands.completion import references
from mlp.commands.models import models
from mlp.commands.outcomes import Outcomes, each, refusal
from mlp.errors import MLPError, Refused, Unauthorized, UsageError
from mlp.grammar.job_options import AGAIN, BY_NAME, OFFER, UPDATE, as_sent, seconds_meant
from mlp.grammar.parsing import ParsedLine
from mlp.grammar.query_options import KEEP_HOURS
from mlp.grammar.verbs import AUTO
from mlp.handles import compared_runs, sweeping
from mlp.handles.job import Job, JobList, listed
from mlp.language import say, says
from mlp.rendering import job_picture, reasons, tables, words
from mlp.rendering import usage as used
from mlp.rendering.format import clock_time, span
from mlp.rendering.history import FINAL
from mlp.rendering.words import sentences
from mlp.submitting import provenance
from mlp_language.catalogue import LANGUAGES

Json = dict[str, Any]
ALIVE = "alive"
SUITS = {"cancel": ALIVE, "suspend": ALIVE, "resume": "suspended", "resubmit": "ended", "delete": "ended"}
DONE: dict[str, Callable[[str], str]] = {
    "cancel": lambda job: say("{job} is being cancelled", job=job),
    "suspend": lambda job: say("{job} is being suspended", job=job),
    "resume": lambda job: say("{job} is in the queue again", job=job),
    "delete": lambda job: say("{job} was deleted", job=job),
}


class Picture:
    """A job as it is now."""

    def __init__(self, snapshot: Json) -> None:
        self.data = snapshot

    def __repr__(self) -> str:
        return job_picture.text(self.data)

    def _repr_html_(self) -> str:
        return job_picture.html(self.data)


@contextlib.contextmanager
def hinting(client: Client, call: ParsedLine) -> Iterator[None]:
    """Have the refusal of a job that is not there name the one of the user's that is nearest."""
    try:
        yield
    except Refused as error:
        if (
            error.reason != "NotFound"
            or call.verb.takes not in {"job", "jobs", "files"}
            or len(call.names) != 1
        ):
            raise
        near: list[str] = []
        with contextlib.suppress(MLPError):
            near = difflib.get_close_matches(call.names[0], references(client.jobs()), 1)
        if not near:
            raise
        hint = say("Did you mean {near}?", near=near[0])
        better = Refused(error.reason, sentences(say("{text}.", text=words.bare(str(error))), hint))
        better.request_id = error.request_id
        raise better from None


def jobs(client: Client, call: ParsedLine) -> JobList:
    """List."""
    found = listed(client, call.given.get("state"), call.given.get("tenant"))
    found.wide = bool(call.given.get("wide"))
    return found


def job(client: Client, call: ParsedLine) -> Picture:
    """Show one."""
    snapshot = Job(client, client.job(call.names[0])).history().snapshot()
    return Picture({**snapshot, "cost": client.cost(call.names[0])})


def logs(client: Client, call: ParsedLine) -> Any:
    """Show the log, or its last lines with `--tail`."""
    return Job(client, client.job(call.names[0])).logs(call.given.get("rank"), call.given.get("tail"))


def files(client: Client, call: ParsedLine) -> tables.Table:
    """List a directory of a job."""
    path = "".join(call.names[1:])
    return tables.files(client.files(call.names[0], path), path)


def get(client: Client, call: ParsedLine) -> tables.Sentences:
    """Fetch files of a job to the current directory, or to the given one."""
    job, path, *to = call.names
    return tables.fetched(fetch(client, client.job_path(job), path, Path(*to), job))


def why(client: Client, call: ParsedLine) -> tables.Sentences:
    """Show why a job waits."""
    return sweeping.why(client, call.names[0])


def runtimes(client: Client, call: ParsedLine) -> tables.Table:
    """Show the runtimes that jobs may have."""
    del call
    return tables.runtimes(client.runtimes())


def quota(client: Client, call: ParsedLine) -> tables.Table:
    """Show quotas."""
    del call
    return tables.quota(client.quota())


def usage(client: Client, call: ParsedLine) -> Any:
    """Show use and cost, or write them as a file."""
    given = call.given
    by, month, tenant = given.get("by", "tenant,work"), given.get("month"), given.get("tenant")
    if given.get("report"):
        if tenant is None:
            raise UsageError(say("a report is that of a team's month; name one with --tenant NAME"))
        return compared_runs.Csv(client.usage_file("report", month=month, tenant=tenant))
    if given.get("csv"):
        return compared_runs.Csv(client.usage_file("csv", by=by, month=month, tenant=tenant))
    found = client.usage(by, month=month, tenant=tenant)
    return used.usage(found, by, client.budgets(tenant))


def offer(client: Client, call: ParsedLine) -> tables.Sentences:
    """Show an offer."""
    wanted = {o.name for o in OFFER}
    shape = {k: v for k, v in call.given.items() if k in wanted and v != BY_NAME[k].default}
    return reasons.offer(client.offer(as_sent(shape)))


def language(client: Client, call: ParsedLine) -> tables.Sentences:
    """Choose the language, or show what was chosen."""
    if call.names:
        client.prefer(language="" if call.names[0] == AUTO else call.names[0])
    found = client.preferences()  # its answer is in the language that holds from now on
    chosen = LANGUAGES.get(found["language"])
    line = (
        say("Language: {name}, on all pages, in notebooks and commands.", name=chosen)
        if chosen
        else say("Language: that of the browser, JupyterLab or the terminal.")
    )
    return tables.Sentences([line], found)


def steer(client: Client, call: ParsedLine) -> Outcomes:
    """Cancel, suspend, resume, resubmit or delete several; one refusal does not stop the others."""
    verb = call.verb.name
    size = as_sent({o.name: call.given[o.name] for o in AGAIN if o.name in call.given})
    told = {**size, "provenance": provenance.told()} if verb == "resubmit" else size
    lines, data, failed = [], [], []
    for name in select(client, call):
        try:
            after = _steered(client, verb, name, told)
        except Unauthorized:
            raise
        except MLPError as error:
            failed.append(error)
            line, _ = refusal(name.removesuffix("@1"), error)
            lines.append(line)
            data.append(refusal(name, error)[1])
        else:
            shown = words.title(after) if after.get("name") and "@" not in name else _said(name, call)
            if verb == "resubmit":
                lines.append(_again(_said(name, call), after))
            else:
                ended = verb == "cancel" and after.get("phase") in FINAL
                lines.append(say("{job} was cancelled", job=shown) if ended else DONE[verb](shown))
            data.append(after or {"name": name})
    if len(failed) == 1 and len(lines) == 1:
        raise failed[0]
    return Outcomes([*lines, *filter(None, [seconds_meant(size)])], data, failed)


def _steered(client: Client, verb: str, name: str, size: Json) -> Json:
    """Apply a verb to a job; cancel or delete the sweep of that name if no such job exists."""
    try:
        return _delete(client, name) if verb == "delete" else client.act(verb, name, size=size)
    except Refused as error:
        if error.reason != "NotFound" or verb not in {"cancel", "delete"}:
            raise
        with contextlib.suppress(Refused):
            return client.act_sweep(verb, name) if verb == "cancel" else client.delete_sweep(name)
        raise


def update(client: Client, call: ParsedLine) -> tables.Sentences:
    """Change a job that has not ended."""
    asked = {o.name: call.given[o.name] for o in UPDATE if o.name in call.given}
    if not asked:
        flags = ", ".join(o.flags[0] for o in UPDATE)
        raise UsageError(say("no change is given; give one of {options}", options=flags))
    after = client.act("update", call.names[0], call.given.get("user"), size=asked)
    limit = after["time_limit"]
    line = say(
        "{job}: priority {priority}, time limit {limit}",
        job=words.title(after),
        priority=after["priority"],
        limit=say("none") if limit is None else span(limit),
    )
    first = say("It is first in the queue of its team.") if after["put_first"] else ""
    return tables.Sentences([sentences(line, first), *filter(None, [seconds_meant(asked)])], after)


def keep(client: Client, call: ParsedLine) -> tables.Sentences:
    """Keep a job whose unused GPUs would end it."""
    hours = call.given.get("hours", KEEP_HOURS)
    after = client.act("keep", call.names[0], call.given.get("user"), size={"hours": hours})
    line = says(
        "{job} is kept for 1 hour, whether it uses its GPUs or not.",
        "{job} is kept for {n} hours, whether it uses its GPUs or not.",
        hours,
        job=words.title(after),
    )
    return tables.Sentences([line], after)


def note(client: Client, call: ParsedLine) -> tables.Sentences:
    """Attach a note to a job, or remove it."""
    name, *text = call.names
    return compared_runs.written(client.note(name, " ".join(text)))


def _again(job: str, after: Json) -> str:
    follow = words.command(f"watch {words.reference(after)}")
    args = {"job": job, "run": after.get("run") or 1, "command": follow}
    return say("{job} was submitted again as run {run}. Follow it: {command}", **args)


def _said(name: str, call: ParsedLine) -> str:
    """Return the name with its run; the first run is named only if the user named it."""
    own, _, run = (name if name in call.names else name.removesuffix("@1")).partition("@")
    return say("{name} run {run}", name=own, run=run) if run else own


def _delete(client: Client, name: str) -> Json:
    """Delete a run by its number: a repeated request after a lost answer must not delete an earlier run."""
    if "@" not in name:
        found = client.job(name)
        name = f"{name}@{found['run']}" if found.get("run") else name
    return client.delete(name)


def select(client: Client, call: ParsedLine) -> list[str]:
    """Return the runs meant: as given, by pattern, or by filter (then those only that the verb suits).

    What is found is each run by itself, of those that are submitted again the latest of each name.
    """
    filters = call.given.keys() & {"state", "tenant"}
    patterns = [n for n in call.names if set(n) & set("*?[")]
    plain = [n for n in call.names if n not in patterns]
    if not patterns and not filters:
        return list(dict.fromkeys(plain))
    if filters and plain:
        raise UsageError(say("names ({names}) or a filter, not both", names=", ".join(plain)))
    state = call.given.get("state")
    listed = client.jobs(tenant=call.given.get("tenant"))
    if call.verb.name == "resubmit":
        latest: dict[str, Json] = {}
        for j in listed:
            if _run(j) >= _run(latest.get(j["name"], j)):
                latest[j["name"]] = j
        listed = list(latest.values())
    found = [
        f"{j['name']}@{_run(j)}"
        for j in listed
        if state in {None, j["state"], j["phase"]}
        and _suits(call.verb.name, str(j["phase"]))
        and (not patterns or any(_fits(j, p) for p in patterns))
    ]
    if not found and not plain:
        asked = " ".join([*patterns, *(f"--{k} {call.given[k]}" for k in sorted(filters))])
        raise Refused(
            "NotFound", say("no job that you can {verb} matches {asked}", verb=call.verb.name, asked=asked)
        )
    return list(dict.fromkeys([*plain, *found]))


def _run(job: Json) -> int:
    return int(job.get("run") or 1)


def _fits(job: Json, pattern: str) -> bool:
    """Tell whether a pattern is of this job's name, or where it has an @ of this very run."""
    name = str(job["name"])
    return fnmatch.fnmatchcase(f"{name}@{_run(job)}" if "@" in pattern else name, pattern)


def _suits(verb: str, phase: str) -> bool:
    wanted = SUITS[verb]
    return {ALIVE: phase not in FINAL, "ended": phase in FINAL}.get(wanted, phase == wanted)


def env(client: Client, call: ParsedLine) -> Any:
    """List, create, show or delete environments."""
    act, *names = call.names or ["list"]
    tenant = call.given.get("tenant") or environments.tenant_of(client)
    if act == "list":
        return environments.table(client.environments(tenant), tenant)
    if act == "create":
        if "image" in call.given:
            return environments.created(
                client.create_environment(tenant, names[0], image=call.given["image"])
            )
        requirements = environments.requirements_in(Path(call.given["file"]).expanduser())
        return environments.created(client.create_environment(tenant, names[0], requirements))
    if act == "show":
        return environments.shown(client.environment(tenant, names[0]))
    return each(
        names,
        lambda name: (
            [say("{name} is being deleted", name=name)],
            client.delete_environment(tenant, name),
        ),
    )


def runs(client: Client, call: ParsedLine) -> Any:
    """Search runs, show one, or write notes and tags."""
    act, *names = call.names or [""]
    if act == "show" and names:
        user, run = compared_runs.whose(names[0])
        return compared_runs.RunPicture(client.run(run, user))
    if act == "note" and names:
        return compared_runs.written(client.write_run(names[0], {"note": " ".join(names[1:])}))
    if act in {"tag", "untag"} and names:
        found = compared_runs.ActedOn(client.act_on_runs(act, names[:1], names[1:]))
        if found.failed:
            raise found.failed
        return found
    given = call.given
    search, sort, tenant = " ".join(call.names), given.get("sort", "-submitted"), given.get("tenant")
    if given.get("csv"):
        return compared_runs.Csv(client.runs_csv(search, sort, tenant=tenant))
    table = compared_runs.RunsTable(
        client.runs(search, sort, tenant=tenant), asked=search, of_team=tenant is not None
    )
    table.wide = bool(given.get("wide"))
    return table


def compare(client: Client, call: ParsedLine) -> Any:
    """Lay runs side by side."""
    return compared_runs.compare(
        client, call.names, by=call.given.get("by", "step"), metric=call.given.get("metric")
    )


def data(client: Client, call: ParsedLine) -> Any:
    """List, push, pull or remove datasets and their files."""
    from mlp import data as sets  # noqa: PLC0415 - who steers jobs needs none of it

    act, *names = call.names or ["ls"]
    if act == "ls":
        return sets.ls(*names, client=client)
    if act == "rm":
        return each(names, lambda name: _removed_data(sets.rm(name, client=client)))
    if act == "add":
        return sets.add(*names, **{k: v for k, v in call.given.items() if k != "json"}, client=client)
    if act == "sync":
        return sets.sync(*names, client=client)
    try:
        if act == "push":
            return sets.push(*names, tenant=call.given.get("tenant"), client=client)
        return sets.pull(*names, client=client)
    except KeyboardInterrupt:
        text = say("Stopped. Complete files stay; run the same line again to continue with the rest.")
        (sys.stderr or sys.stdout).write(f"{text}\n")
        raise


def _removed_data(gone: tables.Sentences) -> tuple[Sequence[str], Json]:
    return gone.lines, gone.data


def secret(client: Client, call: ParsedLine) -> Any:
    """List or remove secrets; the verb that sets one reads it without an echo."""
    act, *names = call.names or ["ls"]
    tenant = call.given.get("tenant")
    if act == "ls":
        return tables.secrets(client.secrets(tenant))
    for one in names:
        client.remove_secret(one, tenant)
    return tables.Sentences([say("The secret {name} is removed.", name=one) for one in names], names)


def notify(client: Client, call: ParsedLine) -> Any:
    """Show or choose the channels of a user's notices about their jobs."""
    return notices.act(client, list(call.names), call.given)


def alerts(client: Client, call: ParsedLine) -> Any:
    """Show alerts, silence some, or end silences."""
    with teams.naming_own(client, call.given.get("tenant")):
        return alert_acts.act(client, list(call.names), call.given)


def announce(client: Client, call: ParsedLine) -> Any:
    """Show what is announced, announce something, or take it back."""
    with teams.naming_own(client, call.given.get("tenant")):
        return announcements.act(client, list(call.names), call.given)


def apps(client: Client, call: ParsedLine) -> Any:
    """List, show, deploy, scale or remove apps, or show what one wrote."""
    return app_words.act(client, call.names, call.given)


def sweeps(client: Client, call: ParsedLine) -> Any:
    """List, show, cancel, extend or remove sweeps."""
    return sweeping.act(client, call.names, call.given)


def token(client: Client, call: ParsedLine) -> Any:
    """List, make, rotate or end tokens."""
    act, *names = call.names or ["list"]
    given = call.given
    if tenant := given.get("tenant"):
        return _service_token(client, act, names[0] if names else given.get("service"), tenant, given)
    if act == "list":
        return tables.tokens(client.tokens())
    if act == "create":
        wanted = {"note": names[0], "scopes": given.get("scope"), "expires_in": given.get("expires")}
        return _shown_once(client.make_token({k: v for k, v in wanted.items() if v is not None}))
    for one in names:
        client.end_token(one)
    return tables.Sentences([say("The token {id} is ended.", id=one) for one in names], names)


def _service_token(client: Client, act: str, service: str | None, tenant: str, given: Json) -> Any:
    """Do so with the tokens of a tenant's programs."""
    if act == "list" or service is None:
        return tables.service_tokens(client.services(tenant))
    lasts = {"expires_in": given["expires"]} if "expires" in given else {}
    if act == "create":
        return _shown_once(client.make_service(tenant, {"name": service, **lasts}))
    if act == "rotate":
        grace = {"grace": given["grace"]} if "grace" in given else {}
        return _shown_once(client.rotate_service(tenant, service, {**lasts, **grace}))
    client.end_service(tenant, service)
    return tables.Sentences(
        [say("{name} of {tenant} is ended, with its tokens.", name=service, tenant=tenant)], service
    )


def _shown_once(made: Json) -> tables.Sentences:
    lines = [
        str(made["token"]),
        say("It is valid until {when} and is shown only once.", when=clock_time(made.get("expires"))),
    ]
    if old := clock_time(made.get("old_until")):
        lines.append(say("Earlier tokens are valid until {when}.", when=old))
    return tables.Sentences(lines, made)


def team(client: Client, call: ParsedLine) -> Any:
    """Ask teams, or answer who asks."""
    return teams.team(client, call.names, call.given)


SIMPLE: dict[str, Callable[[Client, ParsedLine], Any]] = {
    "jobs": jobs,
    "job": job,
    "logs": logs,
    "files": files,
    "get": get,
    "why": why,
    "quota": quota,
    "usage": usage,
    "team": team,
    "runtimes": runtimes,
    "offer": offer,
    "language": language,
    "models": models,
    "env": env,
    "runs": runs,
    "compare": compare,
    "data": data,
    "apps": apps,
    "sweeps": sweeps,
    "token": token,
    "secret": secret,
    "notify": notify,
    "announce": announce,
    "alerts": alerts,
    "update": update,
    "keep": keep,
    "note": note,
    **dict.fromkeys(SUITS, steer),
}
"""Functions of verbs that need one request and one answer. Each surface implements the other verbs itself, such as `submit` and `watch`."""
