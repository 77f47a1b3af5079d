"""Names of metrics once for each job, and the bytes of its points.

Existing rows keep their form, which readers still know. A new form for all points would take
minutes and twice their room.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"


def upgrade() -> None:
    """Go from 0040 to 0041."""
    op.create_table(
        "metric_total",
        sa.Column("job", sa.String(26), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("names", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["job"], ["job.uid"], name="fk_metric_total_job_job", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job", name="pk_metric_total"),
    )
    op.execute(
        sa.text(
            "INSERT INTO metric_total (job, bytes, names) "
            "SELECT job, sum(length(payload) + 64), :none FROM job_metrics GROUP BY job"
        ).bindparams(sa.bindparam("none", b"\x90", sa.LargeBinary()))
    )


def downgrade() -> None:
    """Go back from 0041 to 0040; points stored since are of a form that older versions do not read, and go."""
    newer = "substr(payload, 1, 1) = :form"
    op.execute(
        sa.text(f"DELETE FROM job_metrics WHERE {newer}").bindparams(  # noqa: S608 - a text of this file
            sa.bindparam("form", b"\x01", sa.LargeBinary())
        )
    )
    op.drop_table("metric_total")
