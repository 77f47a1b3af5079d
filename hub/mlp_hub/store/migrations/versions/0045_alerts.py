"""Alerts of the service's own evaluation of its rules, and silences of them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0045"
down_revision = "0044"


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "alert",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("rule", sa.String(64), nullable=False),
        sa.Column("labels", sa.Text(), nullable=False),
        sa.Column("tenant", sa.String(50), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("since", sa.Double(), nullable=False),
        sa.Column("fired_at", sa.Double()),
        sa.Column("resolved_at", sa.Double()),
        sa.Column("told_platform", sa.Boolean(), nullable=False),
        sa.Column("told_tenant", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_alert"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_alert_resolved_at", "alert", ["resolved_at"])
    op.create_table(
        "alert_silence",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("rule", sa.String(64), nullable=False),
        sa.Column("tenant", sa.String(50), nullable=False),
        sa.Column("of_team", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("made_by", sa.String(255), nullable=False),
        sa.Column("made_at", sa.Double(), nullable=False),
        sa.Column("ends_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_alert_silence"),
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    """Forget alerts and silences."""
    op.drop_table("alert_silence")
    op.drop_index("ix_alert_resolved_at", table_name="alert")
    op.drop_table("alert")
