"""The chain of hashes that makes changes of the audit log visible.

Each change of the log adds a link: a new entry, a repetition that is counted in its entry, a checkpoint. The digest of a link
is the SHA-256 of its entry. The hash of a link is the SHA-256 of the hash of the link before it, its number, its entry's id,
whether it counts a repetition, its time and its digest. Each field is hashed with its length in front, so two different entries
never give the same bytes.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from struct import Struct

_LENGTH = Struct(">q").pack
_NUMBER = Struct(">qq").pack  # with its length in front
_TIME = Struct(">qd").pack
_BEGIN = Struct(">qqqdq").pack
"""The first two fields of an entry, and the length of the third."""
_NOTHING = _LENGTH(-1)
"""Length of a field without a value."""
HASH_BYTES = 32
"""Given: bytes of a SHA-256."""
NO_HASH = bytes(HASH_BYTES)
"""Hash before the first link, and digest of a checkpoint that begins no chain."""
_OF_ENTRY = Struct(f">q{HASH_BYTES}sqqqqqBqq{HASH_BYTES}s").pack
"""Fields of the link of an entry, each with its length in front."""
_ONCE, _AGAIN = _LENGTH(1) + b"\0", _LENGTH(1) + b"\1"


@dataclass(frozen=True, slots=True)
class ChainLink:
    """Link `seq` of the chain. `entry` is the id of its entry, `time` is set for a checkpoint only.

    `again` marks the link of a repetition. Any other link of an entry is the first one of its id: an id is never given twice.
    The entry of a checkpoint is the newest one at its time. The first link of a chain is a checkpoint, and its digest is a
    random number that names the chain.
    """

    seq: int
    entry: int
    again: bool
    time: float | None
    digest: bytes
    hash: bytes


def entry_digest(  # noqa: PLR0917 - the columns of a row, in their order: called for each row of a check
    number: int,
    time: float,
    actor: bytes,
    action: bytes,
    name: bytes,
    tenant: bytes | None,
    detail: bytes,
) -> bytes:
    """Return the SHA-256 of an entry: its id, its time, and its texts as UTF-8."""
    team = _NOTHING if tenant is None else _LENGTH(len(tenant)) + tenant
    fields = (
        _BEGIN(8, number, 8, time, len(actor)),
        actor,
        _LENGTH(len(action)),
        action,
        _LENGTH(len(name)),
        name,
        team,
        _LENGTH(len(detail)),
        detail,
    )
    return hashlib.sha256(b"".join(fields)).digest()


def link_hash(  # noqa: PLR0917 - as above
    before: bytes, seq: int, entry: int, again: bool, time: float | None, digest: bytes
) -> bytes:
    """Return the hash of a link; `before` is the hash of the one before it."""
    if time is None and type(seq) is type(entry) is int and len(before) == len(digest) == HASH_BYTES:
        # the same bytes as below, in one call: of each entry that is appended or checked
        fixed = _OF_ENTRY(HASH_BYTES, before, 8, seq, 8, entry, 1, bool(again), -1, HASH_BYTES, digest)
        return hashlib.sha256(fixed).digest()
    when = _NOTHING if time is None else _TIME(8, time)
    fields = (
        _LENGTH(len(before)),
        before,
        _NUMBER(8, seq),
        _NUMBER(8, entry),
        _AGAIN if again else _ONCE,
        when,
        _LENGTH(len(digest)),
        digest,
    )
    return hashlib.sha256(b"".join(fields)).digest()


def made_link(
    before: bytes, seq: int, entry: int, digest: bytes, *, again: bool = False, time: float | None = None
) -> ChainLink:
    """Return a link with its hash."""
    return ChainLink(seq, entry, again, time, digest, link_hash(before, seq, entry, again, time, digest))
