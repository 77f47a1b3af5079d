"""Tables of amounts: the ledger, use and samples over time, budgets, caps of members, booked windows, drained nodes and idle servers."""

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
)

from mlp_hub.store.tables.base import metadata

member_cap = Table(  # how much a member may hold; without a name: each who has no row
    "member_cap",
    metadata,
    Column("tenant", String(50), ForeignKey("tenant.name", ondelete="CASCADE"), primary_key=True),
    Column("user", String(255), primary_key=True),
    Column("cpu", BigInteger),
    Column("gpu", BigInteger),
    Column("jobs", Integer),
)

booking = Table(  # windows for which capacity is kept free
    "booking",
    metadata,
    Column("tenant", String(50), ForeignKey("tenant.name", ondelete="CASCADE"), primary_key=True),
    Column("name", String(50), primary_key=True),
    Column("starts_at", Double, nullable=False),
    Column("ends_at", Double, nullable=False),
    Column("amount", Text, nullable=False),
    Column("made_by", String(255), nullable=False),
    Column("made_at", Double, nullable=False),
    Column("short", Text),  # null when all of it can be held
    Index(None, "ends_at"),
)

resource_request = Table(
    "resource_request",
    metadata,
    Column("applier", String(8), primary_key=True),
    Column("id", String(255), primary_key=True),
    Column("kind", String(8), nullable=False),  # request, or release (an anonymous one)
    Column("tenant", String(50), nullable=False),
    Column("cpu", BigInteger, nullable=False),
    Column("gpu", BigInteger, nullable=False),
    Column("ram", BigInteger, nullable=False),
    Column("rom", BigInteger, nullable=False),
    Column("kinds", Text),  # null when no gpu kind is named
    Column("amounts", Text),  # counted dimensions by name; null: none
    Column("phase", String(16), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double),
    Column("node", String(255)),
    Column("shares", Text),  # null when it takes no node's capacity
    Column("last", String(8), nullable=False),
    Column("holder", Text, nullable=False),
    Column("user", String(255), nullable=False),
    Column("environment", String(26)),  # the one that a notebook server is started with
    Column("since", Double),  # since when it holds this amount; of no meaning where it holds nothing
    Column("counted", Double),  # the accounting has it up to here; null: from `since` on nothing
    Index(None, "tenant", "phase"),
    Index(None, "phase", "expires_at"),
)

ledger_span = Table(  # an amount that was held for a time, until the accounting has added it up
    "ledger_span",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("applier", String(8), nullable=False),
    Column("tenant", String(50), nullable=False),
    Column("user", String(255), nullable=False),
    Column("holder", Text, nullable=False),
    Column("cpu", BigInteger, nullable=False),
    Column("gpu", BigInteger, nullable=False),
    Column("ram", BigInteger, nullable=False),
    Column("rom", BigInteger, nullable=False),
    Column("kinds", Text),
    Column("shares", Text),  # where gpus have no kind: of which node they are
    Column("attempt", String(40)),  # of a job
    Column("begins", Double, nullable=False),
    Column("counted", Double),
    Column("ends", Double, nullable=False),
    Column("cpu_used", BigInteger),  # means, of what was measured
    Column("ram_used", BigInteger),
    Column("ran_from", Double),
    Column(
        "cpu_reported", Boolean
    ),  # the means are the job's own report; null where there are none, or nobody knows it
    Column("ram_reported", Boolean),
)

usage_total = Table(  # sums of spans; `grain` is day, month, name or run (a day by either), `period` its number since 1970
    "usage_total",
    metadata,
    Column("grain", String(8), primary_key=True),
    Column("period", Integer, primary_key=True, autoincrement=False),
    Column("tenant", String(100), primary_key=True),
    Column("user", String(255), primary_key=True),
    Column("work", String(16), primary_key=True),
    Column("name", String(255), primary_key=True),
    Column("gpu_kind", String(255), primary_key=True),
    Column("cpu", BigInteger, nullable=False),
    Column("gpu", BigInteger, nullable=False),
    Column("ram", BigInteger, nullable=False),
    Column("rom", BigInteger, nullable=False),
    Column("cpu_used", BigInteger, nullable=False),
    Column("cpu_measured", BigInteger, nullable=False),
    Column("ram_used", BigInteger, nullable=False),
    Column("ram_measured", BigInteger, nullable=False),
    *(
        Column(name, BigInteger, nullable=False, server_default="0")
        for name in ("cpu_reported", "cpu_unknown")
    ),
    *(
        Column(name, BigInteger, nullable=False, server_default="0")
        for name in ("ram_reported", "ram_unknown")
    ),
    sqlite_with_rowid=False,
)

