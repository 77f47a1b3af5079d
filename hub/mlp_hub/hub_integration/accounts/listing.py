"""Look-up of accounts in the hub's database: one page with all their data, in a few queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jupyterhub import orm
from nativeauthenticator.orm import UserInfo
from sqlalchemy import func

from mlp_hub.hub_integration.accounts.records import AccountRecord

LIMIT_MAX = 1000


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which accounts: `authorized` or not, those only that `wait` for their first approval, names that hold `search`."""

    authorized: bool | None = None
    waiting: bool = False
    search: str = ""


def page(db: Any, wanted: Wanted, *, after: str = "", limit: int = 100) -> list[dict[str, Any]]:
    """Return the first accounts by name, from behind `after` on."""
    query = _query(db, _COLUMNS, wanted)
    if after:
        query = query.filter(UserInfo.username > after)
    return _models(db, query.order_by(UserInfo.username).limit(limit).all())


def one(db: Any, name: str) -> dict[str, Any] | None:
    """Return one account; None where there is none."""
    found = _models(db, _query(db, _COLUMNS, Wanted()).filter(UserInfo.username == name).limit(1).all())
    return found[0] if found else None


def several(db: Any, names: list[str]) -> list[dict[str, Any]]:
    """Return those of these accounts that are there."""
    return _models(db, _query(db, _COLUMNS, Wanted()).filter(UserInfo.username.in_(names)).all())


def count(db: Any, wanted: Wanted) -> int:
    """Return how many there are."""
    return int(_query(db, (func.count(UserInfo.id),), wanted).scalar())


_COLUMNS = (
    UserInfo.username,
    UserInfo.is_authorized,
    orm.User.id,
    orm.User.admin,
    orm.User.created.label("user_created"),
    orm.User.last_activity,
    AccountRecord.created,
)


def _query(db: Any, columns: tuple[Any, ...], wanted: Wanted) -> Any:
    query = db.query(*columns).select_from(UserInfo)
    if wanted.waiting or columns is _COLUMNS:
        query = query.outerjoin(orm.User, orm.User.name == UserInfo.username)
    if columns is _COLUMNS:
        query = query.outerjoin(AccountRecord, AccountRecord.name == UserInfo.username)
    if wanted.authorized is not None:
        query = query.filter(UserInfo.is_authorized.is_(wanted.authorized))
    if wanted.waiting:  # who was ever let in has a record of the hub's
        query = query.filter(UserInfo.is_authorized.is_(False), orm.User.id.is_(None))
    if wanted.search:
        query = query.filter(UserInfo.username.contains(wanted.search, autoescape=True))
    return query


def _models(db: Any, rows: list[Any]) -> list[dict[str, Any]]:
    running = _running(db, [row.id for row in rows if row.id is not None])
    return [
        {
            "name": row.username,
            "authorized": bool(row.is_authorized),
            "admin": bool(row.admin),
            "created": None
            if (since := row.created or row.user_created) is None
            else f"{since.isoformat(timespec='seconds')}Z",
            "servers": running.get(row.id, 0),
            "last_activity": None
            if row.last_activity is None
            else f"{row.last_activity.isoformat(timespec='seconds')}Z",
        }
        for row in rows
    ]


def _running(db: Any, users: list[int]) -> dict[int, int]:
    """Return how many notebook servers run of those users that have any."""
    if not users:
        return {}
    query = db.query(orm.Spawner.user_id, func.count()).filter(
        orm.Spawner.user_id.in_(users), orm.Spawner.server_id.is_not(None)
    )
    return dict(query.group_by(orm.Spawner.user_id).all())
