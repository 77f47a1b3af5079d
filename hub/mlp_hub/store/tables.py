"""The tables, as SQLAlchemy Core metadata; the same on SQLite and on PostgreSQL.

Times are seconds since the epoch (UTC); amounts are the whole numbers of `domain.resources`; JSON
is text, written and read by `store.codec` only. Derived values (in-use, state) are not stored.
"""

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
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

REVISION = "0050"
"""The revision of these tables; the newest one in `store/migrations` (a test compares them)."""

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
metadata = MetaData(naming_convention=NAMING)
_RESERVES = text("reserved IS NOT NULL")
_CHECKPOINT = text("time IS NOT NULL")

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

job = Table(
    "job",
    metadata,
    Column("uid", String(26), primary_key=True),
    Column("user", String(255), nullable=False),
    Column("name", String(50), nullable=False),
    Column("run", Integer, nullable=False),  # of this name, from 1 on
    Column("tenant", String(50), nullable=False),
    Column("spec", Text, nullable=False),
    Column("phase", String(16), nullable=False),
    Column("target", String(16), nullable=False),
    Column("submitted_at", Double, nullable=False),
    Column("restarts", Integer, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("progress", Integer, nullable=False),
    Column("reason", String(64)),
    Column("message", Text, nullable=False),
    Column("placement", Text, nullable=False),
    Column("queued_at", Double),
    Column("admitted_at", Double),
    Column("started_at", Double),
    Column("finished_at", Double),
    Column("failure", Text),
    Column("ranks", Text, nullable=False),
    Column("resize_to", Text),  # null when it is not being resized
    Column("ran_before", Double),  # null when it was not resized since it was admitted
    Column("past", Text),  # what it waited and ran in all; null when the columns above tell that
    Column("version", Integer, nullable=False),
    Column("sweep", String(26)),  # the uid of the sweep that it is a trial of, and which; null of all others
    Column("trial", Integer),
    Column("steered", Text),  # what was made of it after it was submitted; null of most
    Column("idle", Text),  # countdown of GPUs that it holds and does not use; null of most
    UniqueConstraint("user", "name", "run"),
    Index(None, "phase"),
    Index(None, "tenant", "uid"),
    Index(None, "sweep", "trial", unique=True),
)

ended_job = Table(  # what is stored of each job that ended; worked out once, since it changes no more and takes long to add up
    "ended_job",
    metadata,
    Column("job", String(26), ForeignKey("job.uid", ondelete="CASCADE"), primary_key=True),
    Column("user", String(255), nullable=False),
    Column("ended_at", Double, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Index(None, "ended_at"),
    Index(None, "user", "ended_at"),
)

job_event = Table(
    "job_event",
    metadata,
    Column("job", String(26), ForeignKey("job.uid", ondelete="CASCADE"), primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("time", Double, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("message", Text, nullable=False),
    Column("reason", String(64)),
)

decision = Table(  # why the scheduler did something with a job; kept for a while
    "decision",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("job", String(26), ForeignKey("job.uid", ondelete="CASCADE"), nullable=False),
    Column("time", Double, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("text", Text, nullable=False),
    Index(None, "job", "id"),
    Index(None, "kind", "id"),
    Index(None, "time"),
)

job_metrics = Table(  # one row holds a batch of points of one source
    "job_metrics",
    metadata,
    Column("job", String(26), ForeignKey("job.uid", ondelete="CASCADE"), primary_key=True),
    Column("seq_last", BigInteger, primary_key=True, autoincrement=False),
    Column("seq_first", BigInteger, nullable=False),
    Column("source", String(64), nullable=False),
    Column("source_last", BigInteger, nullable=False),
    Column("payload", LargeBinary, nullable=False),
)

metric_total = (
    Table(  # of a job with points: the bytes they take, and the names that stand for numbers in them
        "metric_total",
        metadata,
        Column("job", String(26), ForeignKey("job.uid", ondelete="CASCADE"), primary_key=True),
        Column("bytes", BigInteger, nullable=False),
        Column("names", LargeBinary, nullable=False),
    )
)

metric_source = Table(  # how far the points of one reporting process are stored
    "metric_source",
    metadata,
    Column("job", String(26), ForeignKey("job.uid", ondelete="CASCADE"), primary_key=True),
    Column("source", String(64), primary_key=True),
    Column("last", BigInteger, nullable=False),
)

run_origin = Table(  # where a run came from; missing where its client said nothing
    "run_origin",
    metadata,
    Column("job", String(26), ForeignKey("job.uid", ondelete="CASCADE"), primary_key=True),
    Column("commit", String(64)),
    Column("dirty", Boolean),
    Column("environment", String(64)),  # sha256 of a run_text
    Column("program", String(64)),
    Column("data", Text, nullable=False),
    Column("bytes", BigInteger, nullable=False),  # of its texts, also where others have them too
    Index(None, "environment"),
    Index(None, "program"),
)

run_text = Table(  # freezes of environments and programs, each once however many runs have it
    "run_text",
    metadata,
    Column("sha256", String(64), primary_key=True),
    Column("text", Text, nullable=False),
)

run_value = Table(  # parameters of runs, and what became of their metrics
    "run_value",
    metadata,
    Column("job", String(26), ForeignKey("job.uid", ondelete="CASCADE"), primary_key=True),
    Column("kind", String(8), primary_key=True),  # param, metric
    Column("name", String(100), primary_key=True),
    Column("number", Double),  # of a metric the last
    Column("best", Double),
    Column("low", Double),
    Column("high", Double),
    Column("text", Text, nullable=False),  # of a parameter its value as JSON; of a metric the rank
)

run_summary = Table(  # worked out while a run goes on, and for good when it has ended
    "run_summary",
    metadata,
    Column("job", String(26), ForeignKey("job.uid", ondelete="CASCADE"), primary_key=True),
    Column("seq", BigInteger, nullable=False),  # up to which point
    Column("final", Boolean, nullable=False),
    Column("ran", Double),
    Column("cpu_peak", Double),
    Column("ram_peak", BigInteger),
)

run_note = Table(  # what people wrote of a run
    "run_note",
    metadata,
    Column("job", String(26), ForeignKey("job.uid", ondelete="CASCADE"), primary_key=True),
    Column("note", Text, nullable=False),
)

run_tag = Table(
    "run_tag",
    metadata,
    Column("job", String(26), ForeignKey("job.uid", ondelete="CASCADE"), primary_key=True),
    Column("tag", String(50), primary_key=True),
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

job_token = Table(
    "job_token",
    metadata,
    Column("sha256", String(64), primary_key=True),
    Column("job", String(26), ForeignKey("job.uid", ondelete="CASCADE"), nullable=False),
    Column("created_at", Double, nullable=False),
    Index(None, "job"),
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

sweep = Table(
    "sweep",
    metadata,
    Column("uid", String(26), primary_key=True),
    Column("user", String(255), nullable=False),
    Column("name", String(50), nullable=False),
    Column("run", Integer, nullable=False),
    Column("tenant", String(50), nullable=False),
    Column("spec", Text, nullable=False),
    Column("budget", Text, nullable=False),
    Column("phase", String(16), nullable=False),
    Column("outcome", String(16), nullable=False),
    Column("made_at", Double, nullable=False),
    Column("ended_at", Double),
    Column("not_before", Double, nullable=False),
    Column("message", Text, nullable=False),
    UniqueConstraint("user", "name", "run"),
    Index(None, "tenant"),
    Index(None, "phase"),
)

sweep_trial = Table(
    "sweep_trial",
    metadata,
    Column("sweep", String(26), ForeignKey("sweep.uid", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("job", String(26)),  # null until it is known to be there
    Column("state", String(16), nullable=False),
    Column("data", Text, nullable=False),  # its parameters, and what was reported
    Column("message", Text, nullable=False),
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

node_drain = Table(  # nodes that an administrator took out of service
    "node_drain",
    metadata,
    Column("node", String(253), primary_key=True),
    Column("reason", String(500), nullable=False),
    Column("actor", String(255), nullable=False),
    Column("since", Double, nullable=False),
    Column("evict", Boolean, nullable=False),  # what runs there is moved away
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
