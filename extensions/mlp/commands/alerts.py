"""Action of the verb `alerts`: administrators of the hub or of a team see alerts, and silence them for a while."""

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


def act(client: Client, names: list[str], given: Json) -> Any:
    """List alerts, silence some, or end silences."""
    tenant = given.get("tenant")
    base = f"/tenants/{quote(tenant)}" if tenant else ""
    if not names or names[0] == "ls":
        return _listed(client.get(f"{base}/alerts"))
    if names[0] == "end":
        for one in names[1:]:
            client.request("DELETE", f"{base}/silences/{quote(one, safe='')}")
        over = [
            say("Silence {id} is over. People are notified of its alerts that still fire.", id=one)
            for one in names[1:]
        ]
        return tables.Sentences(over, names[1:])
    until = datetime.fromtimestamp(time.time() + given["lasts"], UTC).isoformat()
    rule = names[1] if len(names) > 1 else ""
    made = object_of(
        client.request("POST", f"{base}/silences", {"rule": rule, "reason": given["reason"], "until": until})
    )
    whose = f" --tenant {tenant}" if tenant else ""
    line = say(
        "Silenced until {when}. End it: {command}",
        when=clock_time(made["until"]),
        command=f"mlp alerts end {made['id']}{whose}",
    )
    return tables.Sentences([line], made)


def _state(one: Json) -> str:
    if one["silence"] is not None:
        return say("silenced ({id})", id=one["silence"])
    words = {"pending": say("pending"), "firing": say("firing"), "resolved": say("over")}
    return words.get(str(one["state"]), str(one["state"]))


def _listed(found: Json) -> tables.Table:
    rows = [
        (
            _state(one),
            str(one["severity"]),
            str(one["rule"]),
            str(one["description"]),
            clock_time(one.get("state_since") or one["since"]),
        )
        for one in found["alerts"]
    ]
    columns = (say("state"), say("severity"), say("alert"), say("what it says"), say("since"))
    notes = [
        say(
            "Silence {id}: {what}, until {when}, by {user}: {reason}",
            id=one["id"],
            what=" ".join(filter(None, (one["rule"], one["tenant"]))),
            when=clock_time(one["until"]),
            user=one["made_by"],
            reason=one["reason"],
        )
        for one in found["silences"]
    ]
    delivery = found.get("delivery")
    if delivery and delivery["state"] != "ok":
        notes.insert(0, say("{text}.", text=str(delivery["text"])))
    return tables.Table(columns, rows, found, empty=say("No alert fires"), notes=notes)
