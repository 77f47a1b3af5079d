"""Notebook servers that wait are pending requests, admitted as jobs are: nothing is set aside for them beforehand."""

from __future__ import annotations

from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Go from 0017 to 0018."""
    op.execute("UPDATE resource_request SET phase = 'pending', shares = NULL WHERE phase = 'claimed'")
    op.execute("UPDATE resource_request SET last = 'cancel' WHERE last = 'claim' AND phase = 'cancelled'")
    op.execute("UPDATE resource_request SET last = 'try' WHERE last = 'claim'")


def downgrade() -> None:
    """Go back from 0018 to 0017."""
    op.execute("UPDATE resource_request SET phase = 'claimed', last = 'claim' WHERE phase = 'pending'")
