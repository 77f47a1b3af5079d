"""What the hub's database keeps of an account besides its password."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from jupyterhub.orm import Base
from sqlalchemy import Column, DateTime, String, inspect


class AccountRecord(Base):  # type: ignore[misc]  # jupyterhub is untyped
    """When an account was asked for. The password and the approval are NativeAuthenticator's."""

    __tablename__ = "mlp_accounts"
    name = Column(String(128), primary_key=True)
    created = Column(DateTime, nullable=False)


def ensure_table(db: Any) -> None:
    """Make the table where it does not exist yet."""
    if not inspect(db.bind).has_table(AccountRecord.__tablename__):
        AccountRecord.__table__.create(db.bind)


def remember(db: Any, name: str) -> None:
    """Note that the account begins now; the caller commits."""
    db.merge(AccountRecord(name=name, created=datetime.now(UTC).replace(tzinfo=None)))


def forget(db: Any, name: str) -> None:
    """Drop what is kept of the account; the caller commits."""
    db.query(AccountRecord).filter(AccountRecord.name == name).delete()


def created(db: Any) -> dict[str, str]:
    """Map names to when their accounts were asked for, RFC 3339 UTC."""
    return {row.name: f"{row.created.isoformat(timespec='seconds')}Z" for row in db.query(AccountRecord)}
