"""The epoch of who decides."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the column; who decides after this counts from one."""
    op.add_column("lease", sa.Column("epoch", sa.BigInteger(), nullable=False, server_default="0"))


def downgrade() -> None:
    """Remove it."""
    op.drop_column("lease", "epoch")
