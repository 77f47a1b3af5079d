"""Requests to apps, which only the proxy knew: the count begins here."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    """Go from 0026 to 0030."""
    op.create_table(
        "app_use",
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("name", sa.String(50), nullable=False),
        sa.Column("run", sa.String(32), nullable=False),
        sa.Column("counted", sa.Text(), nullable=False),
        sa.Column("before", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("kind", "name", name="pk_app_use"),
    )


def downgrade() -> None:
    """Go back from 0030 to 0026."""
    op.drop_table("app_use")
