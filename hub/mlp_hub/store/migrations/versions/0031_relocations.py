"""Tenants' files on their way to another grade of isolation; none are yet."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    """Go from 0030 to 0031."""
    op.create_table(
        "relocation",
        sa.Column("tenant", sa.String(50), nullable=False),
        sa.Column("phase", sa.String(16), nullable=False),
        sa.Column("old_grade", sa.String(16), nullable=False),
        sa.Column("old_root", sa.Text(), nullable=False),
        sa.Column("new_grade", sa.String(16), nullable=False),
        sa.Column("new_root", sa.Text(), nullable=False),
        sa.Column("asked_by", sa.String(255), nullable=False),
        sa.Column("asked_at", sa.Double(), nullable=False),
        sa.Column("total", sa.BigInteger(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("ended_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant"], ["tenant.name"], name="fk_relocation_tenant_tenant", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("tenant", name="pk_relocation"),
    )


def downgrade() -> None:
    """Go back from 0031 to 0030."""
    op.drop_table("relocation")
