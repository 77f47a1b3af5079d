"""Locks of WebDAV: so many for each user, so that the others' find room."""

from __future__ import annotations

from typing import Any

import pytest
from wsgidav.dav_error import DAVError
from wsgidav.lock_man.lock_manager import LockManager
from wsgidav.rw_lock import ReadWriteLock

from mlp_hub.dav.files import locks
from mlp_hub.dav.files.locks import BoundedLocks


def lock(n: int, user: str, **fields: Any) -> dict[str, Any]:
    return {
        "root": f"/data/{user}/pets/{n}",
        "principal": user,
        "type": "write",
        "scope": "exclusive",
        "depth": "0",
        "owner": b"",
        "timeout": 600,
        **fields,
    }


@pytest.fixture
def held() -> BoundedLocks:
    found = BoundedLocks()
    found.open()
    return found


def test_locks_per_user_are_limited_and_other_users_have_room(
    held: BoundedLocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "MOST_OF_USER", 3)
    tokens = [held.create(f"/data/ann/pets/{n}", lock(n, "ann"))["token"] for n in range(3)]
    with pytest.raises(DAVError, match="too many locks"):
        held.create("/data/ann/pets/3", lock(3, "ann"))
    held.create("/data/bob/pets/0", lock(0, "bob"))
    held.delete(tokens[0])
    held.create("/data/ann/pets/3", lock(3, "ann"))


def test_locks_that_have_ended_make_room(held: BoundedLocks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "MOST_OF_USER", 1)
    token = held.create("/data/ann/pets/0", lock(0, "ann"))["token"]
    held._dict[token] = {**held._dict[token], "expire": 1.0}
    held.create("/data/ann/pets/1", lock(1, "ann"))


def test_the_owner_text_of_a_lock_has_a_maximum_length(held: BoundedLocks) -> None:
    held.create("/data/ann/pets/0", lock(0, "ann", owner=b"o" * locks.OWNER_BYTES))
    with pytest.raises(DAVError, match="bytes; at most"):
        held.create("/data/ann/pets/1", lock(1, "ann", owner=b"o" * (locks.OWNER_BYTES + 1)))


def test_locks_that_have_ended_are_in_nobodys_way_however_many(held: BoundedLocks) -> None:
    """Who removes a directory asks for all that is below: a lock that has ended is forgotten, and is no error."""
    for n in range(3):
        token = held.create(f"/data/ann/pets/dir/{n}", lock(n, "ann"))["token"]
        held._dict[token] = {**held._dict[token], "expire": 1.0}
    held.create("/data/ann/pets/dir2", lock(4, "ann"))
    manager = LockManager.__new__(LockManager)
    manager._lock, manager.storage = ReadWriteLock(), held
    for url in ("/data/ann/pets/dir/", "/data/ann/pets/dir"):
        manager.check_write_permission(url=url, depth="infinity", token_list=[], principal="ann")
    below = held.create("/data/ann/pets/dir/5", lock(5, "ann"))["token"]
    ask = {"include_root": False, "include_children": True}
    assert held.get_lock_list("/data/ann/pets/dir/", **ask, token_only=True) == [below]
    with pytest.raises(DAVError) as refused:
        manager.check_write_permission(
            url="/data/ann/pets/dir/", depth="infinity", token_list=[], principal="ann"
        )
    assert refused.value.value == 423
    assert held.get_lock_list(
        "/data/ann/pets/dir/5", include_root=True, include_children=False, token_only=False
    )
