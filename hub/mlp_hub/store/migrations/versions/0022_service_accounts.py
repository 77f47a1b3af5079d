"""Accounts of tenants, for builds and nightly runs, and their tokens; there are none yet."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    """Go from 0021 to 0022."""
    op.create_table(
        "service_account",
        sa.Column("user", sa.String(255), nullable=False),
        sa.Column("tenant", sa.String(50), nullable=False),
        sa.Column("made_by", sa.String(255), nullable=False),
        sa.Column("made_at", sa.Double(), nullable=False),
        sa.Column("ended", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("user", name="pk_service_account"),
    )
    op.create_index("ix_service_account_tenant", "service_account", ["tenant"])
    op.create_table(
        "service_token",
        sa.Column("token", sa.String(64), nullable=False),
        sa.Column("user", sa.String(255), nullable=False),
        sa.Column("until", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("token", name="pk_service_token"),
    )
    op.create_index("ix_service_token_user", "service_token", ["user"])


def downgrade() -> None:
    """Go back from 0022 to 0021."""
    op.drop_table("service_token")
    op.drop_table("service_account")
