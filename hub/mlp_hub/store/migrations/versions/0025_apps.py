"""Apps; there are none yet."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    """Go from 0024 to 0025."""
    op.create_table(
        "app",
        sa.Column("uid", sa.String(26), nullable=False),
        sa.Column("user", sa.String(255), nullable=False),
        sa.Column("name", sa.String(50), nullable=False),
        sa.Column("tenant", sa.String(50), nullable=False),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("port", sa.Integer(), nullable=False),
        sa.Column("phase", sa.String(16), nullable=False),
        sa.Column("made_at", sa.Double(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("wanted", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("not_before", sa.Double(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("tail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("uid", name="pk_app"),
        sa.UniqueConstraint("user", "name", name="uq_app_user_name"),
        sa.UniqueConstraint("port", name="uq_app_port"),
    )
    op.create_index("ix_app_tenant", "app", ["tenant"])


def downgrade() -> None:
    """Go back from 0025 to 0024."""
    op.drop_table("app")
