"""Tables of stored objects that users own, datasets and models among them, and of apps."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from mlp_hub.store.tables.base import metadata

stored = Table(  # what is stored for people; what it takes of a quota is its row of resource_request
    "stored",
    metadata,
    Column("uid", String(26), primary_key=True),
    Column("kind", String(16), nullable=False),
    Column("tenant", String(50), nullable=False),
    Column("user", String(255), nullable=False),
    Column("name", String(255), nullable=False),
    Column("made_at", Double, nullable=False),
    Column("used", BigInteger, nullable=False),
    Column("granted", BigInteger, nullable=False),
    Column("reserved", BigInteger, nullable=False),
    UniqueConstraint("kind", "user", "name"),
    Index(None, "tenant"),
)

dataset = Table(
    "dataset",
    metadata,
    Column("uid", String(26), ForeignKey("stored.uid"), primary_key=True),
    Column("phase", String(16), nullable=False),
    Column("progress", Integer, nullable=False),
    Column("message", Text, nullable=False),
    Column("source", Text),  # what it is a copy of; none: it is uploaded
    Index(None, "phase"),
)

model = Table(  # a row is a version; NAME@VERSION is the name of what is stored of it
    "model",
    metadata,
    Column("uid", String(26), ForeignKey("stored.uid"), primary_key=True),
    Column("name", String(50), nullable=False),
    Column("version", Integer, nullable=False),
    Column("phase", String(16), nullable=False),
    Column("stage", String(16), nullable=False),
    Column("source", Text, nullable=False),
    Column("lineage", Text, nullable=False),  # what was known when it was registered
    Column("format", Text, nullable=False),
    Column("files", Integer, nullable=False),
    Column("any_files", Boolean, nullable=False),
    Column("message", Text, nullable=False),
    Index(None, "phase"),
)

app = Table(  # its replicas are rows of job; `port` is its own as long as it is there
    "app",
    metadata,
    Column("uid", String(26), primary_key=True),
    Column("user", String(255), nullable=False),
    Column("name", String(50), nullable=False),
    Column("tenant", String(50), nullable=False),
    Column("spec", Text, nullable=False),
    Column("port", Integer, nullable=False),
    Column("phase", String(16), nullable=False),
    Column("made_at", Double, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("wanted", Integer, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("not_before", Double, nullable=False),
    Column("message", Text, nullable=False),
    Column("tail", Text, nullable=False),
    UniqueConstraint("user", "name"),
    UniqueConstraint("port"),
    Index(None, "tenant"),
)

app_key = Table(  # a key of an app; sha256 is the key's, which nobody can read here
    "app_key",
    metadata,
    Column("id", String(26), primary_key=True),
    Column("app", String(26), ForeignKey("app.uid", ondelete="CASCADE"), nullable=False),
    Column("name", String(50), nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("made_by", String(255), nullable=False),
    Column("made_at", Double, nullable=False),
    Column("used_at", Double),
    UniqueConstraint("app", "name"),
    UniqueConstraint("sha256"),
)

app_visit = (
    Table(  # a browser at an app's origin: sha256 is that of its cookie, or of the code that becomes one
        "app_visit",
        metadata,
        Column("sha256", String(64), primary_key=True),
        Column("app", String(26), ForeignKey("app.uid", ondelete="CASCADE"), nullable=False),
        Column("is_code", Boolean, nullable=False),
        Column("masked", LargeBinary, nullable=False),  # the session, which only the cookie gives
        Column("expires_at", Double, nullable=False),
        Index(None, "app"),
        Index(None, "expires_at"),
    )
)

app_use = Table(  # what was asked of an `app`, or of all of a `tenant`; `run` is the process that counts, `before` all earlier ones
    "app_use",
    metadata,
    Column("kind", String(8), primary_key=True),
    Column("name", String(50), primary_key=True),
    Column("run", String(32), nullable=False),
    Column("counted", Text, nullable=False),
    Column("before", Text),
)
