"""What was announced of a dataset is what is reserved for it; nobody asked for it once it was there."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"


def upgrade() -> None:
    """Drop it."""
    with op.batch_alter_table("dataset") as dataset:
        dataset.drop_column("size")


def downgrade() -> None:
    """Have it again, of what nobody knows any more."""
    with op.batch_alter_table("dataset") as dataset:
        dataset.add_column(sa.Column("size", sa.BigInteger(), nullable=False, server_default="0"))
