"""Tables of tenants, members and users, and what these have set up: runtimes, environments, secrets, sessions, notices."""

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
    false,
    text,
)

from mlp_hub.store.tables.base import metadata

_RESERVES = text("reserved IS NOT NULL")

user = Table(
    "user",
    metadata,
    Column("name", String(255), primary_key=True),
    Column("number", Integer, nullable=False),  # makes the user's uid; never given twice
    Column("default_tenant", String(50), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("language", String(16), nullable=False, server_default=""),  # empty: as the browser says
    UniqueConstraint("number"),
)

tenant = Table(
    "tenant",
    metadata,
    Column("name", String(50), primary_key=True),
    Column("cpu", BigInteger),  # null: what the nodes have
    Column("gpu", BigInteger),
    Column("ram", BigInteger),
    Column("rom", BigInteger),
    Column("kinds", Text, nullable=False),
    Column("amounts", Text),  # counted dimensions by name; null: none
    Column("weight", Double, nullable=False),
    Column("cohort", String(50)),
    Column("parent", String(50), ForeignKey("tenant.name")),
    Column("borrowing_limit", Text),
    Column("lending_limit", Text),
    Column("reserved", Text),
    Column("queue_order", String(16), nullable=False),
    Column("isolation", String(16), nullable=False),
    Column("network", String(16)),  # null: as the hub's settings say
    Column("description", Text, nullable=False),
    Column("settings", Text),  # the other fields, which no query looks at, as JSON; null: all as they come
    Column("created_at", Double, nullable=False),
    Column("idle_since", Double),
    Column("lowered", Text),  # what of its guarantee holds while it is lowered; null: all that is configured
    Index(None, "parent"),  # whoever takes something asks for the tenants that it shares with
    Index(None, "cohort"),
    # and whether anybody reserves anything: mostly nobody does
    Index("ix_tenant_reserves", "name", sqlite_where=_RESERVES, postgresql_where=_RESERVES),
)

quota_request = Table(  # what tenants asked for, with the answers
    "quota_request",
    metadata,
    Column("uid", String(27), primary_key=True),
    Column("tenant", String(50), ForeignKey("tenant.name", ondelete="CASCADE"), nullable=False),
    Column("user", String(255), nullable=False),
    Column("asked_at", Double, nullable=False),
    Column("amounts", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("phase", String(16), nullable=False),
    Column("decided_by", String(255)),
    Column("decided_at", Double),
    Column("word", Text, nullable=False),
    Index(None, "tenant", "uid"),
    Index(None, "phase"),
)

join_request = Table(  # who asks for a place where; gone once that is decided
    "join_request",
    metadata,
    Column("tenant", String(50), ForeignKey("tenant.name", ondelete="CASCADE"), primary_key=True),
    Column("user", String(255), primary_key=True),
    Column("asked_at", Double, nullable=False),
    Column("note", Text, nullable=False),
    Index(None, "user"),
)

runtime = Table(  # ways to start ranks that tenants registered
    "runtime",
    metadata,
    Column("tenant", String(50), ForeignKey("tenant.name", ondelete="CASCADE"), primary_key=True),
    Column("name", String(50), primary_key=True),
    Column("definition", Text, nullable=False),
    Column("state", String(16), nullable=False),
    Column("changed_by", String(255), nullable=False),
    Column("changed_at", Double, nullable=False),
)

relocation = Table(  # the last one of each tenant
    "relocation",
    metadata,
    Column("tenant", String(50), ForeignKey("tenant.name", ondelete="CASCADE"), primary_key=True),
    Column("phase", String(16), nullable=False),
    Column("old_grade", String(16), nullable=False),
    Column("old_root", Text, nullable=False),
    Column("new_grade", String(16), nullable=False),
    Column("new_root", Text, nullable=False),
    Column("asked_by", String(255), nullable=False),
    Column("asked_at", Double, nullable=False),
    Column("total", BigInteger, nullable=False),
    Column("message", Text, nullable=False),
    Column("ended_at", Double),
)

member = Table(
    "member",
    metadata,
    Column("tenant", String(50), ForeignKey("tenant.name", ondelete="CASCADE"), primary_key=True),
    Column("user", String(255), primary_key=True),
    Column("role", String(16), nullable=False),
    Column("source", String(16), nullable=False),
    Index(None, "user"),
)

browser_session = (
    Table(  # sha256 is the cookie's, and the token is masked with a key that only the cookie gives
        "browser_session",
        metadata,
        Column("sha256", String(64), primary_key=True),
        Column("user", String(255), nullable=False),
        Column("masked", LargeBinary, nullable=False),
        Column("expires_at", Double, nullable=False),
        Index(None, "expires_at"),
    )
)

token_use = Table(  # token is the hub's id of one, and `at` since when it comes from that address
    "token_use",
    metadata,
    Column("token", String(64), primary_key=True),
    Column("user", String(255), nullable=False),
    Column("address", String(64), nullable=False),
    Column("at", Double, nullable=False),
    Index(None, "user"),
    Index(None, "at"),
)

service_account = Table(  # a user that is its tenant's; the row stays when it is ended
    "service_account",
    metadata,
    Column("user", String(255), primary_key=True),
    Column("tenant", String(50), nullable=False),
    Column("made_by", String(255), nullable=False),
    Column("made_at", Double, nullable=False),
    Column("ended", Boolean, nullable=False),
    Index(None, "tenant"),
)

service_token = Table(  # token is the hub's id; `until` is set when another takes its place
    "service_token",
    metadata,
    Column("token", String(64), primary_key=True),
    Column("user", String(255), nullable=False),
    Column("until", Double),
    Index(None, "user"),
)

secret = (
    Table(  # of a tenant or of a user, the other one is empty; `sealed` is of no use without the hub's key
        "secret",
        metadata,
        Column("tenant", String(50), primary_key=True),
        Column("user", String(255), primary_key=True),
        Column("name", String(50), primary_key=True),
        Column("keys", Text, nullable=False),
        Column("sealed", LargeBinary, nullable=False),
        Column("changed_at", Double, nullable=False),
        Column("changed_by", String(255), nullable=False),
    )
)

environment = Table(  # `files`: the uid of what is stored of its lock; several of a tenant may have the same
    "environment",
    metadata,
    Column("uid", String(26), primary_key=True),
    Column("tenant", String(50), nullable=False),
    Column("name", String(50), nullable=False),
    Column("folded", String(50), nullable=False),  # names that differ in case only are one
    Column("user", String(255), nullable=False),
    Column("phase", String(16), nullable=False),
    Column("requirements", Text, nullable=False),
    Column("lock", Text, nullable=False),
    Column("files", String(26), nullable=False),
    Column("log", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("made_at", Double, nullable=False),
    Column("image", String(500)),  # of containers; null: it is of packages
    UniqueConstraint("tenant", "folded"),
    Index(None, "phase"),
    Index(None, "files"),
)

notice_choice = Table(  # what people want to be told in their browser, and when not to be told anything
    "notice_choice",
    metadata,
    Column("user", String(255), primary_key=True),
    Column("browser", Text, nullable=False),
    Column("quiet_begin", Integer),  # minutes of the day; null: it is never quiet
    Column("quiet_end", Integer),
    Column("zone", String(64), nullable=False),
)

notice_channel = Table(  # where else they want to be told; `sent` is the newest notice that went there
    "notice_channel",
    metadata,
    Column("user", String(255), primary_key=True),
    Column("name", String(50), primary_key=True),
    Column("kind", String(16), nullable=False),
    Column("shown", String(255), nullable=False),
    Column("events", Text, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("sent", Integer, nullable=False),
    Column("changed_at", Double, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("next_at", Double, nullable=False),
    Column("told_at", Double),
    Column("trouble", Text),
)

notice = Table(  # what is to be told, stored with what it tells of; a number is never given twice, for channels count by it
    "notice",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("user", String(255), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("job", String(26), nullable=False),
    Column("name", String(50), nullable=False),
    Column("run", Integer, nullable=False),
    Column("tenant", String(50), nullable=False),
    Column("at", Double, nullable=False),
    Column("text", Text, nullable=False),
    Index(None, "user", "id"),
    Index(None, "at"),
    sqlite_autoincrement=True,
)

announcement = Table(  # what administrators tell everybody, or the members of their tenant
    "announcement",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("tenant", String(50), nullable=False),  # empty: everybody
    Column("level", String(16), nullable=False),
    Column("text", Text, nullable=False),
    Column("begins_at", Double, nullable=False),
    Column("ends_at", Double, nullable=False),
    Column("made_by", String(255), nullable=False),
    Column("made_at", Double, nullable=False),
    Index(None, "ends_at"),
    sqlite_autoincrement=True,
)

alert = Table(  # conditions of the platform and of tenants that hold, and those that are over
    "alert",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("rule", String(64), nullable=False),
    Column("labels", Text, nullable=False),
    Column("tenant", String(50), nullable=False),  # empty: the platform
    Column("state", String(16), nullable=False),
    Column("value", Double, nullable=False),
    Column("since", Double, nullable=False),
    Column("fired_at", Double),
    Column("resolved_at", Double),
    Column("told_platform", Boolean, nullable=False),
    Column("told_tenant", Boolean, nullable=False),
    Column("again_platform", Boolean, nullable=False, server_default=false()),
    Column("again_tenant", Boolean, nullable=False, server_default=false()),
    Index(None, "resolved_at"),
    sqlite_autoincrement=True,
)

alert_silence = Table(  # alerts of which nobody is told for a while
    "alert_silence",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("rule", String(64), nullable=False),  # empty: each
    Column("tenant", String(50), nullable=False),  # empty: any
    Column("of_team", Boolean, nullable=False),
    Column("reason", Text, nullable=False),
    Column("made_by", String(255), nullable=False),
    Column("made_at", Double, nullable=False),
    Column("ends_at", Double, nullable=False),
    sqlite_autoincrement=True,
)
