"""Notices to people about their jobs, and their channels."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    """Add the notices, and the ways to people."""
    op.create_table(
        "notice_choice",
        sa.Column("user", sa.String(255), nullable=False),
        sa.Column("browser", sa.Text(), nullable=False),
        sa.Column("quiet_begin", sa.Integer(), nullable=True),
        sa.Column("quiet_end", sa.Integer(), nullable=True),
        sa.Column("zone", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("user", name="pk_notice_choice"),
    )
    op.create_table(
        "notice_channel",
        sa.Column("user", sa.String(255), nullable=False),
        sa.Column("name", sa.String(50), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("shown", sa.String(255), nullable=False),
        sa.Column("events", sa.Text(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("sent", sa.Integer(), nullable=False),
        sa.Column("changed_at", sa.Double(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("next_at", sa.Double(), nullable=False),
        sa.Column("told_at", sa.Double(), nullable=True),
        sa.Column("trouble", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("user", "name", name="pk_notice_channel"),
    )
    op.create_table(
        "notice",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("user", sa.String(255), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("job", sa.String(26), nullable=False),
        sa.Column("name", sa.String(50), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("tenant", sa.String(50), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_notice"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_notice_user_id", "notice", ["user", "id"])
    op.create_index("ix_notice_at", "notice", ["at"])


def downgrade() -> None:
    """Forget them."""
    op.drop_table("notice")
    op.drop_table("notice_channel")
    op.drop_table("notice_choice")
