"""The small tables: events, tokens, idempotency keys, usage, settings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from sqlalchemy import ColumnElement, bindparam, delete, func, literal_column, select

from mlp_hub.domain.resources import Resources
from mlp_hub.store import codec
from mlp_hub.store.engine import LIFE_LOCKS, WRITE_LOCK
from mlp_hub.store.records import (
    DecayedUsage,
    JobEvent,
    Lease,
    Remembered,
    UsageSample,
)
from mlp_hub.store.repos.base import Repo, chunks
from mlp_hub.store.tables import (
    idempotency_key,
    job_event,
    job_token,
    setting,
    usage,
    usage_sample,
)
from mlp_hub.store.tables import lease as lease_table
from mlp_language.message import Message

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


_REVOKE = delete(job_token).where(job_token.c.job == bindparam("of"))


def _event_of(row: Any) -> JobEvent:
    return JobEvent(row.seq, row.time, row.kind, codec.message_of(row.message), row.reason)


class Events(Repo):
    """The timelines of jobs."""

    __slots__ = ()

    def add(self, job: str, time: float, kind: str, message: Message, reason: str | None = None) -> JobEvent:
        """Append a step to the job's timeline and return it with its number."""
        values = (job, time, kind, codec.message_text(message), reason)
        seq = self._few(_ADD_EVENT, **{f"f{k}_0": v for k, v in enumerate(values)}).scalar_one()
        return JobEvent(seq, time, kind, message, reason)

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
            for _ in self._in_lots(_add_events, rows):
                pass

    def since(self, job: str, seq: int = 0, limit: int = 1000) -> list[JobEvent]:
        """Return the steps after number `seq`, in order."""
        e = job_event
        query = select(e).where(e.c.job == job, e.c.seq > seq).order_by(e.c.seq).limit(limit)
        return [_event_of(r) for r in self._c.execute(query)]

    def last(self, job: str, most: int) -> list[JobEvent]:
        """Return the last `most` steps, in order."""
        e = job_event
        query = select(e).where(e.c.job == job).order_by(e.c.seq.desc()).limit(most)
        return [_event_of(r) for r in self._c.execute(query)][::-1]

    def of_kinds(self, jobs: Iterable[str], kinds: Iterable[str]) -> Iterator[tuple[str, list[JobEvent]]]:
        """Yield (uid, its steps of these kinds, in order) of each of the jobs that has any."""
        e = job_event
        wanted = tuple(kinds)
        for part in chunks(jobs):
            query = select(e).where(e.c.job.in_(part), e.c.kind.in_(wanted)).order_by(e.c.job, e.c.seq)
            for job, rows in groupby(self._c.execute(query), key=lambda r: str(r.job)):
                yield job, [_event_of(r) for r in rows]

    def trim(self, job: str, keep: int) -> int:
        """Remove all but the last `keep` steps, so that a job that fails for ever stays small."""
        e = job_event
        last = self._c.scalar(select(func.max(e.c.seq)).where(e.c.job == job)) or 0
        return int(self._c.execute(delete(e).where(e.c.job == job, e.c.seq <= last - keep)).rowcount)


class Tokens(Repo):
    """Job tokens, by their SHA-256 (hex); the tokens themselves are stored nowhere."""

    __slots__ = ()

    def add(self, sha256: str, job: str, now: float) -> None:
        """Store a token of the job (its uid)."""
        self._c.execute(job_token.insert(), {"sha256": sha256, "job": job, "created_at": now})

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
        return int(self._c.execute(delete(job_token).where(job_token.c.job == job)).rowcount)


