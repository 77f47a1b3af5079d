"""Sweeps, and which jobs are trials of one; there are none yet."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    """Go from 0030 to 0033."""
    op.create_table(
        "sweep",
        sa.Column("uid", sa.String(26), nullable=False),
        sa.Column("user", sa.String(255), nullable=False),
        sa.Column("name", sa.String(50), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("tenant", sa.String(50), nullable=False),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("budget", sa.Text(), nullable=False),
        sa.Column("phase", sa.String(16), nullable=False),
        sa.Column("outcome", sa.String(16), nullable=False),
        sa.Column("made_at", sa.Double(), nullable=False),
        sa.Column("ended_at", sa.Double(), nullable=True),
        sa.Column("not_before", sa.Double(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("uid", name="pk_sweep"),
        sa.UniqueConstraint("user", "name", "run", name="uq_sweep_user_name_run"),
    )
    op.create_index("ix_sweep_tenant", "sweep", ["tenant"])
    op.create_index("ix_sweep_phase", "sweep", ["phase"])
    op.create_table(
        "sweep_trial",
        sa.Column("sweep", sa.String(26), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("job", sa.String(26), nullable=True),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["sweep"], ["sweep.uid"], name="fk_sweep_trial_sweep_sweep", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("sweep", "number", name="pk_sweep_trial"),
    )
    op.add_column("job", sa.Column("sweep", sa.String(26), nullable=True))
    op.add_column("job", sa.Column("trial", sa.Integer(), nullable=True))
    op.create_index("ix_job_sweep_trial", "job", ["sweep", "trial"], unique=True)


def downgrade() -> None:
    """Go back from 0033 to 0030."""
    op.drop_index("ix_job_sweep_trial", "job")
    op.drop_column("job", "trial")
    op.drop_column("job", "sweep")
    op.drop_table("sweep_trial")
    op.drop_table("sweep")
