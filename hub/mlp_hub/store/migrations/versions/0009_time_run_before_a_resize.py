"""How long a job ran before it was resized, which counts for its time limit."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the column."""
    op.add_column("job", sa.Column("ran_before", sa.Double(), nullable=True))


def downgrade() -> None:
    """Remove it; jobs that were resized have their whole time limit again."""
    op.drop_column("job", "ran_before")