class Idempotency(Repo):
    """Answers by key and user."""

    __slots__ = ()

    def get(self, user: str, key: str) -> Remembered | None:
        """Return what is remembered of this key."""
        k = idempotency_key
        row = self._c.execute(select(k).where(k.c.user == user, k.c.key == key)).first()
        return None if row is None else Remembered(row.fingerprint, row.answer)

    def put(self, user: str, key: str, remembered: Remembered, now: float) -> None:
        """Remember an answer."""
        values = {"fingerprint": remembered.fingerprint, "answer": remembered.answer, "created_at": now}
        self._c.execute(
            self._insert(idempotency_key)
            .values(user=user, key=key, **values)
            .on_conflict_do_update(index_elements=["user", "key"], set_=values)
        )

    def delete_before(self, before: float) -> int:
        """Forget keys made before; return how many."""
        k = idempotency_key
        return int(self._c.execute(delete(k).where(k.c.created_at < before)).rowcount)


class Usages(Repo):
    """Use by tenants over time."""

    __slots__ = ()

    def all(self) -> dict[str, DecayedUsage]:
        """Return the decayed usage of each account that has any: of a tenant, or of a member as TENANT/USER."""
        return {r.account: DecayedUsage(r.value, r.as_of) for r in self._c.execute(select(usage))}

    def put_many(self, values: Mapping[str, DecayedUsage]) -> None:
        """Store the decayed usage of many accounts in one statement."""
        if values:
            rows = [{"account": a, "value": v.value, "as_of": v.as_of} for a, v in values.items()]
            self._c.execute(self._upsert(usage, ("account",)), rows)

    def sample(self, samples: Mapping[str, UsageSample]) -> None:
        """Store what tenants hold now, for their curves over time."""
        rows = [
            {
                "tenant": tenant,
                "time": sample.time,
                "cpu": sample.amount.cpu,
                "gpu": sample.amount.gpu,
                "ram": sample.amount.ram,
                "rom": sample.amount.rom,
                "amounts": codec.pairs_text(sample.amount.amounts),
                "running": sample.running,
                "waiting": sample.waiting,
            }
            for tenant, sample in samples.items()
        ]
        self._insert_all(usage_sample, rows, ("tenant", "time"), replaces=True)

    def history(self, tenant: str, since: float = 0, limit: int = 2000) -> list[UsageSample]:
        """Return the last `limit` samples of a tenant taken after `since`, in order of time."""
        s = usage_sample
        query = select(s).where(s.c.tenant == tenant, s.c.time > since).order_by(s.c.time.desc()).limit(limit)
        samples = [
            UsageSample(
                r.time,
                Resources(r.cpu, r.gpu, r.ram, r.rom, amounts=codec.pairs_of(r.amounts)),
                r.running,
                r.waiting,
            )
            for r in self._c.execute(query)
        ]
        return samples[::-1]

    def delete_before(self, before: float) -> int:
        """Forget samples taken before, and members who held nothing since; return how many samples."""
        self._c.execute(delete(usage).where(usage.c.as_of < before, usage.c.account.contains("/")))
        return int(self._c.execute(delete(usage_sample).where(usage_sample.c.time < before)).rowcount)

    def remove(self, tenant: str) -> None:
        """Forget a tenant that was deleted: another one of its name starts from nothing."""
        of_members = usage.c.account.startswith(f"{tenant}/", autoescape=True)
        self._c.execute(delete(usage).where((usage.c.account == tenant) | of_members))
        self._c.execute(delete(usage_sample).where(usage_sample.c.tenant == tenant))


class SettingsRepo(Repo):
    """Values of the hub that live in its database."""

    __slots__ = ()

    def get(self, key: str) -> Any:
        """Return the value, or None."""
        text = self._c.scalar(select(setting.c.value).where(setting.c.key == key))
        return None if text is None else codec.loads(text)

    def get_all(self, keys: Collection[str]) -> dict[str, Any]:
        """Return those of these values that are stored."""
        found: dict[str, Any] = {}
        for part in chunks(keys):
            query = select(setting).where(setting.c.key.in_(part))
            found |= {row.key: codec.loads(row.value) for row in self._c.execute(query)}
        return found

    def beginning(self, prefix: str) -> dict[str, Any]:
        """Return all values whose key begins so."""
        query = select(setting).where(setting.c.key.startswith(prefix, autoescape=True))
        return {row.key: codec.loads(row.value) for row in self._c.execute(query)}

    def drop(self, key: str) -> None:
        """Forget a value; nothing where there is none."""
        self._c.execute(delete(setting).where(setting.c.key == key))

    def put(self, key: str, value: object) -> None:
        """Store a value that JSON can hold."""
        text = codec.dumps(value)
        self._c.execute(
            self._insert(setting)
            .values(key=key, value=text)
            .on_conflict_do_update(index_elements=["key"], set_={"value": text})
        )


