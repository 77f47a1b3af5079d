"""Searches of runs as SQL: conditions are bound parameters, columns are of a closed list."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import (
    JSON,
    ColumnElement,
    FromClause,
    Select,
    Text,
    and_,
    case,
    cast,
    exists,
    func,
    literal,
    not_,
    or_,
    select,
)

from mlp_hub.domain.apps.app import OF_APPS
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.jobs.job import Phase, State, state_of
from mlp_hub.domain.jobs.runquery import NUMBERS, RunOrder, Term
from mlp_hub.domain.resources import HOUR_S, core_seconds
from mlp_hub.store import codec
from mlp_hub.store.repos.jobs import job_rows
from mlp_hub.store.tables import job, run_origin, run_summary, run_tag, run_value
from mlp_language.message import msg

_OPS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}
_OF_SUMMARY = {"duration", "core_hours", "cpu_peak", "ram_peak"}
_KINDS = {"param": ("param",), "metric": ("metric",), "best": ("metric",), "any": ("param", "metric")}
_JSON = JSON().with_variant(Text(), "sqlite")  # whose functions take text


def query_of(
    user: str | None, tenant: str | None, terms: Sequence[Term], order: RunOrder, now: float
) -> Select[Any]:
    """Return the query of the uids of a user's or a tenant's runs for which all terms hold, in an order."""
    c = job.c
    keys, joined = _keys(order, now)
    asked = {order.kind, *(term.kind for term in terms)}
    table: FromClause = job
    # nothing is joined that nobody asked for: all of a user's rows would be looked up
    if asked & _OF_SUMMARY:
        table = table.outerjoin(run_summary, run_summary.c.job == c.uid)
    if joined is not None:
        table = table.outerjoin(*joined)
    query = select(c.uid).select_from(table)
    query = query.where(c.phase != Phase.DELETING.value, ~c.name.startswith(OF_APPS, autoescape=True))
    if user is not None:
        query = query.where(c.user == user)
    if tenant is not None:
        query = query.where(c.tenant == tenant)
    for term in terms:
        query = query.where(_condition(term, now))
    for key in keys:  # what has no such value comes last, whichever way
        query = query.order_by(key.is_(None), key.desc() if order.down else key)
    newest = order.kind != "submitted" or order.down
    return query.order_by(c.uid.desc() if newest else c.uid)


def rows_of(uids: Sequence[str], now: float) -> Select[Any]:
    """Return the query of the columns that tables show of these runs; their programs stay in the database."""
    c = job.c
    of_job = (
        c.uid,
        c.user,
        c.name,
        c.run,
        c.tenant,
        c.phase,
        c.reason,
        c.progress,
        c.submitted_at,
        c.started_at,
        c.finished_at,
        c.note,
    )
    took = (duration(now).label("duration"), _core_s(now).label("core_s"))
    of_summary = (run_summary.c.cpu_peak, run_summary.c.ram_peak)
    of_origin = (run_origin.c.commit, run_origin.c.dirty, run_origin.c.environment)
    return (
        select(*of_job, *took, *of_summary, *of_origin)
        .select_from(
            job.outerjoin(run_summary, run_summary.c.job == c.uid).outerjoin(
                run_origin, run_origin.c.job == c.uid
            )
        )
        .where(c.uid.in_(list(uids)))
    )


def _json(column: ColumnElement[Any]) -> Any:
    # PostgreSQL refuses a NUL wherever it stands, as in a program; of what is looked up here no other sign changes anything
    return cast(func.replace(column, "\\u0000", "\\u0001"), _JSON)


def duration(now: float) -> ColumnElement[Any]:
    """Return the seconds that all attempts ran so far, null before the first."""
    c = job.c
    before = func.coalesce(_json(c.past)[job_rows.RAN].as_float(), 0.0)
    end = func.coalesce(c.finished_at, literal(now))
    ran = case(
        (end > c.started_at, before + end - c.started_at),
        (or_(c.started_at.is_not(None), before > 0), before),
    )
    return func.coalesce(run_summary.c.ran, ran)


def _core_s(now: float) -> ColumnElement[Any]:
    """Return the core-seconds so far, of those ranks that it has or had last: as a sweep counts its trials."""
    of_all: ColumnElement[Any] = core_seconds(
        duration(now), ranks_of(), spec_of()["per_worker", "cpu"].as_integer()
    )
    return of_all


def spec_of() -> Any:
    """Return a job's spec, to be looked into."""
    return _json(job.c.spec)


def ranks_of() -> ColumnElement[Any]:
    """Return how many ranks a job has or had last; before it had any the fewest that it asks for."""
    spec, placed = spec_of(), func.json_array_length(_json(job.c.placement))
    fewest = spec["workers_min"].as_integer() + spec["ps"].as_integer()
    return case((placed > 0, placed), else_=fewest)


