"""Use of runs by people: search, show, compare, write notes and tags, and act on many at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from msgspec import UNSET

from mlp_api.jobs import runs as runs_api
from mlp_api.localized import Text
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.jobs.runquery import parse, parse_order
from mlp_hub.domain.tenants.tenant_context import TenantContext
from mlp_hub.service.jobs import wire as jobs_wire
from mlp_hub.service.jobs.notes import store_note
from mlp_hub.service.jobs.service import JobService
from mlp_hub.service.runs import wire
from mlp_hub.service.runs.curves import By, CurveMaker
from mlp_hub.service.state.board import Board, Changes
from mlp_hub.service.support.runs import found_job
from mlp_hub.store.repos.jobs.runs import METRIC, PARAM
from mlp_hub.store.tx import Tx
from mlp_language.message import NOTHING, Message, msg

MOST_TEXTS_DELETED = 100
"""Tuning: texts of runs that are forgotten in one sweep: size of a lot, for how long others wait behind it."""
MOST_FOUND = 100_000
"""Limit of runs: runs that one search finds."""
NAMED = 500
"""Tuning: found runs of which parameters and metrics are looked up to be columns."""
CSV_PAGE = 500
"""Tuning: runs that are written to a CSV file at a time."""
AT_ONCE = 50
"""Tuning: runs of a list that are changed side by side."""
PAGE = 20_000
"""Tuning: most points read at a time for a curve: a page of the store bounds the memory."""
MOST_COMPARED = 50
"""Limit of runs: runs whose curves are in one answer."""
MOST_TAGS = 20
"""Limit of runs: tags of one run."""


class RunService:
    """Runs of all users. Whether the asker may is not asked here; whether the run exists is."""

    def __init__(self, board: Board, jobs: JobService, clock: Callable[[], float]) -> None:
        self._board = board
        self._jobs = jobs
        self._clock = clock

    async def search(
        self,
        context: TenantContext,
        *,
        user: str | None = None,
        tenant: str | None = None,
        search: str = "",
        sort: str = "-submitted",
        limit: int = 100,
        cursor: str | None = None,
        start: int = 0,
    ) -> runs_api.RunPage:
        """Return a page of the runs of a user or a tenant for which the search holds: behind a cursor, or from a row on."""
        terms, order, now = parse(search), parse_order(sort), self._clock()
        after = None if cursor is None else _cursor(cursor)

        def work(tx: Tx) -> runs_api.RunPage:
            uids = tx.runs.search(
                context, user=user, tenant=tenant, terms=terms, order=order, now=now, most=MOST_FOUND
            )
            at = start if after is None else _place(uids, *after)
            page = uids[at : at + limit]
            names = tx.runs.names(uids[:NAMED])
            end = at + len(page)
            return runs_api.RunPage(
                runs=[wire.run_to(row) for row in tx.runs.rows(context, page, now)],
                total=len(uids),
                params=names[PARAM],
                metrics=names[METRIC],
                next=f"{page[-1]}.{end}" if page and end < len(uids) else None,
            )

        return await self._board.db.read(work)

    async def named(self, context: TenantContext, user: str, names: str) -> runs_api.RunPage:
        """Return certain runs of a user, by names with commas, in this order; missing ones are left out."""
        wanted, now = _several(names), self._clock()

        def work(tx: Tx) -> runs_api.RunPage:
            jobs = [tx.jobs.find(context, user, name) for name in wanted]
            uids = [job.uid for job in jobs if job is not None]
            found = tx.runs.names(uids)
            return runs_api.RunPage(
                runs=[wire.run_to(row) for row in tx.runs.rows(context, uids, now)],
                total=len(uids),
                params=found[PARAM],
                metrics=found[METRIC],
                next=None,
            )

        return await self._board.db.read(work)

    async def csv(
        self,
        context: TenantContext,
        *,
        user: str | None = None,
        tenant: str | None = None,
        search: str = "",
        sort: str = "-submitted",
    ) -> AsyncIterator[bytes]:
        """Return the lines of all runs that match the search; errors in the search are raised before."""
        terms, order, now = parse(search), parse_order(sort), self._clock()

        def found(tx: Tx) -> tuple[list[str], dict[str, list[str]]]:
            uids = tx.runs.search(
                context, user=user, tenant=tenant, terms=terms, order=order, now=now, most=MOST_FOUND
            )
            return uids, tx.runs.names(uids)

        uids, names = await self._board.db.read(found)
        return self._lines(context, uids, names[PARAM], names[METRIC], now)

    async def _lines(
        self,
        context: TenantContext,
        uids: Sequence[str],
        params: Sequence[str],
        metrics: Sequence[str],
        now: float,
    ) -> AsyncIterator[bytes]:
        yield wire.csv_head(params, metrics)
        for at in range(0, len(uids), CSV_PAGE):
            part = uids[at : at + CSV_PAGE]

            def work(tx: Tx, part: Sequence[str] = part) -> bytes:
                return wire.csv_lines(
                    (wire.run_to(row) for row in tx.runs.rows(context, part, now)), params, metrics
                )

            yield await self._board.db.read(work)

    async def get(self, context: TenantContext, user: str, name: str) -> runs_api.RunDetail:
        """Return all that is kept of a run."""
        now = self._clock()

        def work(tx: Tx) -> runs_api.RunDetail:
            job = found_job(tx, context, user, name)
            origin = tx.runs.origin(job.uid)
            spec = job.spec
            asked = jobs_wire.create_of(spec)
            return runs_api.RunDetail(
                run=wire.run_to(tx.runs.rows(context, [job.uid], now)[0]),
                entry=spec.entry,
                workdir=spec.workdir,
                program=spec.code if spec.code is not None else tx.runs.text(origin.program),
                runtime=spec.runtime,
                workers=asked.workers,
                cpu=asked.cpu,
                gpu=asked.gpu,
                ram=spec.per_worker.ram,
                amounts=asked.amounts,
                args=list(spec.args),
                env=dict(spec.env),
                environment=tx.runs.text(origin.environment),
                env_name=None if spec.environment is None else spec.environment.name,
                env_lock=None if spec.environment is None else spec.environment.lock or None,
                env_image=None if spec.environment is None else spec.environment.image,
                data=[
                    runs_api.RunData(
                        user=use.user,
                        name=use.name,
                        uid=use.uid,
                        size=use.size,
                        digest=use.digest or None,
                        files=use.files,
                        checked=use.checked,
                    )
                    for use in origin.data
                ],
            )

        return await self._board.db.read(work)

    async def update(
        self, context: TenantContext, user: str, name: str, asked: runs_api.RunUpdate, *, actor: str
    ) -> runs_api.ListedRun:
        """Set a run's note and tags."""
        now = self._clock()

        def work(tx: Tx, changes: Changes) -> runs_api.ListedRun:
            job = found_job(tx, context, user, name)
            if asked.note is not UNSET:
                store_note(tx, changes, job, asked.note, actor=actor, now=now)
            if asked.tags is not UNSET:
                tx.runs.set_tags(job.uid, asked.tags)
            return wire.run_to(tx.runs.rows(context, [job.uid], now)[0])

        return await self._board.commit(work)

    async def act(
        self, context: TenantContext, user: str, asked: runs_api.RunsAct
    ) -> list[runs_api.RunOutcome]:
        """Do one thing to many runs; each is answered, and one that is refused does not stop the others."""
        if asked.act in {"tag", "untag"} and not asked.tags:
            raise Refused(Reason.INVALID, msg("which tags? Give at least one in tags"))
        if asked.act in {"cancel", "delete"} and asked.tags:
            raise Refused(Reason.INVALID, msg("{act} takes no tags", act=asked.act))
        names = list(dict.fromkeys(asked.runs))
        if asked.act in {"tag", "untag"}:
            gives = asked.act == "tag"
            return await self._board.db.write(
                lambda tx: _retag(tx, context, user, names, asked.tags, gives=gives)
            )
        do = self._jobs.cancel if asked.act == "cancel" else self._jobs.delete
        done: list[runs_api.RunOutcome] = []
        for at in range(0, len(names), AT_ONCE):
            part = names[at : at + AT_ONCE]
            each = await asyncio.gather(*(do(context, user, name) for name in part), return_exceptions=True)
            for name, result in zip(part, each, strict=True):
                if isinstance(result, Refused):
                    done.append(_outcome(name, result.reason, result.message))
                elif isinstance(result, BaseException):
                    raise result
                else:
                    done.append(_outcome(name))
        return done

    async def curves(
        self,
        context: TenantContext,
        user: str,
        name: str,
        *,
        by: By = "step",
        points: int = 500,
        metric: str | None = None,
        low: float | None = None,
        high: float | None = None,
    ) -> runs_api.RunCurves:
        """Return a run's curves with at most `points` points each."""
        job = await self._board.db.read(lambda tx: found_job(tx, context, user, name))
        maker = CurveMaker(by, metric, low, high)
        since = 0

        def work(tx: Tx, since: int) -> int:
            page, whole = tx.metrics.page(job.uid, since, PAGE)
            maker.add((p.rank, p.time, p.values) for p in page)
            return 0 if whole else page[-1].seq

        while since := await self._board.db.read(lambda tx, since=since: work(tx, since)):  # type: ignore[misc]
            pass
        now = self._clock()

        def made(tx: Tx) -> runs_api.RunCurves:
            rows = tx.runs.rows(context, [job.uid], now)
            if not rows:
                raise not_found("job", name)
            curves = maker.curves(points)
            return runs_api.RunCurves(
                run=wire.run_to(rows[0]), reported=maker.seen, curves=curves, more=maker.more
            )

        return await self._board.db.read(made)

    async def curves_of(
        self, context: TenantContext, user: str, names: str, **asked: Any
    ) -> list[runs_api.RunCurves]:
        """Return the curves of several runs, whose names are separated by commas, one after another."""
        return [await self.curves(context, user, name, **asked) for name in _several(names)]


