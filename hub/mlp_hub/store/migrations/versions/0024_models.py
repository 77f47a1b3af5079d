"""Versions of models; there are none yet."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    """Go from 0023 to 0024."""
    op.create_table(
        "model",
        sa.Column("uid", sa.String(26), nullable=False),
        sa.Column("name", sa.String(50), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("phase", sa.String(16), nullable=False),
        sa.Column("stage", sa.String(16), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("lineage", sa.Text(), nullable=False),
        sa.Column("format", sa.Text(), nullable=False),
        sa.Column("files", sa.Integer(), nullable=False),
        sa.Column("any_files", sa.Boolean(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["uid"], ["stored.uid"], name="fk_model_uid_stored"),
        sa.PrimaryKeyConstraint("uid", name="pk_model"),
    )
    op.create_index("ix_model_phase", "model", ["phase"])


def downgrade() -> None:
    """Go back from 0024 to 0023."""
    op.drop_table("model")
