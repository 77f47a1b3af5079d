"""Language of a user: the one they chose, empty where they leave it to their browser."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Add the column; nobody has chosen yet."""
    op.add_column("user", sa.Column("language", sa.String(16), nullable=False, server_default=""))


def downgrade() -> None:
    """Forget what was chosen."""
    op.drop_column("user", "language")
