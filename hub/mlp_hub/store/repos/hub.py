"""The hub's own state: answers by idempotency key, values, leases."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from typing import Any

from sqlalchemy import bindparam, select

from mlp_hub.store import codec
from mlp_hub.store.engine import LIFE_LOCKS, WRITE_LOCK
from mlp_hub.store.records import Lease, Remembered
from mlp_hub.store.repos.base import Repo, chunks
from mlp_hub.store.rows import Rows
from mlp_hub.store.schema import check_fits
from mlp_hub.store.tables import idempotency_key as k
from mlp_hub.store.tables import lease as lease_table
from mlp_hub.store.tables import setting

_answers = Rows(Remembered, k, beside=("user", "key", "created_at"))
_leases = Rows(Lease, lease_table, beside=("name",))


class Idempotency(Repo):
    """Answers by key and user."""

    __slots__ = ()

    def get(self, user: str, key: str) -> Remembered | None:
        """Return what is remembered of this key."""
        return self._one(_answers, select(k).where(k.c.user == user, k.c.key == key))

    def put(self, user: str, key: str, remembered: Remembered, now: float) -> None:
        """Remember an answer."""
        self._store(_answers, remembered, user=user, key=key, created_at=now)

    def delete_before(self, before: float) -> int:
        """Forget keys made before; return how many."""
        return self._delete(k, k.c.created_at < before)


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
        self._delete(setting, setting.c.key == key)

    def put(self, key: str, value: object) -> None:
        """Store a value that JSON can hold."""
        self._c.execute(self._upsert(setting, ("key",)), {"key": key, "value": codec.dumps(value)})


class Leases(Repo):
    """Holders of leases; a write transaction excludes all others, so a row read here holds until its commit."""

    __slots__ = ()

    def get(self, name: str) -> Lease | None:
        """Return the lease as it is stored, whether it is over or not."""
        row = self._first_quickly(_LEASE, the_name=name)
        return None if row is None else Lease(*row)

    def put(self, name: str, lease: Lease) -> None:
        """Store a lease."""
        self._store(_leases, lease, name=name)

    def check_tables(self) -> None:
        """Raise `WrongSchema` unless this program works with the tables: a leader writes to all of them."""
        check_fits(self._c)

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


_LEASE = select(*(lease_table.c[each.name] for each in fields(Lease))).where(
    lease_table.c.name == bindparam("the_name")
)
