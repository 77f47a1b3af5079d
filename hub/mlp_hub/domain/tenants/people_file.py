"""A file of people as spreadsheets write it: read without believing anything of it. Pure."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, replace

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.tenants.account_names import is_valid, normalize, why_not
from mlp_language.message import NOTHING, Message, msg

MOST_LINES = 1000
"""Limit of teams: lines of one file of people."""
SHOWN = 60
"""Safety: characters of a cell that a refusal repeats."""
_COLUMNS: Mapping[str, str] = {
    **dict.fromkeys(("name", "user", "username", "login"), "name"),
    **dict.fromkeys(("team", "tenant"), "team"),
    **dict.fromkeys(("platform_admin", "admin"), "admin"),
}
_YES, _NO = frozenset({"yes", "true", "1", "admin", "x"}), frozenset({"", "no", "false", "0"})


@dataclass(frozen=True, slots=True)
class PersonLine:
    """A line of the file. `admin`: a platform administrator, not one of the team. `wrong` says why nothing is done for it."""

    line: int
    name: str
    team: str = ""
    admin: bool = False
    wrong: Message = NOTHING


def read_people(text: str) -> list[PersonLine]:
    """Return a file's lines; the fault of a line is stored in the line.

    Raises `Invalid` for a text that is not such a file.
    """
    text = text.removeprefix("\ufeff")
    if "\0" in text:
        raise Refused(
            Reason.INVALID,
            msg("this is not text: it has a NUL character. Save the table as CSV, encoded as UTF-8"),
        )
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    columns = ["name", "team", "admin"]
    found: list[PersonLine] = []
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=delimiter, strict=True)
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if not any(cells):
                continue
            if not found and cells[0].lower() in _COLUMNS:
                columns = _named(cells)
                continue
            if len(found) == MOST_LINES:
                raise Refused(
                    Reason.INVALID, msg("a file of people has at most {n} lines; split it", n=MOST_LINES)
                )
            found.append(_person(reader.line_num, cells, columns))
    except csv.Error as error:
        raise Refused(
            Reason.INVALID,
            msg("line {line} is not CSV: {why}", line=reader.line_num, why=str(error)),
        ) from error
    if not found:
        raise Refused(
            Reason.INVALID,
            msg("the file names nobody; a line is name,team,platform_admin, such as ann,red,no"),
        )
    return _once(found)


def _named(cells: list[str]) -> list[str]:
    columns = [_COLUMNS.get(cell.lower(), "") for cell in cells]
    known = [c for c in columns if c]
    if "" in columns or len(set(known)) != len(known) or "name" not in known:
        raise Refused(
            Reason.INVALID,
            msg(
                "the first line names the columns {columns}; it needs name, team and platform_admin, each once",
                columns=", ".join(cells)[:SHOWN],
            ),
        )
    return columns


def _person(line: int, cells: list[str], columns: list[str]) -> PersonLine:
    given = dict(zip(columns, cells, strict=False))
    name, admin = normalize(given.get("name", "")), given.get("admin", "").lower()
    found = PersonLine(line, name[:SHOWN], given.get("team", "")[:SHOWN], admin in _YES)
    if any(cells[len(columns) :]):
        return replace(
            found, wrong=msg("the line has {n} cells; it needs name, team and platform_admin", n=len(cells))
        )
    if not is_valid(name):
        return replace(
            found,
            wrong=msg("{name} cannot be a user name: {rule}", name=repr(name[:SHOWN]), rule=why_not(name)),
        )
    if admin not in _YES | _NO:
        return replace(
            found, wrong=msg("platform_admin is {admin}; it must be yes or no", admin=repr(admin[:SHOWN]))
        )
    return found


def _once(people: list[PersonLine]) -> list[PersonLine]:
    """Mark repeated names as wrong: a name counts at its first line only.

    A person in several teams is added to the others on the page.
    """
    first: dict[str, int] = {}
    faults = []
    for one in people:
        if not one.wrong and first.setdefault(one.name, one.line) != one.line:
            one = replace(  # noqa: PLW2901 - the same line, with what is wrong with it
                one, wrong=msg("line {line} already has {name}", line=first[one.name], name=one.name)
            )
        faults.append(one)
    return faults
