"""Source of a copied dataset, and secrets of tenants and users; there are none yet."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0026"


def upgrade() -> None:
    """Go from 0026 to 0029."""
    with op.batch_alter_table("dataset") as dataset:
        dataset.add_column(sa.Column("source", sa.Text(), nullable=True))
    op.create_table(
        "secret",
        sa.Column("tenant", sa.String(50), nullable=False),
        sa.Column("user", sa.String(255), nullable=False),
        sa.Column("name", sa.String(50), nullable=False),
        sa.Column("keys", sa.Text(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("changed_at", sa.Double(), nullable=False),
        sa.Column("changed_by", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "user", "name", name="pk_secret"),
    )


def downgrade() -> None:
    """Go back from 0029 to 0026."""
    op.drop_table("secret")
    with op.batch_alter_table("dataset") as dataset:
        dataset.drop_column("source")
