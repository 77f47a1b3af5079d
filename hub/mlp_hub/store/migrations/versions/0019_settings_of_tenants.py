"""Settings of tenants without their own column."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Add the column; nobody has set anything yet."""
    op.add_column("tenant", sa.Column("settings", sa.Text(), nullable=True))


def downgrade() -> None:
    """Take it away."""
    with op.batch_alter_table("tenant") as table:
        table.drop_column("settings")
