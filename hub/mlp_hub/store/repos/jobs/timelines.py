"""Timeline steps and tokens of each job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from sqlalchemy import ColumnElement, bindparam, delete, func, literal_column, select

from mlp_hub.store import codec
from mlp_hub.store.records import JobEvent
from mlp_hub.store.repos.base import Repo, chunks
from mlp_hub.store.rows import Rows
from mlp_hub.store.tables import job_event, job_token
from mlp_language.message import Message

_steps = Rows(JobEvent, job_event, beside=("job",))
_NOUGHT: ColumnElement[int] = literal_column("0")
_ONE: ColumnElement[int] = literal_column("1")


def _event(row: int = 0) -> dict[str, Any]:
    """Return the values of a step that is appended, as the parameters of a row: uid, time, kind, message, reason."""
    given: list[Any] = [bindparam(f"f{k}_{row}") for k in range(5)]
    uid = given.pop(0)
    last = select(func.coalesce(func.max(job_event.c.seq), _NOUGHT) + _ONE).where(job_event.c.job == uid)
    named = zip(("time", "kind", "message", "reason"), given, strict=True)
    return {"job": uid, "seq": last.scalar_subquery(), **dict(named)}


def _add_events(rows: int) -> Any:
    """Return the statement that appends steps, each to the timeline of another job."""
    return job_event.insert().values([_event(i) for i in range(rows)])


_ADD_EVENT = job_event.insert().values(_event()).returning(job_event.c.seq)
"""Made once: every step of every job comes by here."""


_ADD_TOKEN = job_token.insert()
_REVOKE = delete(job_token).where(job_token.c.job == bindparam("of"))


class Events(Repo):
    """The timelines of jobs."""

    __slots__ = ()

    def add(self, job: str, time: float, kind: str, message: Message, reason: str | None = None) -> JobEvent:
        """Append a step to the job's timeline and return it with its number."""
        values = (job, time, kind, codec.message_text(message), reason)
        row = self._first_quickly(_ADD_EVENT, **{f"f{k}_0": v for k, v in enumerate(values)})
        assert row is not None  # noqa: S101 - it was just stored
        return JobEvent(row[0], time, kind, message, reason)

    def add_many(self, steps: Sequence[tuple[str, float, str, Message, str | None]]) -> None:
        """Append steps (uid, time, kind, message, reason) to the timelines of many jobs, each job's in order."""
        # a statement that looks for the last number sees none of its own rows
        rounds: list[list[tuple[str, float, str, str, str | None]]] = []
        passed: dict[str, int] = {}
        for job, time, kind, message, reason in steps:
            at = passed.get(job, 0)
            passed[job] = at + 1
            if at == len(rounds):
                rounds.append([])
            rounds[at].append((job, time, kind, codec.message_text(message), reason))
        for rows in rounds:
            self._store_lots(_add_events, rows)

    def since(self, job: str, seq: int = 0, limit: int = 1000) -> list[JobEvent]:
        """Return the steps after number `seq`, in order."""
        e = job_event
        query = select(e).where(e.c.job == job, e.c.seq > seq).order_by(e.c.seq).limit(limit)
        return self._list(_steps, query)

    def last(self, job: str, most: int) -> list[JobEvent]:
        """Return the last `most` steps, in order."""
        e = job_event
        query = select(e).where(e.c.job == job).order_by(e.c.seq.desc()).limit(most)
        return self._list(_steps, query)[::-1]

    def of_kinds(self, jobs: Iterable[str], kinds: Iterable[str]) -> Iterator[tuple[str, list[JobEvent]]]:
        """Yield (uid, its steps of these kinds, in order) of each of the jobs that has any."""
        e = job_event
        wanted = tuple(kinds)
        for part in chunks(jobs):
            query = select(e).where(e.c.job.in_(part), e.c.kind.in_(wanted)).order_by(e.c.job, e.c.seq)
            for job, rows in groupby(self._c.execute(query), key=lambda r: str(r.job)):
                yield job, [_steps.of(row) for row in rows]

    def trim(self, job: str, keep: int) -> int:
        """Remove all but the last `keep` steps, so that a job that fails for ever stays small."""
        e = job_event
        last = self._c.scalar(select(func.max(e.c.seq)).where(e.c.job == job)) or 0
        return self._delete(e, e.c.job == job, e.c.seq <= last - keep)


class Tokens(Repo):
    """Job tokens, by their SHA-256 (hex); the tokens themselves are stored nowhere."""

    __slots__ = ()

    def add(self, sha256: str, job: str, now: float) -> None:
        """Store a token of the job (its uid)."""
        self._insert_quickly(_ADD_TOKEN, sha256=sha256, job=job, created_at=now)

    def job_of(self, sha256: str) -> str | None:
        """Return the uid of the job that this token belongs to."""
        found: str | None = self._c.scalar(select(job_token.c.job).where(job_token.c.sha256 == sha256))
        return found

    def add_many(self, tokens: Sequence[tuple[str, str]], now: float) -> None:
        """Store tokens (SHA-256, uid of the job)."""
        rows = [{"sha256": sha256, "job": job, "created_at": now} for sha256, job in tokens]
        self._insert_all(job_token, rows)

    def revoke_many(self, jobs: Sequence[str]) -> None:
        """Remove all tokens of these jobs in one statement."""
        if jobs:
            self._many(_REVOKE, [{"of": job} for job in jobs])

    def revoke(self, job: str) -> int:
        """Remove all tokens of the job; return how many."""
        return self._many(_REVOKE, [{"of": job}])
