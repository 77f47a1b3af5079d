"""Displays of datasets, their files and results of transfers: in a notebook, on a terminal, as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from mlp.data.places import DataPlace
from mlp.language import say, says
from mlp.rendering import words
from mlp.rendering.format import clock_time, file_size
from mlp.rendering.tables import Sentences, Table

if TYPE_CHECKING:
    from mlp.data.pulling import Pulled
    from mlp.data.pushing import Pushed
    from mlp.data.remote import DataEntry

NAMED = 3
"""How many names of a list are told."""
STATES: Mapping[str, Callable[[], str]] = {
    "creating": lambda: say("being uploaded"),
    "ready": lambda: say("ready"),
    "error": lambda: say("incomplete"),
    "deleting": lambda: say("being deleted"),
}


def dataset_table(found: Sequence[Mapping[str, Any]]) -> Table:
    """List datasets by name."""
    rows = [
        [
            str(d.get("name", "")),
            _state(d),
            file_size(d.get("used")),
            str(d.get("tenant", "")),
            clock_time(d.get("made_at")),
            str(d.get("message") or ""),
        ]
        for d in found
    ]
    columns = (say("name"), say("state"), say("size"), say("team"), say("made"), say("why"))
    empty = say(
        "You have no datasets. Upload one: {command}", command=words.command("data push DIRECTORY NAME")
    )
    return Table(columns, rows, list(found), empty=empty)


def _state(dataset: Mapping[str, Any]) -> str:
    state = str(dataset.get("state"))
    through = (dataset.get("source") or {}).get("mode") == "read-through"
    if through and state in {"creating", "ready"}:
        return say("being examined") if state == "creating" else say("read through")
    if state == "creating" and dataset.get("source"):
        return say("being copied, {n} %", n=dataset.get("progress") or 0)
    known = STATES.get(state)
    word = known() if known else state
    if state in {"creating", "error"}:
        return say("{state}, {n} %", state=word, n=dataset.get("progress") or 0)
    return word


def file_table(found: Sequence[DataEntry], place: DataPlace) -> Table:
    """List a directory of a dataset."""
    rows = [
        [
            f"{e.name}/" if e.directory else e.name,
            "" if e.directory else file_size(e.size),
            clock_time(_written(e)),
        ]
        for e in found
    ]
    data = [
        {
            "name": e.name,
            "kind": "directory" if e.directory else "file",
            "size": e.size,
            "modified": _written(e) or None,
            "sha256": e.digest.hex() if e.digest else None,
        }
        for e in found
    ]
    empty = say("{directory} is empty.", directory=str(place))
    return Table((say("name"), say("size"), say("written")), rows, data, empty=empty)


def _written(entry: DataEntry) -> str:
    try:
        return parsedate_to_datetime(entry.modified).isoformat()
    except ValueError:
        return ""


def as_pushed(found: Pushed) -> Sentences:
    """Write what went, what was there, and what was left out."""
    place, size = str(found.place), file_size(found.size)
    lines = [
        says(
            "{place} is complete: 1 file sent, {size} in total",
            "{place} is complete: {n} files sent, {size} in total",
            len(found.sent),
            place=place,
            size=size,
        )
        if not found.there
        else says(
            "{place} is complete: 1 file sent",
            "{place} is complete: {n} files sent",
            len(found.sent),
            place=place,
        )
        if found.sent
        else say("{place} already had all files, {size}", place=place, size=size)
    ]
    if found.sent and found.there:
        lines.append(
            says(
                "1 file was there already; all together have {size}",
                "{n} files were there already; all together have {size}",
                found.there,
                size=size,
            )
        )
    lines += _left_out(found.left_out)
    data = {
        "name": found.place.name,
        "path": found.place.path,
        "state": found.dataset.get("state"),
        "bytes": found.size,
        "sent": sorted(found.sent),
        "there": found.there,
        "left_out": found.left_out,
    }
    return Sentences(lines, data)


def as_pulled(found: Pulled) -> Sentences:
    """Write what came, and what could not be verified."""
    size = file_size(found.size)
    lines = [
        says(
            "1 file was fetched, {size} in total: {to}",
            "{n} files were fetched, {size} in total: {to}",
            len(found.came),
            size=size,
            to=found.to,
        )
        if not found.there
        else says("1 file was fetched: {to}", "{n} files were fetched: {to}", len(found.came), to=found.to)
        if found.came
        else say("All files were already here, {size}: {to}", size=size, to=found.to)
    ]
    if found.came and found.there:
        lines.append(
            says(
                "1 file was here already; all together have {size}",
                "{n} files were here already; all together have {size}",
                found.there,
                size=size,
            )
        )
    if found.unverified:
        names = say(", ").join(found.unverified[:NAMED])
        lines.append(
            says(
                "The platform has no checksum of 1 file: {names}",
                "The platform has no checksum of {n} files ({names})",
                len(found.unverified),
                names=names,
            )
        )
    data = {
        "name": found.place.name,
        "path": found.place.path,
        "to": found.to,
        "bytes": found.size,
        "came": found.came,
        "there": found.there,
        "unverified": sorted(found.unverified),
    }
    return Sentences(lines, data)


def as_copied(dataset: Mapping[str, Any]) -> Sentences:
    """Write that the platform copies, and how that is followed."""
    source = dataset.get("source") or {}
    if source.get("mode") == "read-through":
        line = say(
            "{name} is read through from {url}. To check that: {command}",
            name=str(dataset.get("name")),
            url=str(source.get("url")),
            command=words.command("data ls"),
        )
        return Sentences([line], dict(dataset))
    line = say(
        "{name} is being copied from {url}. Progress: {command}",
        name=str(dataset.get("name")),
        url=str(source.get("url")),
        command=words.command("data ls"),
    )
    return Sentences([line], dict(dataset))


def as_removed(place: DataPlace, data: Mapping[str, Any]) -> Sentences:
    """Write what goes."""
    line = (
        say("{name} was deleted", name=str(place))
        if place.path
        else say("{name} is being deleted", name=place.name)
    )
    return Sentences([line], dict(data))


def _left_out(names: Sequence[str]) -> list[str]:
    if not names:
        return []
    return [
        says(
            "1 was not sent, because it is a link or not a file, or its name has an encoded / or is not text: {names}",
            "{n} were not sent, because they are links or not files, or their names have an encoded / or are not text: {names}",
            len(names),
            names=say(", ").join(names[:NAMED]),
        )
    ]
