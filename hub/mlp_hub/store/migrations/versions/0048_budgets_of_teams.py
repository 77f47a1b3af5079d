"""Budgets of teams, their levels with a notice, and the attempt of a job for each span."""

from __future__ import annotations

import time

import sqlalchemy as sa
from alembic import op

revision = "0048"
down_revision = "0047"


def upgrade() -> None:
    """Add the tables and the column."""
    op.add_column("ledger_span", sa.Column("attempt", sa.String(40)))
    # what was held before is in no sum of a run
    op.execute(
        sa.text("INSERT INTO setting (key, value) VALUES ('accounting.runs_since', :now)").bindparams(
            now=str(time.time())
        )
    )
    op.create_table(
        "team_budget",
        sa.Column("tenant", sa.String(50), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("levels", sa.Text(), nullable=False),
        sa.Column("stops", sa.Boolean(), nullable=False),
        sa.Column("begins", sa.Integer()),
        sa.Column("ends", sa.Integer()),
        sa.Column("seen", sa.Integer()),
        sa.PrimaryKeyConstraint("tenant", name="pk_team_budget"),
        sa.ForeignKeyConstraint(
            ["tenant"], ["tenant.name"], name="fk_team_budget_tenant_tenant", ondelete="CASCADE"
        ),
    )
    op.create_table(
        "budget_notice",
        sa.Column("tenant", sa.String(50), nullable=False),
        sa.Column("period", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("level", sa.Integer(), nullable=False, autoincrement=False),
        sa.PrimaryKeyConstraint("tenant", "period", "level", name="pk_budget_notice"),
        sa.ForeignKeyConstraint(
            ["tenant"],
            ["team_budget.tenant"],
            name="fk_budget_notice_tenant_team_budget",
            ondelete="CASCADE",
        ),
    )


def downgrade() -> None:
    """Forget the budgets."""
    op.drop_table("budget_notice")
    op.drop_table("team_budget")
    op.drop_column("ledger_span", "attempt")
    op.execute(sa.text("DELETE FROM setting WHERE key = 'accounting.runs_since'"))
    op.execute(sa.text("DELETE FROM usage_total WHERE grain = 'run'"))
