"""Booked windows that can no longer be held in full."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the column."""
    op.add_column("booking", sa.Column("short", sa.Text()))


def downgrade() -> None:
    """Take it away."""
    op.drop_column("booking", "short")
