"""Since when each row of the ledger holds its amount, spans that ended, and the sums of all by day and month.

The accounting begins with this revision: rows that hold something count from now on.
"""

from __future__ import annotations

import time

import sqlalchemy as sa
from alembic import op

revision = "0044"
down_revision = "0043"
AMOUNTS = ("cpu", "gpu", "ram", "rom")
USED = ("cpu_used", "cpu_measured", "ram_used", "ram_measured")


def upgrade() -> None:
    """Add the columns and tables."""
    op.add_column("resource_request", sa.Column("since", sa.Double()))
    op.add_column("resource_request", sa.Column("counted", sa.Double()))
    op.execute(sa.text("UPDATE resource_request SET since = :now").bindparams(now=time.time()))
    op.create_table(
        "ledger_span",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("applier", sa.String(8), nullable=False),
        sa.Column("tenant", sa.String(50), nullable=False),
        sa.Column("user", sa.String(255), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in AMOUNTS),
        sa.Column("kinds", sa.Text()),
        sa.Column("shares", sa.Text()),
        sa.Column("begins", sa.Double(), nullable=False),
        sa.Column("counted", sa.Double()),
        sa.Column("ends", sa.Double(), nullable=False),
        sa.Column("cpu_used", sa.BigInteger()),
        sa.Column("ram_used", sa.BigInteger()),
        sa.Column("ran_from", sa.Double()),
        sa.PrimaryKeyConstraint("id", name="pk_ledger_span"),
    )
    op.create_table(
        "usage_total",
        sa.Column("grain", sa.String(8), nullable=False),
        sa.Column("period", sa.Integer(), nullable=False),
        sa.Column("tenant", sa.String(100), nullable=False),
        sa.Column("user", sa.String(255), nullable=False),
        sa.Column("work", sa.String(16), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("gpu_kind", sa.String(255), nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in (*AMOUNTS, *USED)),
        sa.PrimaryKeyConstraint(
            "grain", "period", "tenant", "user", "work", "name", "gpu_kind", name="pk_usage_total"
        ),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """Forget the accounting."""
    op.drop_table("usage_total")
    op.drop_table("ledger_span")
    op.drop_column("resource_request", "counted")
    op.drop_column("resource_request", "since")
