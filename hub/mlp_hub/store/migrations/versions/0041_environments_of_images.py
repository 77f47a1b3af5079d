"""Environments of images; those that there are are of packages."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0037"


def upgrade() -> None:
    """Go from 0037 to 0041."""
    op.add_column("environment", sa.Column("image", sa.String(500)))


def downgrade() -> None:
    """Go back from 0041 to 0037."""
    op.drop_column("environment", "image")
