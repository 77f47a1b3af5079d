"""Datasets from Python: the functions of `mlp data`, with a client of this environment.

    mlp.data.push("photos", "pets")     upload a file or a directory; again: only missing or changed files
    mlp.data.pull("pets", "here")       download, with a check of each file's checksum
    mlp.data.ls()  mlp.data.ls("pets")  datasets, or the files of one
    mlp.data.add("s3://photos/pets", "pets")   the platform copies it; mlp.data.sync("pets") fetches changes
    mlp.data.rm("pets:old.csv")         a file, a directory, or with its name alone the dataset

`progress`: True draws a bar where one is visible, a function is called with bytes done and bytes in
all.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from mlp.client.rest import Client
from mlp.data.crew import Crew
from mlp.data.places import DataPlace, check_order, name_for
from mlp.data.progress import Shown, TransferProgress, shown
from mlp.data.pulling import Pull
from mlp.data.pushing import Push
from mlp.data.remote import Remote
from mlp.data.results import as_copied, as_pulled, as_pushed, as_removed, dataset_table, file_table
from mlp.rendering import tables

WORKERS = 4
"""Tuning: files that are on their way at a time: more hide the waiting for disks, and are in each other's way."""


def push(
    path: str | os.PathLike[str],
    to: str | None = None,
    *,
    tenant: str | None = None,
    workers: int = WORKERS,
    progress: Shown = True,
    stop: threading.Event | None = None,
    client: Client | None = None,
) -> tables.Sentences:
    """Upload a file or a directory to `NAME` or `NAME:path`; the dataset is made if it does not exist.

    Raises `Refused` (quota, name, state), and `TransferFailed` for an incomplete upload: the same call
    again continues it.
    """
    if to:
        check_order(path, to)
    place = DataPlace.parse(to) if to else DataPlace(name_for(path), "")
    client = (client or Client.from_env()).patiently()
    with shown(progress) as told:
        crew = Crew(workers, told, stop or threading.Event())
        found = Push(client, os.fspath(path), place, crew, tenant=tenant).run()
    return as_pushed(found)


def pull(
    what: str,
    to: str | os.PathLike[str] | None = None,
    *,
    workers: int = WORKERS,
    progress: Shown = True,
    stop: threading.Event | None = None,
    client: Client | None = None,
) -> tables.Sentences:
    """Download `NAME`, or of it `NAME:path`.

    A directory's files go into `to`. A file becomes `to`, or goes into it if it is a directory. Raises
    `Refused`, and `TransferFailed` for an incomplete download: the same call again continues it.
    """
    client = (client or Client.from_env()).patiently()
    with shown(progress) as told:
        crew = Crew(workers, told, stop or threading.Event())
        found = Pull(client, DataPlace.parse(what), None if to is None else os.fspath(to), crew).run()
    return as_pulled(found)


def ls(what: str | None = None, *, client: Client | None = None) -> tables.Table:
    """List datasets, or the files of one: of `NAME`, or of a directory in it, `NAME:path`."""
    client = client or Client.from_env()
    if what is None:
        return dataset_table(client.datasets())
    place = DataPlace.parse(what)
    return file_table(Remote(client, place.name).entries(place.path), place)


def add(
    source: str,
    name: str,
    *,
    tenant: str | None = None,
    endpoint: str | None = None,
    region: str | None = None,
    secret: str | None = None,
    mode: str = "copy",
    client: Client | None = None,
) -> tables.Sentences:
    """Make a dataset that the platform copies from `s3://BUCKET/PREFIX`; it returns at once, `ls` says how far it is.

    With `mode="read-through"` nothing is copied: its files are those of the source, and jobs get what they name of it.
    `endpoint` is another object store than Amazon's, `secret` names what opens it. Raises `Refused`.
    """
    client = client or Client.from_env()
    given = {"url": source, "endpoint": endpoint, "region": region, "secret": secret, "mode": mode}
    wanted = {"name": name, "size": 0, "source": {k: v for k, v in given.items() if v is not None}}
    return as_copied(client.make_dataset({**wanted, **({"tenant": tenant} if tenant else {})}))


def sync(name: str, *, client: Client | None = None) -> tables.Sentences:
    """Copy the changes at a dataset's source; files from there that are gone there are removed.

    Raises `Refused`.
    """
    return as_copied((client or Client.from_env()).sync_dataset(name))


def rm(what: str, *, client: Client | None = None) -> tables.Sentences:
    """Delete a dataset, or of it a file or a directory with all in it: `NAME:path`."""
    client = client or Client.from_env()
    place = DataPlace.parse(what)
    gone: dict[str, Any] = {"name": place.name, "path": place.path}
    if place.path:
        Remote(client, place.name).delete(place.path)
    else:
        gone |= client.remove_dataset(place.name)
    return as_removed(place, gone)


__all__ = ["TransferProgress", "add", "ls", "pull", "push", "rm", "sync"]
