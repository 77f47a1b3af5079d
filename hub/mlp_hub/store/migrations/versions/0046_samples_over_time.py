"""Sums of samples over time, by spans of their grain."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0046"
down_revision = "0045"


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "over_time",
        sa.Column("grain", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("tenant", sa.String(50), nullable=False),
        sa.Column("sums", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("grain", "number", "tenant", name="pk_over_time"),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """Forget the samples."""
    op.drop_table("over_time")
