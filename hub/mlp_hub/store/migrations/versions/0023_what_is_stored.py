"""Stored objects of people, and datasets; there are none yet."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    """Go from 0022 to 0023."""
    op.create_table(
        "stored",
        sa.Column("uid", sa.String(26), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("tenant", sa.String(50), nullable=False),
        sa.Column("user", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("made_at", sa.Double(), nullable=False),
        sa.Column("used", sa.BigInteger(), nullable=False),
        sa.Column("granted", sa.BigInteger(), nullable=False),
        sa.Column("reserved", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("uid", name="pk_stored"),
        sa.UniqueConstraint("kind", "user", "name", name="uq_stored_kind_user_name"),
    )
    op.create_index("ix_stored_tenant", "stored", ["tenant"])
    op.create_table(
        "dataset",
        sa.Column("uid", sa.String(26), nullable=False),
        sa.Column("phase", sa.String(16), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("progress", sa.Integer(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["uid"], ["stored.uid"], name="fk_dataset_uid_stored"),
        sa.PrimaryKeyConstraint("uid", name="pk_dataset"),
    )
    op.create_index("ix_dataset_phase", "dataset", ["phase"])


def downgrade() -> None:
    """Go back from 0023 to 0022."""
    op.drop_table("dataset")
    op.drop_table("stored")
