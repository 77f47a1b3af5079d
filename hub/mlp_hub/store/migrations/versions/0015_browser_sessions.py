"""Sessions of browsers; they were files before, and who had one logs in again, by the hub's session without a password."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Go from 0014 to 0015."""
    op.create_table(
        "browser_session",
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("user", sa.String(255), nullable=False),
        sa.Column("masked", sa.LargeBinary(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name="pk_browser_session"),
    )
    op.create_index("ix_browser_session_expires_at", "browser_session", ["expires_at"])


def downgrade() -> None:
    """Go back from 0015 to 0014."""
    op.drop_table("browser_session")
