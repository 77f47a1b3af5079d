"""Environments of images; those that there are are of packages."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0038"


def upgrade() -> None:
    """Go from 0038 to 0039."""
    op.add_column("environment", sa.Column("image", sa.String(500)))


def downgrade() -> None:
    """Go back from 0039 to 0038."""
    op.drop_column("environment", "image")
