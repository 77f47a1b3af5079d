"""Apps, for the magic and the command: the requests, and the displays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlp.client.rest import Client
from mlp.commands.outcomes import each
from mlp.errors import UsageError
from mlp.grammar.app_options import replicas, wanted
from mlp.handles.job import Log
from mlp.language import say, says
from mlp.rendering import words
from mlp.rendering.format import between, clock_time, span
from mlp.rendering.tables import Sentences, Table

Json = dict[str, Any]


def act(client: Client, names: Sequence[str], given: Mapping[str, Any]) -> Any:
    """Do one of its acts, and return what is shown."""
    what, *rest = names or ["ls"]
    acts: dict[str, Callable[[], Any]] = {
        "ls": lambda: _all(client, given.get("tenant")),
        "show": lambda: _show(client, *rest),
        "deploy": lambda: deployed(client.deploy(wanted(rest[0] if rest else "", given))),
        "logs": lambda: _log(client, *rest, tail=given.get("tail"), previous=bool(given.get("previous"))),
        "scale": lambda: _scale(client, *rest, given=given),
        "access": lambda: _show(client, *rest),
        "keys": lambda: _keys(client, *rest),
        "rm": lambda: each(
            rest, lambda one: ([say("{name} is being deleted", name=one)], client.remove_app(one))
        ),
    }
    return acts[what]()


def _scale(client: Client, name: str, number: str, *, given: Mapping[str, Any]) -> Sentences:
    try:
        count = replicas(number)
    except ValueError as error:
        raise UsageError(say("{what}: {why}", what=number, why=str(error))) from None
    return shown(client.scale_app(name, count, given.get("idle"), given.get("concurrency")))


def _log(client: Client, name: str, number: str = "0", *, tail: int | None, previous: bool) -> Log:
    """Return the output of a present replica, or the end of the output of the last failed one."""
    if previous:
        kept = _kept(client, name)
        lines = [{"text": text} for text in (kept if tail is None else kept[-tail:])]
        return Log(
            lines,
            with_rank=False,
            empty=say("no lines of a failed replica of {name} are stored", name=name),
        )
    if not number.isdecimal():
        raise UsageError(say("{what}: is not a whole number", what=number))
    found = client.app_log(name, int(number), tail)
    empty = say("replica {n} of {name} has written nothing", n=int(number), name=name)
    if not found and _kept(client, name):
        command = words.command(f"apps logs {name} --previous")
        empty += "\n" + say("Output of the failed replica: {command}", command=command)
    return Log(found, with_rank=False, empty=empty)


def _kept(client: Client, name: str) -> list[str]:
    """Return the last lines of the replica that failed last: of those that ended nothing else is there any more."""
    return str(client.app(name).get("tail") or "").splitlines()


def _all(client: Client, tenant: str | None) -> Table:
    """List the user's apps, then those of others that they may open."""
    others = [one for one in client.apps_of_others() if tenant is None or one["tenant"] == tenant]
    return table([*client.apps(tenant=tenant), *others], client.user)


def _show(client: Client, name: str, access: str = "") -> Sentences:
    user, mark, app = name.partition("/")
    if mark and user != client.user:
        return _of_another(client.app_of_another(user, app))
    name = app if mark else name
    if access:
        client.set_app_access(name, access)
    return shown(client.app(name))


def _keys(client: Client, name: str, act: str = "", key: str = "") -> Any:
    if act == "create":
        made = client.make_app_key(name, key)
        lines = [
            say("{key} opens {name}, and nothing else. It is shown only once:", key=key, name=name),
            str(made["key"]),
            say("Send it as a header: {header}", header="Authorization: Bearer KEY"),
        ]
        return Sentences(lines, made)
    if act == "revoke":
        client.revoke_app_key(name, key)
        return Sentences([say("{key} is revoked", key=key)], {"name": key})
    found = client.app_keys(name)
    rows = [
        [
            str(one["name"]),
            str(one["made_by"]),
            clock_time(one["made_at"]) or "",
            clock_time(one.get("used_at")) or say("never"),
        ]
        for one in found
    ]
    command = words.command(f"apps keys {name} create KEY")
    return Table(
        (say("key"), say("made by"), say("made"), say("last used")),
        rows,
        list(found),
        empty=say("{name} has no keys. Make one: {command}", name=name, command=command),
    )


