"""Booked windows, and guarantees of idle tenants that are lowered."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Make the table and the columns."""
    op.add_column("tenant", sa.Column("idle_since", sa.Double()))
    op.add_column("tenant", sa.Column("lowered", sa.Text()))
    reserves = sa.text("reserved IS NOT NULL")
    op.create_index(
        "ix_tenant_reserves", "tenant", ["name"], sqlite_where=reserves, postgresql_where=reserves
    )
    op.create_table(
        "booking",
        sa.Column("tenant", sa.String(50), nullable=False),
        sa.Column("name", sa.String(50), nullable=False),
        sa.Column("starts_at", sa.Double(), nullable=False),
        sa.Column("ends_at", sa.Double(), nullable=False),
        sa.Column("amount", sa.Text(), nullable=False),
        sa.Column("made_by", sa.String(255), nullable=False),
        sa.Column("made_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant"], ["tenant.name"], name=op.f("fk_booking_tenant_tenant"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("tenant", "name", name=op.f("pk_booking")),
    )
    op.create_index(op.f("ix_booking_ends_at"), "booking", ["ends_at"])


def downgrade() -> None:
    """Remove them."""
    op.drop_index(op.f("ix_booking_ends_at"), table_name="booking")
    op.drop_table("booking")
    op.drop_index("ix_tenant_reserves", table_name="tenant")
    op.drop_column("tenant", "lowered")
    op.drop_column("tenant", "idle_since")
