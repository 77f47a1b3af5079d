"""Only the domain of a mail address is stored as readable text; the address itself is in the sealed column."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0051"
down_revision = "0050"

_CHANNEL = sa.table(
    "notice_channel", *(sa.column(name, sa.String()) for name in ("user", "name", "kind", "shown"))
)


def upgrade() -> None:
    """Hide the names before the domains."""
    c, link = _CHANNEL.c, op.get_bind()
    for user, name, shown in link.execute(sa.select(c.user, c.name, c.shown).where(c.kind == "mail")).all():
        hidden = f"***@{shown.rpartition('@')[2]}"
        link.execute(sa.update(_CHANNEL).where(c.user == user, c.name == name).values(shown=hidden))


def downgrade() -> None:
    """Leave them hidden: older versions show the same."""
