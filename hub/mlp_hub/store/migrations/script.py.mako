"""${message}."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    """Go from ${down_revision or "nothing"} to ${up_revision}."""
    ${upgrades if upgrades else "raise NotImplementedError"}


def downgrade() -> None:
    """Go back to ${down_revision or "nothing"}."""
    ${downgrades if downgrades else "raise NotImplementedError"}
