"""Keys of apps, and browsers that opened one; there are none yet."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    """Go from 0025 to 0026."""
    op.create_table(
        "app_key",
        sa.Column("id", sa.String(26), nullable=False),
        sa.Column("app", sa.String(26), nullable=False),
        sa.Column("name", sa.String(50), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("made_by", sa.String(255), nullable=False),
        sa.Column("made_at", sa.Double(), nullable=False),
        sa.Column("used_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["app"], ["app.uid"], name="fk_app_key_app_app", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_app_key"),
        sa.UniqueConstraint("app", "name", name="uq_app_key_app_name"),
        sa.UniqueConstraint("sha256", name="uq_app_key_sha256"),
    )
    op.create_table(
        "app_visit",
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("app", sa.String(26), nullable=False),
        sa.Column("is_code", sa.Boolean(), nullable=False),
        sa.Column("masked", sa.LargeBinary(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["app"], ["app.uid"], name="fk_app_visit_app_app", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("sha256", name="pk_app_visit"),
    )
    op.create_index("ix_app_visit_app", "app_visit", ["app"])
    op.create_index("ix_app_visit_expires_at", "app_visit", ["expires_at"])


def downgrade() -> None:
    """Go back from 0026 to 0025."""
    op.drop_table("app_visit")
    op.drop_table("app_key")