team_budget = (
    Table(  # money that a tenant may spend each month, or in one period; days are numbers since 1970
        "team_budget",
        metadata,
        Column("tenant", String(50), ForeignKey("tenant.name", ondelete="CASCADE"), primary_key=True),
        Column("amount", BigInteger, nullable=False),  # in millionths of the currency
        Column("currency", String(3), nullable=False),
        Column("levels", Text, nullable=False),
        Column("stops", Boolean, nullable=False),
        Column("begins", Integer),
        Column("ends", Integer),
        Column("seen", Integer),  # first day of the period that was looked at last
    )
)

budget_notice = Table(  # levels of budgets that people were told of, each once in a period
    "budget_notice",
    metadata,
    Column("tenant", String(50), ForeignKey("team_budget.tenant", ondelete="CASCADE"), primary_key=True),
    Column("period", Integer, primary_key=True, autoincrement=False),
    Column("level", Integer, primary_key=True, autoincrement=False),
)

usage = Table(  # the history that fair share looks at, one decayed number per account: TENANT, or TENANT/USER of a member
    "usage",
    metadata,
    Column("account", String(306), primary_key=True),
    Column("value", Double, nullable=False),
    Column("as_of", Double, nullable=False),
)

usage_sample = Table(  # what a tenant held at a moment, for curves over time
    "usage_sample",
    metadata,
    Column("tenant", String(50), primary_key=True),
    Column("time", Double, primary_key=True),
    Column("cpu", BigInteger, nullable=False),
    Column("gpu", BigInteger, nullable=False),
    Column("ram", BigInteger, nullable=False),
    Column("rom", BigInteger, nullable=False),
    Column("amounts", Text),  # counted dimensions by name; null: none
    Column("running", Integer, nullable=False),
    Column("waiting", Integer, nullable=False),
)

over_time = (
    Table(  # sums of samples by spans of `grain` seconds since the epoch; of the cluster with an empty tenant
        "over_time",
        metadata,
        Column("grain", Integer, primary_key=True, autoincrement=False),
        Column("number", Integer, primary_key=True, autoincrement=False),
        Column("tenant", String(50), primary_key=True),
        Column("sums", LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )
)

node_drain = Table(  # nodes that an administrator took out of service
    "node_drain",
    metadata,
    Column("node", String(253), primary_key=True),
    Column("reason", String(500), nullable=False),
    Column("actor", String(255), nullable=False),
    Column("since", Double, nullable=False),
    Column("evict", Boolean, nullable=False),  # what runs there is moved away
)

idle_server_policy = Table(  # when a team's idle notebook servers end; without a row: never
    "idle_server_policy",
    metadata,
    Column("tenant", String(50), ForeignKey("tenant.name", ondelete="CASCADE"), primary_key=True),
    Column("after_s", Integer, nullable=False),
    Column("grace_s", Integer, nullable=False),
)

idle_server = Table(  # countdowns of notebook servers that a policy counts
    "idle_server",
    metadata,
    Column("user", String(255), primary_key=True),
    Column("server", String(255), primary_key=True),
    Column("tenant", String(50), nullable=False),
    Column("began", Double, nullable=False),
    Column("idle_s", Double, nullable=False),
    Column("left_s", Double),
    Column("kept_s", Double, nullable=False),
)

idle_job_policy = Table(  # when a team's jobs that hold GPUs without use end; without a row: never
    "idle_job_policy",
    metadata,
    Column("tenant", String(50), ForeignKey("tenant.name", ondelete="CASCADE"), primary_key=True),
    Column("after_s", Integer, nullable=False),
    Column("grace_s", Integer, nullable=False),
)

idle_told = Table(  # when a team's admins were last told of its idle servers and jobs
    "idle_told",
    metadata,
    Column("tenant", String(50), ForeignKey("tenant.name", ondelete="CASCADE"), primary_key=True),
    Column("at", Double, nullable=False),
)
