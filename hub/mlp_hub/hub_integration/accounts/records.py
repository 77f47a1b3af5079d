"""Data of an account in the hub's database, in addition to its password."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from jupyterhub.orm import Base
from nativeauthenticator.orm import UserInfo
from sqlalchemy import Column, DateTime, Index, String

from mlp_hub.hub_integration.accounts.logins import Login


class AccountRecord(Base):  # type: ignore[misc]  # jupyterhub is untyped
    """When an account was asked for. The password and the approval are NativeAuthenticator's."""

    __tablename__ = "mlp_accounts"
    name = Column(String(128), primary_key=True)
    created = Column(DateTime, nullable=False)


_BY_NAME = Index("mlp_users_info_username", UserInfo.__table__.c.username)
"""Every login and every list looks for names, for which NativeAuthenticator has no index."""


def ensure_tables(db: Any) -> None:
    """Make what does not exist yet."""
    for record in (AccountRecord, Login):
        record.__table__.create(db.bind, checkfirst=True)
    _BY_NAME.create(db.bind, checkfirst=True)


def remember(db: Any, name: str) -> None:
    """Note that the account begins now; the caller commits."""
    db.merge(AccountRecord(name=name, created=datetime.now(UTC).replace(tzinfo=None)))


def remember_all(db: Any, names: Sequence[str]) -> None:
    """Note that these accounts begin now; the caller commits."""
    now = datetime.now(UTC).replace(tzinfo=None)
    known = AccountRecord.__table__.c.name  # of the table: mypy knows no column of the class
    db.query(AccountRecord).filter(known.in_(names)).delete(synchronize_session=False)
    db.add_all([AccountRecord(name=name, created=now) for name in names])


def forget(db: Any, name: str) -> None:
    """Drop what is kept of the account; the caller commits."""
    db.query(AccountRecord).filter(AccountRecord.name == name).delete()
