"""Tables of the hub itself: keys of requests, the audit log, settings, the lease and the schema."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    text,
)

from mlp_hub.store.tables.base import metadata

_CHECKPOINT = text("time IS NOT NULL")

idempotency_key = Table(
    "idempotency_key",
    metadata,
    Column("user", String(255), primary_key=True),
    Column("key", String(255), primary_key=True),
    Column("fingerprint", String(64), nullable=False),
    Column("answer", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Index(None, "created_at"),
)

audit = Table(
    "audit",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("time", Double, nullable=False),
    Column("actor", String(255), nullable=False),
    Column("action", String(64), nullable=False),
    Column("object", String(255), nullable=False),
    Column("tenant", String(50)),
    Column("detail", Text, nullable=False),
    Index(None, "tenant", "id"),
    Index(None, "actor", "id"),
    Index(None, "action", "id"),
    Index(None, "object", "id"),
    Index(None, "time"),
)

audit_link = Table(  # the chain of hashes over the audit log (`domain.audit_chain`)
    "audit_link",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("entry", Integer, nullable=False),
    Column("again", Boolean, nullable=False),  # a repetition was counted in the entry
    Column("time", Double),  # of a checkpoint; null: the link of an entry
    Column("digest", LargeBinary, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Index(None, "time", sqlite_where=_CHECKPOINT, postgresql_where=_CHECKPOINT),
)

setting = Table(
    "setting",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)

lease = Table(  # who decides; every transaction of decisions checks it
    "lease",
    metadata,
    Column("name", String(32), primary_key=True),
    Column("holder", String(255), nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("epoch", BigInteger, nullable=False, server_default="0"),
)

schema_version = Table(  # Alembic's own table, so that the service can check it without Alembic
    "alembic_version",
    metadata,
    Column("version_num", String(32), primary_key=True),
)