def _several(names: str) -> list[str]:
    found = list(dict.fromkeys(name for name in names.split(",") if name))
    if len(found) > MOST_COMPARED:
        raise Refused(
            Reason.INVALID,
            msg("{n} runs; at most {most} in one request", n=len(found), most=MOST_COMPARED),
        )
    return found


def _cursor(text: str) -> tuple[str, int]:
    uid, _, at = text.partition(".")
    if len(uid) != 26 or not (at.isascii() and at.isdecimal() and len(at) <= 9):
        raise Refused(Reason.INVALID, msg("cursor must be the value of next of the page before"))
    return uid, int(at)


def _place(uids: Sequence[str], last: str, at: int) -> int:
    """Return where the next page begins: behind the last one shown, which others may have moved, or where it stood."""
    if 0 < at <= len(uids) and uids[at - 1] == last:
        return at
    try:
        return uids.index(last) + 1
    except ValueError:
        return min(at, len(uids))


def _retag(
    tx: Tx, context: TenantContext, user: str, names: Sequence[str], tags: Sequence[str], *, gives: bool
) -> list[runs_api.RunOutcome]:
    done = []
    for name in names:
        job = tx.jobs.find(context, user, name)
        if job is None:
            error = not_found("job", name)
            done.append(_outcome(name, error.reason, error.message))
            continue
        has = tx.runs.tags(job.uid)
        new = list(dict.fromkeys([*has, *tags])) if gives else [tag for tag in has if tag not in tags]
        if len(new) > MOST_TAGS:
            text = msg(
                "{name} would have {n} tags; at most {most}", name=job.title, n=len(new), most=MOST_TAGS
            )
            done.append(_outcome(name, Reason.INVALID, text))
            continue
        tx.runs.set_tags(job.uid, new)
        done.append(_outcome(name))
    return done


def _outcome(name: str, reason: Reason | None = None, text: Message = NOTHING) -> runs_api.RunOutcome:
    return runs_api.RunOutcome(run=name, reason="" if reason is None else reason.value, msg=Text(text))
