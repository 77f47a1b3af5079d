"""Environments of tenants; there are none yet."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"


def upgrade() -> None:
    """Go from 0034 to 0035."""
    op.create_table(
        "environment",
        sa.Column("uid", sa.String(26), nullable=False),
        sa.Column("tenant", sa.String(50), nullable=False),
        sa.Column("name", sa.String(50), nullable=False),
        sa.Column("folded", sa.String(50), nullable=False),
        sa.Column("user", sa.String(255), nullable=False),
        sa.Column("phase", sa.String(16), nullable=False),
        sa.Column("requirements", sa.Text(), nullable=False),
        sa.Column("lock", sa.Text(), nullable=False),
        sa.Column("files", sa.String(26), nullable=False),
        sa.Column("log", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("made_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("uid", name="pk_environment"),
        sa.UniqueConstraint("tenant", "folded", name="uq_environment_tenant_folded"),
    )
    op.create_index("ix_environment_phase", "environment", ["phase"])
    op.create_index("ix_environment_files", "environment", ["files"])


def downgrade() -> None:
    """Go back from 0035 to 0034."""
    op.drop_table("environment")
