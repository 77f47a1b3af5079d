"""The note of a run is a column of its job, so that each answer about the job has it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0053"
down_revision = "0052"

_JOB = sa.table("job", sa.column("uid", sa.String()), sa.column("note", sa.Text()))
_RUN_NOTE = sa.table("run_note", sa.column("job", sa.String()), sa.column("note", sa.Text()))


def upgrade() -> None:
    """Move the notes to the jobs."""
    op.add_column("job", sa.Column("note", sa.Text()))
    of_job = sa.select(_RUN_NOTE.c.note).where(_RUN_NOTE.c.job == _JOB.c.uid).scalar_subquery()
    noted = sa.select(_RUN_NOTE.c.job).where(_RUN_NOTE.c.note != "")
    op.execute(sa.update(_JOB).where(_JOB.c.uid.in_(noted)).values(note=of_job))
    op.drop_table("run_note")


def downgrade() -> None:
    """Move them back."""
    op.create_table(
        "run_note",
        sa.Column("job", sa.String(26), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["job"], ["job.uid"], name="fk_run_note_job_job", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job", name="pk_run_note"),
    )
    there = sa.select(_JOB.c.uid, _JOB.c.note).where(_JOB.c.note.is_not(None))
    op.execute(sa.insert(_RUN_NOTE).from_select(["job", "note"], there))
    op.drop_column("job", "note")