def _keys(order: RunOrder, now: float) -> tuple[list[ColumnElement[Any]], tuple[Any, Any] | None]:
    """Return what is sorted by, and what has to be joined for it."""
    c = job.c
    plain: dict[str, ColumnElement[Any]] = {
        "finished": c.finished_at,
        "name": c.name,
        "tenant": c.tenant,
        "user": c.user,
        "state": c.phase,
        "note": c.note,
        **_numbers(now),
    }
    if order.kind == "submitted":
        return [], None  # uids are sorted by it
    if order.kind in plain:
        key = plain[order.kind]
        return ([key, c.run] if order.kind == "name" else [key]), None
    v = run_value.alias("sorted")
    kinds = _KINDS[order.kind]
    on = and_(v.c.job == c.uid, v.c.name == order.name, v.c.kind.in_(kinds))
    if order.kind == "any":  # where one name is both, the parameter counts
        both = run_value.alias("both")
        param = exists().where(both.c.job == c.uid, both.c.name == order.name, both.c.kind == "param")
        on = and_(on, or_(v.c.kind == "param", not_(param)))
    number = v.c.best if order.kind == "best" else v.c.number
    text = case((v.c.kind == "param", v.c.text), else_=None)
    return [number, text], (v, on)


def _numbers(now: float) -> dict[str, ColumnElement[Any]]:
    """Return the numbers other than parameters and metrics: the `NUMBERS` of a search."""
    return {
        "run": job.c.run,
        "duration": duration(now),
        "core_hours": _core_s(now) / HOUR_S,
        "cpu_peak": run_summary.c.cpu_peak,
        "ram_peak": run_summary.c.ram_peak,
    }


def _condition(term: Term, now: float) -> ColumnElement[bool]:
    if term.kind in _TEXTS:
        holds = _TEXTS[term.kind](term.text)
        return holds if term.op == "=" else not_(holds)
    if term.kind in NUMBERS:
        return _OPS[term.op](_numbers(now)[term.kind], term.number)  # type: ignore[no-any-return]
    return _of_value(term)


def _words(text: str) -> ColumnElement[bool]:
    c = job.c
    tagged = exists().where(run_tag.c.job == c.uid, run_tag.c.tag.icontains(text, autoescape=True))
    written = (c.name, func.coalesce(c.note, ""), c.user)
    return or_(*(column.icontains(text, autoescape=True) for column in written), tagged)


def _sweep(text: str) -> ColumnElement[bool]:
    v = run_value.c
    return exists().where(v.job == job.c.uid, v.kind == "sweep", _like(v.name, text))


_TEXTS: dict[str, Callable[[str], ColumnElement[bool]]] = {
    "words": _words,
    "name": lambda text: _like(job.c.name, text),
    "tenant": lambda text: _like(job.c.tenant, text),
    "user": lambda text: _like(job.c.user, text),
    "tag": lambda text: exists().where(run_tag.c.job == job.c.uid, _like(run_tag.c.tag, text)),
    "note": lambda text: func.coalesce(job.c.note, "").icontains(text, autoescape=True),
    "sweep": _sweep,
    "state": lambda text: job.c.phase.in_([p.value for p in phases_of(text)]),
}
"""Conditions on texts, which hold or do not."""


def _of_value(term: Term) -> ColumnElement[bool]:
    """Return the condition on a parameter or a metric; a run that has none of that name is never meant."""
    v, compare = run_value.c, _OPS[term.op]
    number = v.best if term.kind == "best" else v.number
    holds: ColumnElement[bool] | None = None if term.number is None else compare(number, term.number)
    if term.number is None:
        texts = [codec.dumps(term.text), term.text]  # as a text, or as true, false
        same = v.text.in_(texts)
        holds = and_(v.kind == "param", same if term.op == "=" else not_(same))
    return exists().where(
        v.job == job.c.uid,
        v.kind.in_(_KINDS[term.kind]),
        v.name == term.name,
        *([holds] if holds is not None else []),
    )


def _like(column: Any, text: str) -> ColumnElement[bool]:
    """Compare with a name in which * stands for anything."""
    if "*" not in text:
        return column == text  # type: ignore[no-any-return]
    pattern = text.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_").replace("*", "%")
    return column.like(pattern, escape="\\")  # type: ignore[no-any-return]


def phases_of(word: str) -> list[Phase]:
    """Return the phases that a state, or a phase, means."""
    found = [p for p in Phase if word in {p.value, state_of(p).value}]
    if not found:
        known = sorted({*(s.value for s in State), *(p.value for p in Phase)} - {"deleting"})
        raise Refused(
            Reason.INVALID,
            msg(
                "state {state} does not exist; choose one of {states}",
                state=word[:60],
                states=", ".join(known),
            ),
        )
    return found
