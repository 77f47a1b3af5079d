"""Action of the verb `announce`: administrators of a team or of the hub send people a message."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from mlp.client.connection import Json, object_of
from mlp.client.rest import Client
from mlp.language import say
from mlp.rendering import tables
from mlp.rendering.format import clock_time

LASTS_S = 86_400


def act(client: Client, names: list[str], given: Json) -> Any:
    """List what is announced, announce something, or take announcements back."""
    path = _path(given.get("tenant"))
    if not names or names[0] == "ls":
        return _listed(client.get(path if given.get("tenant") else "/announcements"))
    if names[0] == "rm":
        for one in names[1:]:
            client.request("DELETE", f"{path}/{quote(one, safe='')}")
        return tables.Sentences([say("Taken back: {id}", id=one) for one in names[1:]], names[1:])
    until = datetime.fromtimestamp(time.time() + given.get("lasts", LASTS_S), UTC).isoformat()
    asked = {"text": " ".join(names), "until": until, "level": given.get("level", "info")}
    made = object_of(client.request("POST", path, asked))
    line = say(
        "Announced until {when}. Take it back: {command}", when=clock_time(made["until"]), command=_back(made)
    )
    return tables.Sentences([line], made)


def _path(tenant: str | None) -> str:
    return f"/tenants/{quote(tenant)}/announcements" if tenant else "/announcements"


def _back(made: Json) -> str:
    whose = f" --tenant {made['tenant']}" if made["tenant"] else ""
    return f"mlp announce rm {made['id']}{whose}"


def _listed(found: Any) -> tables.Table:
    rows = [
        (
            str(one["id"]),
            str(one["level"]),
            str(one["tenant"]) or say("everybody"),
            clock_time(one["until"]),
            str(one["text"]),
        )
        for one in found
    ]
    columns = (say("id"), say("level"), say("for"), say("until"), say("text"))
    return tables.Table(columns, rows, found, empty=say("Nothing is announced"))
