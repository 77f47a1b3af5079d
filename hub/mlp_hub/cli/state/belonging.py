"""Holds what the settings of this shell name against what the state directory belongs to, before anything is started, ended or made."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shlex
import socket
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from mlp_hub import bindings, durable
from mlp_hub.bindings import Bindings, Bound
from mlp_hub.cli.errors import CommandFailed
from mlp_hub.cli.state import database, identity, uids
from mlp_hub.cli.state import plan as plans
from mlp_hub.domain.tenants.tenant import NUMBERS_GIVEN
from mlp_hub.settings import Settings
from mlp_hub.settings.executor_kinds import EXECUTOR_KINDS, Ranks
from mlp_language.render import say

NEW_DATABASE = "--new-database"
NEW_EXECUTOR = "--new-executor"
_VARIABLES = {"platform": "MLP_DATABASE_URL", "hub": "MLP_HUB_DATABASE_URL"}


def check(settings: Settings, take: Collection[str] = ()) -> None:
    """Raise `CommandFailed` where databases or executor are not those of this state directory.

    `take` names those that the directory accepts as its new ones.
    """
    known = known_of(settings)
    if NEW_DATABASE not in take:
        for name in _VARIABLES:
            _check_database(settings, name, known)
    _check_executor(settings, known, new=NEW_EXECUTOR in take)


def check_database(settings: Settings, name: str = "platform") -> None:
    """Raise `CommandFailed` where a database is not that of this state directory."""
    _check_database(settings, name, known_of(settings))


def is_other_executor(settings: Settings) -> str:
    """Return the executor that this directory's jobs have, where the settings name another one; else empty."""
    executor = known_of(settings).executor
    return executor if executor not in ("", settings.executor) else ""


def way_to(known: Bindings) -> str:
    """Return the variables that lead to a known executor, as a shell takes them."""
    words = [f"MLP_EXECUTOR={known.executor}"]
    kind = EXECUTOR_KINDS.get(known.executor)
    if known.kubeconfig and kind is not None and kind.config is not None:
        words.append(f"{kind.config.variable}={shlex.quote(known.kubeconfig)}")
    return " ".join(words)


def known_of(settings: Settings) -> Bindings:
    """Return what the directory belongs to; of one that an earlier version made, as the plan of its last `up` has it."""
    found = bindings.read(settings)
    if found.executor:
        return found
    env = plans.started_with(settings)
    if not env or identity.own(settings) is None:
        return found
    config = env.get("MLP_KUBERNETES_CONFIG", "")
    return replace(found, executor=env.get("MLP_EXECUTOR", "local"), kubeconfig=config)


def _check_database(settings: Settings, name: str, known: Bindings) -> None:
    tables = database.platform(settings) if name == "platform" else database.hub(settings)
    url = _given(settings, name)
    bound = known.databases.get(name)
    if tables.revision is None:
        if bound is not None or was_used(settings):
            raise _empty(settings, name, tables.what, url, known)
        return
    row = row_of(settings, name)
    if bound is not None:
        same = row is None and bound.url == url  # an older copy of it was put back
        if not same and (row is None or row.get("id") != bound.id):
            raise _stranger(settings, name, tables.what, url, known)
    elif url and row is not None and row.get("home") != identity.own(settings):
        # a file in the directory came with it, as in a copy
        raise _anothers(settings, name, tables.what, url, row)


def was_used(settings: Settings) -> bool:
    """Whether somebody worked here: then there was a database, whichever that is."""
    for place in (settings.homes_dir, settings.jobs_dir, settings.jobs_run_dir):
        with contextlib.suppress(OSError), os.scandir(place) as entries:
            if any(entry.is_dir() for entry in entries):
                return True
    return False


def _given(settings: Settings, name: str) -> str:
    """Return a database's URL as it was set, without its password; empty for the file in the state directory, wherever that lies."""
    return bindings.shown(settings.database_url if name == "platform" else settings.hub_database_url)


def _words(settings: Settings, name: str, given: str) -> str:
    own = database.urls(replace(settings, database_url="", hub_database_url=""))[name]
    return given or own.removeprefix("sqlite:///")


def _last(settings: Settings, name: str, bound: Bound | None) -> str:
    if bound is not None:
        return bound.url
    return bindings.shown(plans.started_with(settings).get(_VARIABLES[name], ""))


