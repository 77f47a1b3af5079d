"""The epoch of the platform that decides; only grades of isolation that are in force."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the column; set for every tenant the value that was always true: its files are in the shared tree."""
    op.add_column("lease", sa.Column("epoch", sa.BigInteger(), nullable=False, server_default="0"))
    op.execute("UPDATE tenant SET isolation = 'shared'")


def downgrade() -> None:
    """Remove the column."""
    op.drop_column("lease", "epoch")
