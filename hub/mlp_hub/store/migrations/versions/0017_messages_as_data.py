"""Messages as data: texts of jobs, timelines, decisions, tenants and windows become JSON.

Sentences read as before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from alembic import op

from mlp_language.message import from_data
from mlp_language.render import plain

revision = "0017"
down_revision = "0016"
AT_A_TIME = 1000
_STARTING = re.compile(r"starting (\d+) rank")

Turn = Callable[[Any], Any]


def _said(text: str, **more: object) -> dict[str, object]:
    return {"id": "{text}", "args": {"text": text, **more}}


def _text(data: Any) -> str:
    return plain(from_data(data))


def upgrade() -> None:
    """Turn each sentence into a message that reads the same."""
    _sentences(lambda text: text and json.dumps(_said(text)), _event)
    _objects(_said)
    _decisions(_decision)


def downgrade() -> None:
    """Turn each message into its English sentence."""
    _sentences(
        lambda column: column and _text(json.loads(column)), lambda _, column: _text(json.loads(column))
    )
    _objects(_text)
    # these had names for some readers that are not to be told to others: they are forgotten
    op.execute(sa.text("DELETE FROM decision"))


def _event(kind: str, text: str) -> str:
    if kind == "asked" and text.startswith('{"id":'):
        return text  # this version's `down` wrote it, which stops what an older one ran
    # how many ranks an attempt had is asked of its timeline
    started = _STARTING.match(text) if kind == "starting" else None
    return json.dumps(_said(text) if started is None else _said(text, n=int(started[1])))


def _sentences(job: Turn, event: Callable[[str, Any], Any]) -> None:
    jobs = sa.table("job", sa.column("uid", sa.String), sa.column("message", sa.Text))
    _each(jobs, ("uid",), "message", lambda row: job(row.message))
    events = sa.table(
        "job_event",
        sa.column("job", sa.String),
        sa.column("seq", sa.Integer),
        sa.column("kind", sa.String),
        sa.column("message", sa.Text),
    )
    _each(events, ("job", "seq"), "message", lambda row: row.message and event(row.kind, row.message))


def _objects(turn: Turn) -> None:
    def other(column: str) -> str:
        value = json.loads(column)
        return json.dumps({**value, "message": turn(value["message"])})

    tenants = sa.table("tenant", sa.column("name", sa.String), sa.column("lowered", sa.Text))
    _each(tenants, ("name",), "lowered", lambda row: row.lowered and other(row.lowered))
    windows = sa.table(
        "booking", sa.column("tenant", sa.String), sa.column("name", sa.String), sa.column("short", sa.Text)
    )
    _each(windows, ("tenant", "name"), "short", lambda row: row.short and other(row.short))


def _decisions(turn: Turn) -> None:
    decisions = sa.table("decision", sa.column("id", sa.Integer), sa.column("text", sa.Text))
    _each(decisions, ("id",), "text", lambda row: json.dumps(turn(json.loads(row.text))))


def _decision(parts: dict[str, Any]) -> dict[str, Any]:
    """Return a decision as the tenant of its job saw it: it is unknown who may see more of old ones."""
    told = dict(parts.get("own", parts["all"]))
    waited_for = told.get("waited_for")
    return {
        **told,
        "summary": _said(told["summary"]),
        "waited_for": None if waited_for is None else _said(waited_for),
        "changed": [_said(text) for text in told.get("changed", ())],
        "spared": [_said(text) for text in told.get("spared", ())],
        "nodes": [{**node, "free_after": _said(node["free_after"])} for node in told.get("nodes", ())],
        "victims": [_victim(victim) for victim in told.get("victims", ())],
    }


def _victim(victim: dict[str, Any]) -> dict[str, Any]:
    who = {
        "uid": "",
        "name": victim["job"],
        "user": victim["user"],
        "tenant": victim["tenant"],
        "kind": "job",
    }
    rest = {k: v for k, v in victim.items() if k not in ("job", "user", "tenant")}
    return {"gives": 0, "lost_unit": "", **rest, "who": who, "why": _said(victim["why"])}


def _each(table: sa.TableClause, keys: tuple[str, ...], column: str, turn: Turn) -> None:
    """Write a column of each row again, a batch at a time in the order of its keys."""
    connection = op.get_bind()
    columns = [table.c[key] for key in keys]
    update = (
        table.update()
        .where(*[table.c[key] == sa.bindparam(f"k_{key}") for key in keys])
        .values({column: sa.bindparam("new")})
    )
    last: tuple[Any, ...] | None = None
    while True:
        query = sa.select(table).order_by(*columns).limit(AT_A_TIME)
        if last is not None:
            query = query.where(sa.tuple_(*columns) > sa.tuple_(*last))
        rows = connection.execute(query).all()
        if not rows:
            return
        last = tuple(getattr(rows[-1], key) for key in keys)
        changed = [
            {**{f"k_{key}": getattr(row, key) for key in keys}, "new": new}
            for row in rows
            if (new := turn(row)) != getattr(row, column)
        ]
        if changed:
            connection.execute(update, changed)
