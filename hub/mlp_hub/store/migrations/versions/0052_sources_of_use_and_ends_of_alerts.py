"""Whether use was measured, or is only a job's own report; and whose notice of an alert's end is still to come.

Nobody stored the source of use before this revision. That of older sums is unknown, until a service whose executor measures all
use itself takes them as measured (`service/accounting/rollup.py`). Of alerts that were over before, no notice is to come.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0052"
down_revision = "0051"
SPAN = ("cpu_reported", "ram_reported")
AGAIN = ("again_platform", "again_tenant")
TOTAL = ("cpu_reported", "cpu_unknown", "ram_reported", "ram_unknown")

_ALERT = sa.table(
    "alert",
    sa.column("resolved_at"),
    sa.column("told_platform", sa.Boolean()),
    sa.column("told_tenant", sa.Boolean()),
)


def upgrade() -> None:
    """Add the columns."""
    for name in SPAN:
        op.add_column("ledger_span", sa.Column(name, sa.Boolean()))
    for name in TOTAL:
        op.add_column("usage_total", sa.Column(name, sa.BigInteger(), nullable=False, server_default="0"))
    op.execute(sa.text("UPDATE usage_total SET cpu_unknown = cpu_measured, ram_unknown = ram_measured"))
    for name in AGAIN:
        op.add_column("alert", sa.Column(name, sa.Boolean(), nullable=False, server_default=sa.false()))
    over = _ALERT.c.resolved_at.is_not(None)
    op.execute(sa.update(_ALERT).where(over).values(told_platform=False, told_tenant=False))


def downgrade() -> None:
    """Forget it."""
    for name in AGAIN:
        op.drop_column("alert", name)
    for name in TOTAL:
        op.drop_column("usage_total", name)
    for name in SPAN:
        op.drop_column("ledger_span", name)
