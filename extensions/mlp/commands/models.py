"""Action of the verb `models`: versions of models are listed, registered, staged, fetched and removed."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mlp.client.downloads import fetch_model
from mlp.client.rest import Client
from mlp.commands.outcomes import Outcomes, each
from mlp.errors import MLPError
from mlp.grammar.parsing import ParsedLine
from mlp.language import say, says
from mlp.rendering import tables, words

Json = dict[str, Any]
COPY_S, COPY_LOOK_S = 60.0, 0.3
"""Tuning: seconds for which a registered version is waited for, and between two looks: a file of some GB is there by then."""


def models(client: Client, call: ParsedLine) -> Any:
    """List, show, register, stage, fetch or remove models."""
    act, *names = call.names or ["ls"]
    given = call.given
    if act == "ls":
        return tables.models(client.models(name=names[0] if names else None, tenant=given.get("tenant")))
    if act == "register":
        wanted = {"any_files": given.get("any_files", False)}
        if "tenant" in given:
            wanted["tenant"] = given["tenant"]
        return tables.registered(_once_copied(client, client.register(names[0], names[1], wanted)))
    if act == "stage":
        return tables.staged(client.stage(names[0], names[1]))
    if act == "get":
        found, there = fetch_model(client, names[0], Path(*names[1:]))
        return tables.fetched(found, there)
    if act == "show":
        return tables.model(client.model(names[0]))
    return _remove_models(client, names, all_=bool(given.get("all")))


def _once_copied(client: Client, made: Json) -> Json:
    """Return a version once its files are copied, or after `COPY_S`: later steps, as an app of it, need them."""
    name, until = words.version(made), client.clock() + COPY_S
    while made.get("state") == "creating" and client.clock() < until:
        client.sleep(COPY_LOOK_S)
        made = client.model(name)
    if made.get("state") == "error":
        raise MLPError(say("{name} is not registered: {why}", name=name, why=str(made.get("message") or "")))
    return made


def _remove_models(client: Client, names: Sequence[str], *, all_: bool) -> Outcomes:
    """Delete versions: of a name alone the latest, and say that the others stay, or all of them."""
    if all_:
        there = {name: [m for m in client.models(name=name) if m["state"] != "deleting"] for name in names}
        # of a name that has none the service says so
        names = [one for name in names for one in [words.version(m) for m in there[name]] or [name]]

    def remove(name: str) -> tuple[list[str], Json]:
        gone = client.remove_model(name)
        lines = [say("{name} is being deleted", name=words.version(gone) or name)]
        stay = [] if all_ or "@" in name else _others(client, name, gone)
        if stay:
            lines.append(
                says(
                    "1 version of {name} stays: {stay}. To delete all: {command}",
                    "{n} versions of {name} stay: {stay}. To delete all: {command}",
                    len(stay),
                    name=name,
                    stay=tuple(stay),
                    command=words.command(f"models rm {name} --all"),
                )
            )
        return lines, gone

    return each(names, remove)


def _others(client: Client, name: str, gone: Json) -> list[str]:
    """Return the versions of a model that stay; an error here does not stop the answer to the action."""
    with contextlib.suppress(MLPError):
        found = client.models(name=name)
        return [
            words.version(m)
            for m in found
            if m["state"] != "deleting" and m["version"] != gone.get("version")
        ]
    return []
