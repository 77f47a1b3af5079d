"""Nodes that an administrator took out of service, and what administrators tell people."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"


def upgrade() -> None:
    """Add both."""
    op.create_table(
        "node_drain",
        sa.Column("node", sa.String(253), nullable=False),
        sa.Column("reason", sa.String(500), nullable=False),
        sa.Column("actor", sa.String(255), nullable=False),
        sa.Column("since", sa.Double(), nullable=False),
        sa.Column("evict", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("node", name="pk_node_drain"),
    )
    op.create_table(
        "announcement",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("tenant", sa.String(50), nullable=False),
        sa.Column("level", sa.String(16), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("begins_at", sa.Double(), nullable=False),
        sa.Column("ends_at", sa.Double(), nullable=False),
        sa.Column("made_by", sa.String(255), nullable=False),
        sa.Column("made_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_announcement"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_announcement_ends_at", "announcement", ["ends_at"])


def downgrade() -> None:
    """Forget them."""
    op.drop_table("announcement")
    op.drop_table("node_drain")
