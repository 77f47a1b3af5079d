"""Which databases, which executor and which cluster a state directory belongs to, as it was told by the last `mlp-hub up`.

Both sides know: the state directory in `bindings.json`, a database in a row. So a shell that lacks a variable, or a file that is lost, never
puts an empty platform, or another hub's, beside what runs here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from mlp_hub import durable
from mlp_hub.settings import Settings, SettingsError

FILE = "bindings.json"
KEY = "binding"
"""Key of the row that says what the platform's database is known by: its id, and the state directory that it belongs to."""
_PASSWORD = re.compile(r"(?<=://)([^:/@]*):[^@/]*@")


@dataclass(frozen=True, slots=True)
class Bound:
    """A database as the state directory knows it. `url` is without a password; empty for the file in the state directory."""

    id: str
    url: str


@dataclass(frozen=True, slots=True)
class Bindings:
    """Databases, executor and cluster of a state directory; empty values are not known.

    The databases are named `platform` and `hub`.
    """

    databases: Mapping[str, Bound] = field(default_factory=dict)
    executor: str = ""
    cluster: str = ""
    """Id of the cluster: the id of its namespace `kube-system`, which is never recreated."""
    cluster_host: str = ""
    kubeconfig: str = ""
    numbers: int = 0
    """The highest number of a user, as of the last `up`."""
    first_uid: int = 0
    """Base that numbers are added to for system uids, as of the last `up`."""


def read(settings: Settings) -> Bindings:
    """Return what is written down; nothing is known where nothing is, or where that cannot be read."""
    try:
        found = durable.read_object(settings.home / FILE)
        databases = {
            str(name): Bound(str(of["id"]), str(of["url"])) for name, of in found["databases"].items()
        }
        words = {name: str(found[name]) for name in ("executor", "cluster", "cluster_host", "kubeconfig")}
        numbers = {name: int(found[name]) for name in ("numbers", "first_uid")}
        return Bindings(databases, **words, **numbers)  # type: ignore[arg-type] # each as it is named
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return Bindings()


def write(settings: Settings, bindings: Bindings) -> None:
    """Write down what the state directory belongs to from now on, where that is not there already."""
    if read(settings) != bindings:
        durable.write(settings.home / FILE, json.dumps(asdict(bindings), indent=1))


def bind(settings: Settings, name: str, bound: Bound) -> None:
    """Write down that the state directory belongs to this database."""
    before = read(settings)
    write(settings, replace(before, databases={**before.databases, name: bound}))


def shown(url: str) -> str:
    """Return a database's URL without its password."""
    return _PASSWORD.sub(r"\1@", url)


def check_service(settings: Settings, row: Any) -> None:
    """Raise `SettingsError` where the platform's database is not the one that the state directory belongs to; `row` is its row of `KEY`."""
    known = read(settings).databases.get("platform")
    found = row.get("id") if isinstance(row, dict) else None
    if known is None or found in (None, known.id):
        return
    raise SettingsError(
        f"{settings.home} belongs to the database {known.url or 'in its own db/'}, not to {shown(settings.service_db_url)}; nothing was ended or "
        "forgotten. `mlp-hub up` says what to do"
    )
