"""First tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Go from nothing to 0001."""
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("time", sa.Double(), nullable=False),
        sa.Column("actor", sa.String(length=255), nullable=False),
        sa.Column("action", sa.String(length=64), nullable=False),
        sa.Column("object", sa.String(length=255), nullable=False),
        sa.Column("tenant", sa.String(length=50), nullable=True),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    op.create_index(op.f("ix_audit_tenant_id"), "audit", ["tenant", "id"])
    op.create_table(
        "idempotency_key",
        sa.Column("user", sa.String(length=255), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("user", "key", name=op.f("pk_idempotency_key")),
    )
    op.create_index(op.f("ix_idempotency_key_created_at"), "idempotency_key", ["created_at"])
    op.create_table(
        "job",
        sa.Column("uid", sa.String(length=26), nullable=False),
        sa.Column("user", sa.String(length=255), nullable=False),
        sa.Column("name", sa.String(length=50), nullable=False),
        sa.Column("tenant", sa.String(length=50), nullable=False),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("phase", sa.String(length=16), nullable=False),
        sa.Column("target", sa.String(length=16), nullable=False),
        sa.Column("submitted_at", sa.Double(), nullable=False),
        sa.Column("restarts", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("progress", sa.Integer(), nullable=False),
        sa.Column("reason", sa.String(length=64), nullable=True),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("placement", sa.Text(), nullable=False),
        sa.Column("queued_at", sa.Double(), nullable=True),
        sa.Column("admitted_at", sa.Double(), nullable=True),
        sa.Column("started_at", sa.Double(), nullable=True),
        sa.Column("finished_at", sa.Double(), nullable=True),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.Column("ranks", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("uid", name=op.f("pk_job")),
        sa.UniqueConstraint("user", "name", name=op.f("uq_job_user_name")),
    )
    op.create_index(op.f("ix_job_phase"), "job", ["phase"])
    op.create_index(op.f("ix_job_tenant_uid"), "job", ["tenant", "uid"])
    op.create_table(
        "resource_request",
        sa.Column("applier", sa.String(length=8), nullable=False),
        sa.Column("id", sa.String(length=255), nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("tenant", sa.String(length=50), nullable=False),
        sa.Column("cpu", sa.BigInteger(), nullable=False),
        sa.Column("gpu", sa.BigInteger(), nullable=False),
        sa.Column("ram", sa.BigInteger(), nullable=False),
        sa.Column("rom", sa.BigInteger(), nullable=False),
        sa.Column("kinds", sa.Text(), nullable=True),
        sa.Column("phase", sa.String(length=16), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=True),
        sa.Column("node", sa.String(length=255), nullable=True),
        sa.Column("shares", sa.Text(), nullable=True),
        sa.Column("last", sa.String(length=8), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("user", sa.String(length=255), nullable=False),
        sa.PrimaryKeyConstraint("applier", "id", name=op.f("pk_resource_request")),
    )
    op.create_index(op.f("ix_resource_request_phase_expires_at"), "resource_request", ["phase", "expires_at"])
    op.create_index(op.f("ix_resource_request_tenant_phase"), "resource_request", ["tenant", "phase"])
    op.create_table(
        "setting",
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_setting")),
    )
    op.create_table(
        "tenant",
        sa.Column("name", sa.String(length=50), nullable=False),
        sa.Column("cpu", sa.BigInteger(), nullable=True),
        sa.Column("gpu", sa.BigInteger(), nullable=True),
        sa.Column("ram", sa.BigInteger(), nullable=True),
        sa.Column("rom", sa.BigInteger(), nullable=True),
        sa.Column("kinds", sa.Text(), nullable=False),
        sa.Column("weight", sa.Double(), nullable=False),
        sa.Column("cohort", sa.String(length=50), nullable=True),
        sa.Column("parent", sa.String(length=50), nullable=True),
        sa.Column("borrowing_limit", sa.Text(), nullable=True),
        sa.Column("lending_limit", sa.Text(), nullable=True),
        sa.Column("reserved", sa.Text(), nullable=True),
        sa.Column("isolation", sa.String(length=16), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["parent"], ["tenant.name"], name=op.f("fk_tenant_parent_tenant")),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_tenant")),
    )
    op.create_table(
        "usage",
        sa.Column("tenant", sa.String(length=50), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("as_of", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", name=op.f("pk_usage")),
    )
    op.create_table(
        "usage_sample",
        sa.Column("tenant", sa.String(length=50), nullable=False),
        sa.Column("time", sa.Double(), nullable=False),
        sa.Column("cpu", sa.BigInteger(), nullable=False),
        sa.Column("gpu", sa.BigInteger(), nullable=False),
        sa.Column("ram", sa.BigInteger(), nullable=False),
        sa.Column("rom", sa.BigInteger(), nullable=False),
        sa.Column("running", sa.Integer(), nullable=False),
        sa.Column("waiting", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "time", name=op.f("pk_usage_sample")),
    )
    op.create_table(
        "user",
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("default_tenant", sa.String(length=50), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_user")),
        sa.UniqueConstraint("number", name=op.f("uq_user_number")),
    )
    op.create_table(
        "job_event",
        sa.Column("job", sa.String(length=26), nullable=False),
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("time", sa.Double(), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("reason", sa.String(length=64), nullable=True),
        sa.ForeignKeyConstraint(["job"], ["job.uid"], name=op.f("fk_job_event_job_job"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job", "seq", name=op.f("pk_job_event")),
    )
    op.create_table(
        "job_metrics",
        sa.Column("job", sa.String(length=26), nullable=False),
        sa.Column("seq_last", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("seq_first", sa.BigInteger(), nullable=False),
        sa.Column("source", sa.String(length=64), nullable=False),
        sa.Column("source_last", sa.BigInteger(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job"], ["job.uid"], name=op.f("fk_job_metrics_job_job"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job", "seq_last", name=op.f("pk_job_metrics")),
    )
    op.create_table(
        "job_token",
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("job", sa.String(length=26), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["job"], ["job.uid"], name=op.f("fk_job_token_job_job"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_job_token")),
    )
    op.create_index(op.f("ix_job_token_job"), "job_token", ["job"])
    op.create_table(
        "member",
        sa.Column("tenant", sa.String(length=50), nullable=False),
        sa.Column("user", sa.String(length=255), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("source", sa.String(length=16), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant"], ["tenant.name"], name=op.f("fk_member_tenant_tenant"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("tenant", "user", name=op.f("pk_member")),
    )
    op.create_index(op.f("ix_member_user"), "member", ["user"])
    op.create_table(
        "metric_source",
        sa.Column("job", sa.String(length=26), nullable=False),
        sa.Column("source", sa.String(length=64), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job"], ["job.uid"], name=op.f("fk_metric_source_job_job"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job", "source", name=op.f("pk_metric_source")),
    )
    # everybody who is in no other tenant belongs to this one; its quota is what the nodes have
    op.execute(
        "INSERT INTO tenant (name, kinds, weight, isolation, description, created_at)"
        " VALUES ('default', '{}', 1, 'shared', '', 0)"
    )


def downgrade() -> None:
    """Go back to nothing."""
    op.drop_table("metric_source")
    op.drop_table("member")
    op.drop_table("job_token")
    op.drop_table("job_metrics")
    op.drop_table("job_event")
    op.drop_table("user")
    op.drop_table("usage_sample")
    op.drop_table("usage")
    op.drop_table("tenant")
    op.drop_table("setting")
    op.drop_table("resource_request")
    op.drop_table("job")
    op.drop_table("idempotency_key")
    op.drop_table("audit")
