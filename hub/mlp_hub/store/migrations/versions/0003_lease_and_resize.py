"""The lease of the one scheduler, and what a job is resized to."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Go from the revision before to 0003."""
    op.create_table(
        "lease",
        sa.Column("name", sa.String(length=32), nullable=False),
        sa.Column("holder", sa.String(length=255), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_lease")),
    )
    op.add_column("job", sa.Column("resize_to", sa.Text(), nullable=True))


def downgrade() -> None:
    """Revert to the previous revision; jobs in a resize continue with their old size."""
    op.drop_column("job", "resize_to")
    op.drop_table("lease")
