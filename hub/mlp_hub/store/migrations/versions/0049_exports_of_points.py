"""Places up to which points of jobs were handed on to programs outside of the hub."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0049"
down_revision = "0048"


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "point_export",
        sa.Column("job", sa.String(26), nullable=False),
        sa.Column("exporter", sa.String(32), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("target", sa.String(64), nullable=False),
        sa.Column("done", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("job", "exporter", name="pk_point_export"),
        sa.ForeignKeyConstraint(["job"], ["job.uid"], name="fk_point_export_job_job", ondelete="CASCADE"),
    )
    op.create_index("ix_point_export_exporter_done", "point_export", ["exporter", "done"])


def downgrade() -> None:
    """Forget how far points were handed on."""
    op.drop_table("point_export")
