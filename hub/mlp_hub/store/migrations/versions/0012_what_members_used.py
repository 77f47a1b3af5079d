"""Use by members of a tenant, if its queue goes by members, beside the use by tenants."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Name the owner of a usage an account: a tenant, or TENANT/USER."""
    _rename("tenant", 50, "account", 306)


def downgrade() -> None:
    """Keep the tenants alone."""
    op.execute("DELETE FROM usage WHERE account LIKE '%/%'")
    op.execute("UPDATE tenant SET queue_order = 'priority' WHERE queue_order IN ('fair', 'maxmin')")
    _rename("account", 306, "tenant", 50)


def _rename(name: str, length: int, anew: str, length_anew: int) -> None:
    with op.batch_alter_table("usage") as table:
        table.alter_column(
            name,
            new_column_name=anew,
            existing_type=sa.String(length),
            type_=sa.String(length_anew),
            existing_nullable=False,
        )
