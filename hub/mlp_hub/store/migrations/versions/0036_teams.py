"""Actions of a team's admin: changes of submitted jobs, requests for quota and for places."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    """Add what was made of a job, and what is asked for."""
    op.add_column("job", sa.Column("steered", sa.Text(), nullable=True))
    op.create_table(
        "quota_request",
        sa.Column("uid", sa.String(27), nullable=False),
        sa.Column("tenant", sa.String(50), nullable=False),
        sa.Column("user", sa.String(255), nullable=False),
        sa.Column("asked_at", sa.Double(), nullable=False),
        sa.Column("amounts", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("phase", sa.String(16), nullable=False),
        sa.Column("decided_by", sa.String(255), nullable=True),
        sa.Column("decided_at", sa.Double(), nullable=True),
        sa.Column("word", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant"], ["tenant.name"], name="fk_quota_request_tenant_tenant", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("uid", name="pk_quota_request"),
    )
    op.create_index("ix_quota_request_tenant_uid", "quota_request", ["tenant", "uid"])
    op.create_index("ix_quota_request_phase", "quota_request", ["phase"])
    op.create_table(
        "join_request",
        sa.Column("tenant", sa.String(50), nullable=False),
        sa.Column("user", sa.String(255), nullable=False),
        sa.Column("asked_at", sa.Double(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant"], ["tenant.name"], name="fk_join_request_tenant_tenant", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("tenant", "user", name="pk_join_request"),
    )
    op.create_index("ix_join_request_user", "join_request", ["user"])
    op.create_table(
        "member_cap",
        sa.Column("tenant", sa.String(50), nullable=False),
        sa.Column("user", sa.String(255), nullable=False),
        sa.Column("cpu", sa.BigInteger(), nullable=True),
        sa.Column("gpu", sa.BigInteger(), nullable=True),
        sa.Column("jobs", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant"], ["tenant.name"], name="fk_member_cap_tenant_tenant", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("tenant", "user", name="pk_member_cap"),
    )


def downgrade() -> None:
    """Forget it."""
    op.drop_table("member_cap")
    op.drop_table("join_request")
    op.drop_table("quota_request")
    op.drop_column("job", "steered")
