"""Indexes that find a tenant's children and the members of a cohort."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Go from 0001 to 0002."""
    op.create_index(op.f("ix_tenant_parent"), "tenant", ["parent"])
    op.create_index(op.f("ix_tenant_cohort"), "tenant", ["cohort"])


def downgrade() -> None:
    """Go back from 0002 to 0001."""
    op.drop_index(op.f("ix_tenant_cohort"), table_name="tenant")
    op.drop_index(op.f("ix_tenant_parent"), table_name="tenant")
