"""Teams' policies for idle notebook servers, and the countdowns of such servers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0047"
down_revision = "0046"


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "idle_server_policy",
        sa.Column("tenant", sa.String(50), nullable=False),
        sa.Column("after_s", sa.Integer(), nullable=False),
        sa.Column("grace_s", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant"], ["tenant.name"], name="fk_idle_server_policy_tenant_tenant", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("tenant", name="pk_idle_server_policy"),
    )
    op.create_table(
        "idle_server",
        sa.Column("user", sa.String(255), nullable=False),
        sa.Column("server", sa.String(255), nullable=False),
        sa.Column("tenant", sa.String(50), nullable=False),
        sa.Column("began", sa.Double(), nullable=False),
        sa.Column("idle_s", sa.Double(), nullable=False),
        sa.Column("left_s", sa.Double()),
        sa.Column("kept_s", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("user", "server", name="pk_idle_server"),
    )


def downgrade() -> None:
    """Forget both."""
    op.drop_table("idle_server")
    op.drop_table("idle_server_policy")
