"""The verb `notify`: channels of a user's notices about their jobs.

All of it is read, changed and written back, as the hub keeps it.
"""

from __future__ import annotations

import getpass
import sys
from typing import Any

from mlp.client.rest import Client
from mlp.commands.outcomes import Outcomes
from mlp.errors import Refused, UsageError
from mlp.grammar.notice_options import USUAL
from mlp.language import say
from mlp.rendering import tables


def act(client: Client, names: list[str], given: dict[str, Any]) -> Any:
    """Do one of its acts, and return what is shown."""
    done, *rest = names or ["ls"]
    now = client.notifications()
    if done == "test":
        return _tested(rest[0], client.test_notification(rest[0]))
    if done != "ls":
        now = client.set_notifications(_changed(now, done, rest, given))
    return _table(now)


def _tested(name: str, said: dict[str, Any]) -> tables.Sentences:
    """Return how a test went; a test that failed is an outcome that failed, so that a script sees it."""
    if said["taken"]:
        return tables.Sentences([say("{name} accepted it.", name=name)], said)
    text = say("{name} did not accept it: {why}", name=name, why=str(said["trouble"]))
    return Outcomes([text], said, [Refused("Invalid", str(said["trouble"]))])


def _changed(now: dict[str, Any], done: str, rest: list[str], given: dict[str, Any]) -> dict[str, Any]:
    kept = [{"name": c["name"], "events": c["events"]} for c in now["channels"]]
    new = {
        "browser": now["browser"],
        "quiet": now["quiet"],
        "timezone": now["timezone"],
        "channels": kept,
    }
    if done == "rm":
        missing = sorted(set(rest) - {c["name"] for c in kept})
        if missing:
            raise UsageError(say("channel {name} does not exist", name=missing[0]))
        new["channels"] = [c for c in kept if c["name"] not in rest]
    elif done == "quiet":
        begin, _, until = rest[0].partition("-")
        new["quiet"] = None if rest[0] == "off" else {"begin": begin, "until": until}
        new["timezone"] = given.get("timezone") or now["timezone"]
    else:
        name, address = rest[0], rest[1] if len(rest) > 1 else None
        if address == "-":
            address = _asked()
        old = next((c for c in kept if c["name"] == name), None)
        wanted = given.get("events") or (old["events"] if old else list(USUAL))
        channel = {"name": name, "events": wanted, **({} if address is None else {"address": address})}
        new["channels"] = [*(c for c in kept if c["name"] != name), channel]
    return new


def _asked() -> str:
    typed = sys.stdin.isatty()
    found = (getpass.getpass(f"{say('address')}: ") if typed else sys.stdin.readline()).strip()
    if not found:
        raise UsageError(say("the address is missing: type it in, or send it as a line"))
    return found


def _state(channel: dict[str, Any]) -> str:
    """Return the last failure of a channel, or whether anything ever went through it."""
    if channel["trouble"]:
        return str(channel["trouble"])
    if channel["told_at"] is None:
        return say("not tried yet: {command}", command=f"mlp notify test {channel['name']}")
    return say("works")


def _table(now: dict[str, Any]) -> Any:
    rows = [(c["name"], c["shown"], " ".join(c["events"]), _state(c)) for c in now["channels"]]
    quiet = now["quiet"]
    notes = []
    if quiet:
        notes.append(
            say(
                "Quiet from {begin} to {until}, {zone}",
                begin=quiet["begin"],
                until=quiet["until"],
                zone=now["timezone"],
            )
        )
    columns = (say("name"), say("to"), say("events"), say("state"))
    return tables.Table(columns, rows, now, empty=say("You have no notification channels"), notes=notes)
