"""The epoch of who decides; no grade of isolation that is not in force."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the column; say of every tenant what has always been so: its files lie in the tree that all share."""
    op.add_column("lease", sa.Column("epoch", sa.BigInteger(), nullable=False, server_default="0"))
    op.execute("UPDATE tenant SET isolation = 'shared'")


def downgrade() -> None:
    """Remove the column."""
    op.drop_column("lease", "epoch")
