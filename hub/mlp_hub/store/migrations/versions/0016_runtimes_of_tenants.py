"""Runtimes that tenants register."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Go from 0015 to 0016."""
    op.create_table(
        "runtime",
        sa.Column("tenant", sa.String(50), nullable=False),
        sa.Column("name", sa.String(50), nullable=False),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("changed_by", sa.String(255), nullable=False),
        sa.Column("changed_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "name", name="pk_runtime"),
        sa.ForeignKeyConstraint(
            ["tenant"], ["tenant.name"], name="fk_runtime_tenant_tenant", ondelete="CASCADE"
        ),
    )


def downgrade() -> None:
    """Go back from 0016 to 0015."""
    op.drop_table("runtime")
