"""Links of the audit log's chain of hashes; entries of before are outside of it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0043"
down_revision = "0042"
_CHECKPOINT = sa.text("time IS NOT NULL")


def upgrade() -> None:
    """Go from 0042 to 0043."""
    op.create_table(
        "audit_link",
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("entry", sa.Integer(), nullable=False),
        sa.Column("again", sa.Boolean(), nullable=False),
        sa.Column("time", sa.Double()),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_audit_link")),
    )
    op.create_index(
        "ix_audit_link_time",
        "audit_link",
        ["time"],
        sqlite_where=_CHECKPOINT,
        postgresql_where=_CHECKPOINT,
    )


def downgrade() -> None:
    """Go back from 0043 to 0042."""
    op.drop_table("audit_link")
