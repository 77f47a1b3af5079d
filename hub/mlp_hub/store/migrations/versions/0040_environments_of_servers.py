"""Environments that notebook servers are started with; those that there are have the platform's."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0039"


def upgrade() -> None:
    """Go from 0039 to 0040."""
    op.add_column("resource_request", sa.Column("environment", sa.String(26)))


def downgrade() -> None:
    """Go back from 0040 to 0039."""
    op.drop_column("resource_request", "environment")
