"""Amounts of counted dimensions by name; a further dimension needs no column."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"
TABLES = ("tenant", "resource_request", "usage_sample")


def upgrade() -> None:
    """Go from 0041 to 0042."""
    for table in TABLES:
        op.add_column(table, sa.Column("amounts", sa.Text()))


def downgrade() -> None:
    """Go back from 0042 to 0041."""
    for table in TABLES:
        op.drop_column(table, "amounts")
