"""Tables of jobs, their timelines, points and tokens, runs and sweeps."""

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
    Column("note", Text),  # what its owner wrote about it; null of most
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

point_export = Table(  # how far the points of a job were handed on to a program outside, by `exporter`
    "point_export",
    metadata,
    Column("job", String(26), ForeignKey("job.uid", ondelete="CASCADE"), primary_key=True),
    Column("exporter", String(32), primary_key=True),
    Column("seq", BigInteger, nullable=False),
    Column("target", String(64), nullable=False),  # what the job is there; empty: nothing yet
    Column("done", Boolean, nullable=False),  # the job ended, and there is nothing left to hand on
    Index(None, "exporter", "done"),
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

run_tag = Table(
    "run_tag",
    metadata,
    Column("job", String(26), ForeignKey("job.uid", ondelete="CASCADE"), primary_key=True),
    Column("tag", String(50), primary_key=True),
)

job_token = Table(
    "job_token",
    metadata,
    Column("sha256", String(64), primary_key=True),
    Column("job", String(26), ForeignKey("job.uid", ondelete="CASCADE"), nullable=False),
    Column("created_at", Double, nullable=False),
    Index(None, "job"),
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