class Leases(Repo):
    """Holders of leases; a write transaction excludes all others, so a row read here holds until its commit."""

    __slots__ = ()

    def get(self, name: str) -> Lease | None:
        """Return the lease as it is stored, whether it is over or not."""
        row = self._few(_LEASE, the_name=name).first()
        return None if row is None else Lease(row.holder, row.expires_at, row.epoch)

    def put(self, name: str, lease: Lease) -> None:
        """Store a lease."""
        values = {
            "name": name,
            "holder": lease.holder,
            "expires_at": lease.expires_at,
            "epoch": lease.epoch,
        }
        self._c.execute(self._upsert(lease_table, ("name",)), values)

    def show_life(self, lease: Lease) -> None:
        """Let the database tell others that this lease's holder lives, as long as this connection does."""
        if self._c.dialect.name == "postgresql" and self._c.info.get(_LIFE) != lease.epoch:
            self._c.exec_driver_sql(_TAKE_LIFE, _life_of(lease))
            self._c.info[_LIFE] = lease.epoch

    def is_orphan(self, lease: Lease) -> bool:
        """Whether the database knows that nobody holds this lease any more; SQLite never does."""
        if self._c.dialect.name != "postgresql":
            return False
        return not self._c.exec_driver_sql(f"SELECT EXISTS ({_ALIVE})", _life_of(lease)).scalar()

    def end_sessions(self, name: str, lease: Lease) -> int:
        """End the sessions of a lease's holder, with their open transactions; return their number.

        It does nothing if the lease has changed. Only sessions of the same database role can be ended.
        """
        if self._c.dialect.name != "postgresql":
            return 0
        found = self.get(name)
        if found != lease:
            return 0
        ended = f"SELECT pg_terminate_backend(l.pid) FROM ({_ALIVE}) l WHERE l.pid <> pg_backend_pid()"  # noqa: S608 - ours
        return len(self._c.exec_driver_sql(ended, _life_of(lease)).fetchall())

    def end_blocker(self, older_s: float) -> int:
        """End the session that keeps all other writers away for longer than this; return how many that were.

        It is one of a process that hangs, or was cut off: no transaction that writes is long.
        """
        if self._c.dialect.name != "postgresql":
            return 0
        key = (WRITE_LOCK >> 32, WRITE_LOCK & 0xFFFFFFFF, older_s)
        return len(self._c.exec_driver_sql(_END_BLOCKER, key).fetchall())


def _life_of(lease: Lease) -> tuple[int, int]:
    return LIFE_LOCKS, lease.epoch % 2**31


_LIFE = "life"
_TAKE_LIFE = "SELECT pg_try_advisory_lock_shared(%s, %s)"
_HERE = "locktype = 'advisory' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
_ALIVE = f"SELECT pid FROM pg_locks WHERE {_HERE} AND objsubid = 2 AND classid = %s::bigint::oid AND objid = %s::bigint::oid"  # noqa: S608 - ours
_END_BLOCKER = (
    "SELECT pg_terminate_backend(a.pid) FROM pg_locks l JOIN pg_stat_activity a USING (pid) "  # noqa: S608 - ours
    f"WHERE {_HERE} AND objsubid = 1 AND classid = %s::bigint::oid AND objid = %s::bigint::oid "
    "AND a.xact_start < clock_timestamp() - make_interval(secs => %s) AND a.pid <> pg_backend_pid()"
)


_LEASE = select(lease_table).where(lease_table.c.name == bindparam("the_name"))
