"""Teams' policies for jobs that hold GPUs without use, their countdowns, and times of the last notices to admins."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0050"
down_revision = "0049"


def upgrade() -> None:
    """Add the tables, and the column of jobs."""
    for name, columns in (
        (
            "idle_job_policy",
            (
                sa.Column("after_s", sa.Integer(), nullable=False),
                sa.Column("grace_s", sa.Integer(), nullable=False),
            ),
        ),
        ("idle_told", (sa.Column("at", sa.Double(), nullable=False),)),
    ):
        op.create_table(
            name,
            sa.Column("tenant", sa.String(50), nullable=False),
            *columns,
            sa.ForeignKeyConstraint(
                ["tenant"], ["tenant.name"], name=f"fk_{name}_tenant_tenant", ondelete="CASCADE"
            ),
            sa.PrimaryKeyConstraint("tenant", name=f"pk_{name}"),
        )
    op.add_column("job", sa.Column("idle", sa.Text()))


def downgrade() -> None:
    """Forget all of it."""
    op.drop_column("job", "idle")
    op.drop_table("idle_told")
    op.drop_table("idle_job_policy")
