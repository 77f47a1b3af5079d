"""Which user of the hub a person of the provider is: for good, by issuer and subject, whatever they are called there later.

A row stays when the user is deleted: the name, and the home of that name, are nobody else's afterwards.
"""

from __future__ import annotations

import re
import unicodedata
from base64 import b32encode
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from itertools import count
from typing import Any

from jupyterhub import orm
from sqlalchemy import Column, DateTime, String

from mlp_hub.domain.tenants.account_names import NAME_MAX, is_valid, normalize
from mlp_hub.domain.tenants.service_account import is_service
from mlp_hub.hub_integration.providers.protocols.provider import ProviderIdentity

_OTHER = re.compile(r"[^a-z0-9._-]+")
_MADE_UP = "person"


class PersonIdentity(orm.Base):  # type: ignore[misc]  # jupyterhub is untyped
    """A person of a provider, and the name of the user that they are here."""

    __tablename__ = "mlp_identities"
    issuer = Column(String(255), primary_key=True)
    subject = Column(String(255), primary_key=True)
    name = Column(String(128), nullable=False, unique=True)
    claimed_name = Column(String(255), nullable=False)
    """Last name of the person there; shown to administrators, and used for nothing."""
    begun = Column(DateTime, nullable=False)


def ensure_table(db: Any) -> None:
    """Make it where it is not there yet."""
    PersonIdentity.__table__.create(db.bind, checkfirst=True)


def of_name(db: Any, name: str) -> Any:
    """Return the person that a user of the hub is; None for an account of the hub's own."""
    return db.query(PersonIdentity).filter(PersonIdentity.name == name).first()


def find(db: Any, issuer: str, subject: str) -> Any:
    """Return a person; None who never was here."""
    return db.get(PersonIdentity, (issuer, subject))


def claim(db: Any, identity: ProviderIdentity, is_taken: Callable[[str], bool]) -> str:
    """Return the user name of a person, the same each time; a new person gets a free one.

    The caller commits.
    """
    known = find(db, identity.issuer, identity.subject)
    if known is None:
        known = PersonIdentity(
            issuer=identity.issuer,
            subject=identity.subject,
            name=new_name(identity, lambda name: is_taken(name) or of_name(db, name) is not None),
            begun=datetime.now(UTC).replace(tzinfo=None),
        )
        db.add(known)
    known.claimed_name = identity.claimed_name
    return str(known.name)


def new_name(identity: ProviderIdentity, is_taken: Callable[[str], bool]) -> str:
    """Return a free user name from a person's name: that name, or with a number at its end."""
    base = plain_name(identity)
    for number in count(1):
        tail = "" if number == 1 else f"-{number}"
        name = f"{base[: NAME_MAX - len(tail)].rstrip('._-')}{tail}"
        if is_valid(name) and not is_taken(name):
            return name
    raise AssertionError  # pragma: no cover - numbers do not end


def plain_name(identity: ProviderIdentity) -> str:
    """Write what somebody is called as a user name.

    A valid user name stays as it is, and of an address the part before the `@`. Of anything else the plain letters are
    kept, those below an accent too, with a mark of the person behind them: letters that look alike give nobody another's name.
    """
    claimed = normalize(identity.claimed_name)
    local = claimed.partition("@")[0]
    for name in (claimed, local):
        if is_valid(name) and not is_service(name):
            return name
    kept = _OTHER.sub("-", local.lower() if local.isascii() else _ascii_small(local)).strip("._-")
    if not kept or not kept[0].isalpha() or is_service(f"{kept}-"):
        kept = f"{_MADE_UP}-{kept}".rstrip("-")
    digest = sha256(f"{identity.issuer}\0{identity.subject}".encode()).digest()
    mark = b32encode(digest)[:6].decode().lower()
    return f"{kept[: NAME_MAX - 7].rstrip('._-')}-{mark}"


def _ascii_small(text: str) -> str:
    """Make plain letters small, also those below an accent (jürgen: jurgen), and no others.

    Unicode's own ways make plain letters of some that only look like them, as of the Kelvin sign.
    """
    return "".join(_plain(letter).lower() if _plain(letter).isascii() else letter for letter in text)


def _plain(letter: str) -> str:
    base, *accents = tuple(unicodedata.normalize("NFD", letter))
    return base if accents and all(map(unicodedata.combining, accents)) else letter
