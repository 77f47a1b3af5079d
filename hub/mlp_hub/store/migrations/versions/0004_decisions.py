"""Why the scheduler did something with a job."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the table of decisions."""
    op.create_table(
        "decision",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("job", sa.String(length=26), nullable=False),
        sa.Column("time", sa.Double(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["job"], ["job.uid"], name=op.f("fk_decision_job_job"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_decision")),
    )
    op.create_index(op.f("ix_decision_job_id"), "decision", ["job", "id"])
    op.create_index(op.f("ix_decision_time"), "decision", ["time"])


def downgrade() -> None:
    """Take it away, with all that is in it."""
    op.drop_table("decision")
