"""Data and results of runs, and people's notes on them; earlier runs are summed up over time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    """Go from 0030 to 0032."""
    op.create_table(
        "run_origin",
        _job(),
        sa.Column("commit", sa.String(64), nullable=True),
        sa.Column("dirty", sa.Boolean(), nullable=True),
        sa.Column("environment", sa.String(64), nullable=True),
        sa.Column("program", sa.String(64), nullable=True),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        *_keys("run_origin"),
    )
    op.create_index("ix_run_origin_environment", "run_origin", ["environment"])
    op.create_index("ix_run_origin_program", "run_origin", ["program"])
    op.create_table(
        "run_text",
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name="pk_run_text"),
    )
    op.create_table(
        "run_value",
        _job(),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("number", sa.Double(), nullable=True),
        sa.Column("best", sa.Double(), nullable=True),
        sa.Column("low", sa.Double(), nullable=True),
        sa.Column("high", sa.Double(), nullable=True),
        sa.Column("text", sa.Text(), nullable=False),
        *_keys("run_value", "kind", "name"),
    )
    op.create_table(
        "run_summary",
        _job(),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("final", sa.Boolean(), nullable=False),
        sa.Column("ran", sa.Double(), nullable=True),
        sa.Column("cpu_peak", sa.Double(), nullable=True),
        sa.Column("ram_peak", sa.BigInteger(), nullable=True),
        *_keys("run_summary"),
    )
    op.create_table("run_note", _job(), sa.Column("note", sa.Text(), nullable=False), *_keys("run_note"))
    op.create_table(
        "run_tag", _job(), sa.Column("tag", sa.String(50), nullable=False), *_keys("run_tag", "tag")
    )


def _job() -> sa.Column[str]:
    return sa.Column("job", sa.String(26), nullable=False)


def _keys(table: str, *more: str) -> tuple[sa.ForeignKeyConstraint, sa.PrimaryKeyConstraint]:
    return (
        sa.ForeignKeyConstraint(["job"], ["job.uid"], name=f"fk_{table}_job_job", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job", *more, name=f"pk_{table}"),
    )


def downgrade() -> None:
    """Go back from 0032 to 0030."""
    for table in ("run_tag", "run_note", "run_summary", "run_value", "run_text", "run_origin"):
        op.drop_table(table)
