"""Whether use was measured, or is only a job's own report, in spans and sums of the accounting.

Nobody stored it before this revision. The source of older sums is unknown, until a service whose executor measures all use
itself takes them as measured (`service/accounting/rollup.py`).
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0052"
down_revision = "0051"
SPAN = ("cpu_reported", "ram_reported")
TOTAL = ("cpu_reported", "cpu_unknown", "ram_reported", "ram_unknown")


def upgrade() -> None:
    """Add the columns."""
    for name in SPAN:
        op.add_column("ledger_span", sa.Column(name, sa.Boolean()))
    for name in TOTAL:
        op.add_column("usage_total", sa.Column(name, sa.BigInteger(), nullable=False, server_default="0"))
    op.execute(sa.text("UPDATE usage_total SET cpu_unknown = cpu_measured, ram_unknown = ram_measured"))


def downgrade() -> None:
    """Forget it."""
    for name in TOTAL:
        op.drop_column("usage_total", name)
    for name in SPAN:
        op.drop_column("ledger_span", name)
