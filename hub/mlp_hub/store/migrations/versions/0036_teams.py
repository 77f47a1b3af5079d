"""What a team's admin does: jobs that were changed after they were submitted."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0034"


def upgrade() -> None:
    """Add what was made of a job."""
    op.add_column("job", sa.Column("steered", sa.Text(), nullable=True))


def downgrade() -> None:
    """Forget it."""
    op.drop_column("job", "steered")