def _empty(settings: Settings, name: str, what: str, url: str, known: Bindings) -> CommandFailed:
    bound = known.databases.get(name)
    last = _last(settings, name, bound)
    if last == url:
        text = say(
            "{what}, {url}, is empty or gone, and {home} has files of people and jobs. Nothing was started, ended or changed.",
            what=what,
            url=_words(settings, name, url),
            home=str(settings.home),
        )
        remedy = say("Restore the database from your last backup.")
    else:
        text = say(
            "{what} would be {url}, which is empty, but {home} was last used with {last}. Nothing was started, ended or changed.",
            what=what,
            url=_words(settings, name, url),
            home=str(settings.home),
            last=_words(settings, name, last),
        )
        remedy = _set_again(settings, known)
    return CommandFailed(text, f"{remedy} {_new_id()}")


def _stranger(settings: Settings, name: str, what: str, url: str, known: Bindings) -> CommandFailed:
    bound = known.databases[name]
    return CommandFailed(
        say(
            "{what} would be {url}, but {home} was last used with {last}. Nothing was started, ended or changed.",
            what=what,
            url=_words(settings, name, url),
            home=str(settings.home),
            last=_words(settings, name, bound.url),
        ),
        f"{_set_again(settings, known)} {_new_id()}",
    )


def _anothers(settings: Settings, name: str, what: str, url: str, row: dict[str, Any]) -> CommandFailed:
    return CommandFailed(
        say(
            "{what}, {url}, belongs to the state directory {path} on {host}, not to {home}. Nothing was started, ended or "
            "changed.",
            what=what,
            url=_words(settings, name, url),
            path=str(row.get("path")),
            host=str(row.get("host")),
            home=str(settings.home),
        ),
        say("Name that directory: MLP_HOME={path}.", path=shlex.quote(str(row.get("path"))))
        + " "
        + say(
            "If that directory is lost, `mlp-hub up {option}` gives the database to this one: jobs that ran there start again here.",
            option=NEW_DATABASE,
        ),
    )


def _set_again(settings: Settings, known: Bindings) -> str:
    """Say which variables lead back to the databases of before."""
    last = {name: _last(settings, name, known.databases.get(name)) for name in _VARIABLES}
    wrong = [name for name in _VARIABLES if last[name] != _given(settings, name)]
    unset = ", ".join(_VARIABLES[name] for name in wrong if not last[name])
    again = " ".join(f"{_VARIABLES[name]}={shlex.quote(last[name])}" for name in wrong if last[name])
    said = []
    if again:
        said.append(say("Set the earlier value, with its password: {variables}", variables=again))
    if unset:
        said.append(say("Unset {variables}.", variables=unset))
    return " ".join(said)


def _new_id() -> str:
    return say(
        "To use this database anyway: `mlp-hub up {option}`. Running work then ends, and people sign up again.",
        option=NEW_DATABASE,
    )


def _check_executor(settings: Settings, known: Bindings, *, new: bool) -> None:
    if known.executor in ("", settings.executor):
        return
    as_it_was = way_to(known)
    if not new:
        raise CommandFailed(
            say(
                "The jobs of {home} run with the executor {known}, but this shell has {executor}: they would run twice. Nothing was started, ended or changed.",
                home=str(settings.home),
                known=known.executor,
                executor=settings.executor,
            ),
            say(
                "Start it as before: {as_it_was} mlp-hub up. To change the executor, end the running work with {as_it_was} mlp-hub down --jobs stop, then: mlp-hub up {option}",
                as_it_was=as_it_was,
                option=NEW_EXECUTOR,
            ),
        )
    count = _running(settings, known)
    if count:
        raise CommandFailed(
            say(
                "{count} jobs of {home} still run with the executor {known}; they would run twice.",
                count=count,
                home=str(settings.home),
                known=known.executor,
            ),
            say(
                "End them first: {as_it_was} mlp-hub up, then {as_it_was} mlp-hub down --jobs stop",
                as_it_was=as_it_was,
            ),
        )


def _running(settings: Settings, known: Bindings) -> int:
    kind = EXECUTOR_KINDS.get(known.executor)
    return 0 if kind is None else _RUNNING[kind.ranks](settings)


def _living_sandboxes(settings: Settings) -> int:
    from mlp_hub import sandbox  # noqa: PLC0415 - only for this question

    run_dirs = [*settings.jobs_run_dir.glob("*/"), *settings.servers_run_dir.glob("*/*/")]
    return sum(sandbox.inspect(str(run_dir)).phase in ("starting", "running") for run_dir in run_dirs)