def state(app: Mapping[str, Any]) -> str:
    """Return the state of an app, in words."""
    told: dict[str, Callable[[], str]] = {
        "starting": lambda: say("starting"),
        "running": lambda: say("running"),
        "waiting": lambda: say("waiting"),
        "error": lambda: say("in error"),
        "deleting": lambda: say("being deleted"),
    }
    found = str(app.get("phase") or "")
    return told[found]() if found in told else found


def table(found: Sequence[Json], me: str) -> Table:
    """List apps; those of others by their users' names too."""
    rows = [
        [
            str(a["name"]) if a["user"] == me else f"{a['user']}/{a['name']}",
            state(a),
            _replicas(a),
            "" if a.get("under_way") is None else f"{a['under_way']:g}",
            str(a.get("model_name") or a.get("command") or ""),
            str(a.get("tenant", "")),
            _address(a),
            str(a.get("message") or ""),
        ]
        for a in found
    ]
    columns = (
        say("name"),
        say("state"),
        say("ready"),
        say("in progress"),
        say("what"),
        say("team"),
        say("address"),
        say("note"),
    )
    command = words.command("apps deploy MODEL")
    return Table(
        columns, rows, list(found), empty=say("You have no apps. Deploy one: {command}", command=command)
    )


def _replicas(app: Mapping[str, Any]) -> str:
    """Say how many answer of how many, and between which numbers that may change."""
    found = f"{app.get('ready')}/{app.get('wanted')}"
    return f"{found} ({app['replicas']})" if ":" in str(app.get("replicas")) else found


def _address(app: Mapping[str, Any]) -> str:
    """Return where a browser finds an app; a hub of before tells only the path."""
    return str(app.get("address") or app.get("url") or "")


def deployed(made: Json) -> Sentences:
    """Write that an app was taken in."""
    lines = [
        say("{name} is being started. It will answer at {url}", name=made["name"], url=_address(made)),
        say("See: {command}", command=words.command(f"apps show {made['name']}")),
    ]
    return Sentences(lines, made)


def _of_another(found: Json) -> Sentences:
    """Write how an app of somebody else's is, which one may open."""
    told = str(found.get("message") or "")
    what = say("{what}: {why}", what=f"{found['user']}/{found['name']}", why=state(found))
    lines = [
        say("{what}, {why}", what=what, why=told) if told else what,
        say("Address: {url}", url=_address(found)),
        _answering(found),
    ]
    if found.get("model_name"):
        lines.append(say("Model: {name}", name=found["model_name"]))
    lines.append(say("It is {user}'s: ask {user} for a key.", user=found["user"]))
    return Sentences(lines, found)


def _answering(found: Json) -> str:
    return says(
        "{ready} of 1 replica answers",
        "{ready} of {n} replicas answer",
        int(found.get("wanted") or 0),
        ready=found.get("ready"),
    )


def shown(found: Json) -> Sentences:
    """Write how an app is, and what its replicas do."""
    told = str(found.get("message") or "")
    what = say("{what}: {why}", what=str(found["name"]), why=state(found))
    lines = [
        say("{what}, {why}", what=what, why=told) if told else what,
        say("Address: {url}", url=_address(found)),
        _answering(found),
    ]
    if ":" in str(found.get("replicas")):
        lines.append(
            say(
                "{range} replicas, one per {n} requests in progress; fewer after {time} without need",
                range=found["replicas"],
                n=found.get("concurrency"),
                time=span(float(found.get("idle") or 0)),
            )
        )
    if found.get("under_way") is not None:
        lines.append(say("Requests in progress: {n}", n=f"{found['under_way']:g}"))
    if found.get("model_name"):
        lines.append(say("Model: {name}", name=found["model_name"]))
    if found.get("env_name"):
        lines.append(say("Environment: {name}", name=found["env_name"]))
    if found.get("command"):
        lines.append(say("Command: {line}", line=found["command"]))
    for one in found.get("running") or ():
        at = say("replica {n}: {phase}", n=one["replica"], phase=words.phase_word(one.get("phase")))
        why = str(one.get("message") or "") if one.get("phase") == "queued" else ""
        when = between((one.get("forecast") or {}).get("start")) or clock_time(one.get("expected_start"))
        if why and when:
            why = say("{why}, expected {time}", why=why, time=when)
        lines.append(say("{what}: {why}", what=at, why=why) if why else at)
    if found.get("tail"):
        lines += [say("Last lines of the replica that failed:"), str(found["tail"]).rstrip("\n")]
    return Sentences(lines, found)
