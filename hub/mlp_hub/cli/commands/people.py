"""`mlp-hub user import`: many accounts of a file, lot by lot."""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mlp_hub.cli.commands.accounts import ask_service
from mlp_hub.cli.errors import CommandFailed, UsageFailure
from mlp_hub.domain.text import escaped
from mlp_hub.settings import Settings
from mlp_language.render import say

MOST_BYTES = 500_000
LOT = 50
AGAIN_S = 2.0
TRIES = 3  # of a lot that was not answered: with the same key what was done is not done again, and its passwords come


def import_people(settings: Settings, file: Path, *, dry_run: bool) -> int:
    """Say what becomes of each line, and do it unless only that was asked; 1 where a line is refused."""
    first = _ask(settings, _read(file), dry_run=True)
    if dry_run:
        _print_people(first["people"])
        return int(first["refused"] > 0)
    _print_people(one for one in first["people"] if one["state"] in {"refused", "there"})
    todo = [one for one in first["people"] if one["state"] in {"new", "joins"}]
    refused = first["refused"]
    for at in range(0, len(todo), LOT):
        lines = "\n".join(
            f"{one['name']},{one['team']},{'yes' if one['admin'] else 'no'}" for one in todo[at : at + LOT]
        )
        done = _ask(settings, f"name,team,platform_admin\n{lines}", dry_run=False)
        _print_people(done["people"])  # at once: a password that was made is not lost with a later lot
        refused += done["refused"]
        if len(todo) > LOT:
            sys.stderr.write(
                say("{n} of {all} people done", n=min(at + LOT, len(todo)), all=len(todo)) + "\n"
            )
    return int(refused > 0)


def _read(file: Path) -> str:
    try:
        data = sys.stdin.buffer.read(MOST_BYTES + 1) if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise UsageFailure(say("{file} cannot be read: {error}", file=str(file), error=str(error))) from None
    if len(data) > MOST_BYTES:
        raise UsageFailure(say("{file} is too large for a list of people", file=str(file)))
    try:
        return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8")
    except UnicodeDecodeError:
        raise UsageFailure(
            say("{file} is not text in UTF-8", file=str(file)),
            say("Save the table as CSV, encoded as UTF-8."),
        ) from None


def _ask(settings: Settings, csv: str, *, dry_run: bool) -> dict[str, Any]:
    body: dict[str, object] = {"csv": csv, "dry_run": dry_run}
    key = uuid.uuid4().hex
    for left in reversed(range(TRIES)):
        try:
            answer = ask_service(settings, "POST", "/users:import", body=body, timeout=120, key=key)
        except UsageFailure:  # it was answered
            raise
        except CommandFailed:
            if not left:
                raise
            time.sleep(AGAIN_S)
        else:
            break
    found: dict[str, Any] = answer.json()
    return found


def _print_people(people: Iterable[dict[str, Any]]) -> None:
    words = {
        "new": say("would be made"),
        "joins": say("would join {team}", team="{team}"),
        "there": say("already exists"),
        "made": say("made"),
        "joined": say("joined {team}", team="{team}"),
        "refused": say("refused"),
    }
    for one in people:
        state = words[one["state"]].replace("{team}", one["team"])
        parts = [one["name"], _with_rights(state, one), one["password"], one["note"]]
        sys.stdout.write(escaped("  ".join(filter(None, parts))) + "\n")
    sys.stdout.flush()


def _with_rights(state: str, one: dict[str, Any]) -> str:
    """Return the state, and that the person is a platform administrator where the line asks for it.

    A person whose account was made with a note may not have the rights; the note has the reason.
    """
    if not one["admin"] or one["state"] == "refused" or (one["state"] == "made" and one["note"]):
        return state
    if one["state"] == "new":
        return say("{state}, would become platform administrator", state=state)
    if one["state"] == "made":
        return say("{state}, is now platform administrator", state=state)
    return say("{state}, is platform administrator already", state=state)
