"""`mlp-hub audit`: prints who changed what, the newest last, as a log is read."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from mlp_hub.cli.commands.accounts import ask_service
from mlp_hub.cli.errors import UsageFailure
from mlp_hub.domain.dimensions import DIMENSIONS
from mlp_hub.domain.text import escaped, escaped_json
from mlp_hub.settings import Settings
from mlp_language.render import say

FILTERS = ("actor", "action", "object", "tenant", "since", "until")
PAGE = 1000
MOST = 100_000
LIMITS = (*DIMENSIONS, "borrowing_limit", "lending_limit")
"""Fields of a tenant that limit nothing where they are not set."""
_AGO = re.compile(r"([0-9]{1,6})([mhd])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def audit(settings: Settings, filters: dict[str, str | None], *, lines: int, as_json: bool) -> int:
    """Print the last `lines` entries that pass the filters (actor, action, object, tenant, since, until)."""
    if not 1 <= lines <= MOST:
        raise UsageFailure(say("--lines is {lines}; it must be 1 to {most}", lines=lines, most=MOST))
    found = [entry for page in pages(settings, query_of(filters), lines) for entry in page]
    for entry in reversed(found):
        sys.stdout.write(
            (escaped_json(json.dumps(entry, ensure_ascii=False)) if as_json else line(entry)) + "\n"
        )
    if not found:
        hint(filters)
    return 0


def hint(filters: dict[str, str | None]) -> None:
    """Write to standard error that nothing was found, and how all actions of a kind are named."""
    sentences = [say("No entry passes the filters.")]
    action = filters.get("action")
    if action and not action.endswith("."):
        sentences.append(
            say(
                "{action} is one action; all actions that begin with it: --action {prefix}",
                action=action,
                prefix=f"{action}.",
            )
        )
    sys.stderr.write(escaped(" ".join(sentences)) + "\n")


def query_of(filters: dict[str, str | None]) -> dict[str, str]:
    """Return the filters that are given as the service takes them. Raises `UsageFailure` for a time that means nothing."""
    query = {name: value for name, value in filters.items() if value is not None}
    for name in ("since", "until"):
        if name in query:
            query[name] = moment(name, query[name], datetime.now(UTC)).isoformat()
    return query


def pages(settings: Settings, query: dict[str, str], most: int | None) -> Iterator[list[dict[str, Any]]]:
    """Yield the newest entries page by page, `most` at most; None: all."""
    left = most
    cursor: dict[str, str] = {}
    while left is None or left > 0:
        page = {**query, "limit": str(PAGE if left is None else min(PAGE, left)), **cursor}
        entries = ask_service(settings, "GET", f"/audit?{urlencode(page)}").json()
        if not entries:
            return
        yield entries
        left = None if left is None else left - len(entries)
        cursor = {"cursor": str(entries[-1]["id"])}


def moment(name: str, text: str, now: datetime) -> datetime:
    """Return the time that `2031-03-01`, `2031-03-01T08:00Z` or `7d` (ago; also h and m) means. UTC where none is given."""
    ago = _AGO.fullmatch(text)
    try:
        if ago:
            return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        at = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise UsageFailure(
            say(
                "--{name} is {text}; write a time such as 2031-03-01T08:00Z, or an age such as 7d, 12h or 30m",
                name=name,
                text=repr(text),
            )
        ) from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def line(entry: dict[str, Any]) -> str:
    """Return an entry as one line; texts of users cannot control a terminal."""
    rest = dict(entry["detail"])
    told = [*changes(rest.pop("before", {}), rest.pop("after", {}))] if "after" in rest else []
    detail = ", ".join([*told, *(f"{key} {_short(value)}" for key, value in rest.items())])
    at = datetime.fromisoformat(entry["time"]).astimezone(UTC)
    of = f" of {entry['tenant']}" if entry["tenant"] not in (None, entry["object"]) else ""
    text = f"{at:%Y-%m-%d %H:%M:%S}Z  {entry['actor']}  {entry['action']}  {entry['object']}{of}"
    return escaped(f"{text}  {detail}" if detail else text)


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Say of each field that changed what it was and what it is: `cpu 3 -> 0.5`. Where nothing is set it says what that means."""
    fields = [f for f in {**before, **after} if before.get(f) != after.get(f)]
    return [f"{f} {_set(f, before.get(f))} -> {_set(f, after.get(f))}" for f in fields]


def _set(field: str, value: object) -> str:
    return _short(value) if value is not None else "no limit" if field in LIMITS else "none"


def _short(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
