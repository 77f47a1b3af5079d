"""Stored data of ended jobs; the audit log by actor, action, object and time, decisions by kind."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
READ_BY = ("actor", "action", "object")


def upgrade() -> None:
    """Add the table, empty: the service fills it; and the indexes."""
    op.create_table(
        "ended_job",
        sa.Column("job", sa.String(26), nullable=False),
        sa.Column("user", sa.String(255), nullable=False),
        sa.Column("ended_at", sa.Double(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["job"], ["job.uid"], name="fk_ended_job_job_job", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job", name="pk_ended_job"),
    )
    op.create_index("ix_ended_job_ended_at", "ended_job", ["ended_at"])
    op.create_index("ix_ended_job_user_ended_at", "ended_job", ["user", "ended_at"])
    for column in READ_BY:
        op.create_index(f"ix_audit_{column}_id", "audit", [column, "id"])
    op.create_index("ix_audit_time", "audit", ["time"])
    op.create_index("ix_decision_kind_id", "decision", ["kind", "id"])


def downgrade() -> None:
    """Take them away."""
    op.drop_index("ix_decision_kind_id", "decision")
    op.drop_index("ix_audit_time", "audit")
    for column in reversed(READ_BY):
        op.drop_index(f"ix_audit_{column}_id", "audit")
    op.drop_table("ended_job")
