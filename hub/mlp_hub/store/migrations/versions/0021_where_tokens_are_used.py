"""From where each token was used last; nothing is known of those there are until they are used again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    """Go from 0020 to 0021."""
    op.create_table(
        "token_use",
        sa.Column("token", sa.String(64), nullable=False),
        sa.Column("user", sa.String(255), nullable=False),
        sa.Column("address", sa.String(64), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("token", name="pk_token_use"),
    )
    op.create_index("ix_token_use_user", "token_use", ["user"])
    op.create_index("ix_token_use_at", "token_use", ["at"])


def downgrade() -> None:
    """Go back from 0021 to 0020."""
    op.drop_table("token_use")
