"""Order of a tenant's queue."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Go from 0009 to 0010."""
    op.add_column(
        "tenant", sa.Column("queue_order", sa.String(16), nullable=False, server_default="priority")
    )


def downgrade() -> None:
    """Go back from 0010 to 0009."""
    op.drop_column("tenant", "queue_order")
