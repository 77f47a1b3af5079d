"""Network of a tenant's sandboxes; none set: the hub's settings."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Go from 0013 to 0014."""
    op.add_column("tenant", sa.Column("network", sa.String(16), nullable=True))


def downgrade() -> None:
    """Go back from 0014 to 0013."""
    op.drop_column("tenant", "network")
