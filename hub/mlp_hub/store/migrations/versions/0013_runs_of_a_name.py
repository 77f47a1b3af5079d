"""A name of a user's jobs has runs; the jobs that are there are the first of theirs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
CHILDREN = ("ended_job", "job_event", "decision", "job_metrics", "metric_source", "job_token")
EARLIER = (
    'SELECT a.uid FROM job AS a JOIN job AS b ON b."user" = a."user" AND b.name = a.name AND b.run > a.run'
)


def upgrade() -> None:
    """Add the column, filled in, and let a name come once a run."""
    op.add_column("job", sa.Column("run", sa.Integer(), nullable=True))
    op.execute("UPDATE job SET run = 1")
    with op.batch_alter_table("job") as table:
        table.alter_column("run", existing_type=sa.Integer(), nullable=False)
        table.drop_constraint("uq_job_user_name", type_="unique")
        table.create_unique_constraint("uq_job_user_name_run", ["user", "name", "run"])


def downgrade() -> None:
    """Take it away; of each name the latest run stays."""
    for child in CHILDREN:  # no row follows its job by itself while tables are copied
        op.execute(f"DELETE FROM {child} WHERE job IN ({EARLIER})")  # noqa: S608 - of constants
    op.execute(f"DELETE FROM job WHERE uid IN ({EARLIER})")  # noqa: S608
    with op.batch_alter_table("job") as table:
        table.drop_constraint("uq_job_user_name_run", type_="unique")
        table.create_unique_constraint("uq_job_user_name", ["user", "name"])
        table.drop_column("run")