def _holding_jobs(settings: Settings) -> int:
    from mlp_hub.domain.jobs.job import HOLDING  # noqa: PLC0415 - only for this question

    phases = ", ".join(f"'{phase.value}'" for phase in sorted(HOLDING))
    found = database.row(settings, "platform", "job", "count(*)", f"phase IN ({phases})")
    return int(found[0]) if found else 0


_RUNNING: Mapping[Ranks, Callable[[Settings], int]] = {
    Ranks.HERE: _living_sandboxes,
    Ranks.ELSEWHERE: _holding_jobs,
    Ranks.NOWHERE: lambda _: 0,
}
"""Number of jobs that may run while no service does."""


def row_of(settings: Settings, name: str) -> dict[str, Any] | None:
    """Return a database's own record; None where it has none."""
    table = "setting" if name == "platform" else database.BINDING
    found = database.row(settings, name, table, "value", f"key = '{bindings.KEY}'")
    try:
        read = None if found is None else json.loads(found[0])
    except ValueError:
        return None
    return read if isinstance(read, dict) else None


def bind(settings: Settings, name: str) -> None:
    """Have the state directory and a database know each other, from now on; nothing where they do."""
    own = identity.own(settings)
    row = row_of(settings, name)
    if row is None or row.get("home") != own or not row.get("id"):
        row = {
            "id": secrets.token_hex(8),
            "home": own,
            "path": str(settings.home.resolve()),
            "host": socket.gethostname(),
        }
        database.put(settings, name, bindings.KEY, row)
    bindings.bind(settings, name, Bound(str(row["id"]), _given(settings, name)))


def adopt(settings: Settings) -> None:
    """Have a directory that was just made of a backup know the databases that were made with it, which name another directory."""
    for name in _VARIABLES:
        row = row_of(settings, name)
        if row is not None and row.get("id"):
            bindings.bind(settings, name, Bound(str(row["id"]), _given(settings, name)))


def bind_executor(settings: Settings, cluster: tuple[str, str] = ("", "")) -> None:
    """Write down where this directory's jobs run; `cluster` is its id and its address."""
    now = replace(
        bindings.read(settings),
        executor=settings.executor,
        cluster=cluster[0],
        cluster_host=cluster[1],
        kubeconfig=str(settings.config_file or ""),
    )
    bindings.write(settings, now)


def check_cluster(settings: Settings, cluster: tuple[str, str]) -> None:
    """Raise `CommandFailed` where this is another cluster than the one that this directory's pods are in."""
    known = bindings.read(settings)
    if not known.cluster or not cluster[0] or known.cluster == cluster[0]:
        return
    raise CommandFailed(
        say(
            "The pods of {home} are in the cluster at {known}, but this shell names the one at {host}: jobs would run twice. Nothing was started, ended or changed.",
            home=str(settings.home),
            known=known.cluster_host,
            host=cluster[1],
        ),
        say(
            "Name that cluster: {as_it_was} mlp-hub up. To change it, end the work there with {as_it_was} mlp-hub down --jobs stop, then: mlp-hub up {option}",
            as_it_was=way_to(known),
            option=NEW_EXECUTOR,
        ),
    )


def keep_numbers(settings: Settings) -> None:
    """See to it that no number of a user is given twice, whatever became of the database."""
    found = database.row(settings, "platform", "user", "max(number)")
    given = int(found[0] or 0) if found else 0
    known = bindings.read(settings)
    owned = uids.highest_number(settings) if os.getuid() == 0 else 0
    highest = max(known.numbers, owned, given)
    if highest > given:
        noted = database.row(settings, "platform", "setting", "value", f"key = '{NUMBERS_GIVEN}'")
        if noted is None or int(noted[0]) < highest:
            database.put(settings, "platform", NUMBERS_GIVEN, highest)
    bindings.write(settings, replace(known, numbers=highest, first_uid=settings.uid_base))


def leave_jobs_of_before(settings: Settings) -> str | None:
    """Move directories of jobs out of the way that an empty database knows nothing of; return what to tell."""
    if database.platform(settings).revision is not None or not any(settings.jobs_dir.iterdir()):
        return None
    place = settings.data_dir / f"jobs-before-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    settings.jobs_dir.rename(place)
    settings.jobs_dir.mkdir(mode=0o711)
    durable.sync_directory(settings.data_dir)
    return say(
        "directories of earlier jobs are in {place}; remove them when nobody needs them", place=str(place)
    )
