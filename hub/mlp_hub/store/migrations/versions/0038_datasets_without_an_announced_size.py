"""Reserved size instead of the announced size of a dataset; nobody used the latter once files were there."""

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
    """Restore the column, with values that are lost."""
    with op.batch_alter_table("dataset") as dataset:
        dataset.add_column(sa.Column("size", sa.BigInteger(), nullable=False, server_default="0"))
