"""Tokens of the provider that were taken, kept until nobody would take them for their age: none is taken twice, nor after a restart."""

from __future__ import annotations

import hashlib
from typing import Any

from jupyterhub import orm
from sqlalchemy import Column, Float, String
from sqlalchemy.exc import IntegrityError


class TakenToken(orm.Base):  # type: ignore[misc]  # jupyterhub is untyped
    """A token that was taken, by its digest; `over` is when it would be refused for its age, in seconds since the epoch."""

    __tablename__ = "mlp_provider_taken"
    digest = Column(String(64), primary_key=True)
    kind = Column(String(16), nullable=False, index=True)
    over = Column(Float, nullable=False)


class TooManyTakenError(Exception):
    """So many tokens were taken lately that no more can be remembered."""


def ensure_table(db: Any) -> None:
    """Make it where it is not there yet."""
    TakenToken.__table__.create(db.bind, checkfirst=True)


def take(db: Any, kind: str, name: str, *, over: float, now: float, most: int) -> bool:
    """Note a token of a kind as taken and commit; return whether it was not before.

    `most`: tokens of that kind that are remembered; beyond raises TooManyTakenError.
    """
    mine = db.query(TakenToken).filter(TakenToken.kind == kind)
    mine.filter(TakenToken.over <= now).delete()
    if mine.count() >= most:
        db.commit()
        raise TooManyTakenError
    digest = hashlib.sha256(f"{kind} {name}".encode()).hexdigest()
    fresh = db.get(TakenToken, digest) is None
    if fresh:
        db.add(TakenToken(digest=digest, kind=kind, over=over))
    try:
        db.commit()
    except IntegrityError:  # another hub on this database took it at the same moment
        db.rollback()
        return False
    return fresh
