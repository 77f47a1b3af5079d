"""People that are brought in many at a time, on the wire."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from mlp_api.localized import Text
from mlp_api.types import Request, Response


class PeopleImport(Request):
    """Lines of CSV: name, team, platform_admin; a first line may name the columns.

    `platform_admin` (older files: `admin`) makes the person an administrator of the whole platform, not of the team.
    With `dry_run` nothing is changed: the answer has what would be done.
    """

    csv: Annotated[str, Meta(max_length=500_000)]
    dry_run: bool = True


class ImportedPerson(Response):
    """Result, or preview of the result, of one line.

    `new`: the account is made. `joins`: the account exists, and is put into the team. `there`: nothing
    is left to do. `made` and `joined`: this was done. `refused`: nothing is done, and `note` has the
    reason. A `password` is shown this once. `admin` is a platform administrator.
    """

    line: int
    name: str
    team: str
    admin: bool
    state: Literal["new", "joins", "there", "made", "joined", "refused"]
    note: Text
    password: str | None


class PeopleImported(Response):
    """All lines in order, and how many of them do something, or did, and are refused."""

    people: list[ImportedPerson]
    done: int
    refused: int
