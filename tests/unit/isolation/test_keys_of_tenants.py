"""Keys are kept wrapped, and both rotations can be killed anywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlp_hub.isolation import KeyStore, KeyUnknownError


def store(tmp_path: Path) -> KeyStore:
    return KeyStore(tmp_path / "keys", tmp_path / "secrets" / "isolation_key")


def test_a_key_is_created_once_and_is_never_stored_in_clear(tmp_path: Path) -> None:
    keys = store(tmp_path)
    keys.ensure("red")
    (key,) = keys.keys("red")
    keys.ensure("red")
    assert keys.keys("red") == [key]
    assert len(bytes.fromhex(key)) == 32
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert key not in path.read_text()
            assert path.stat().st_mode & 0o077 == 0


def test_one_tenants_wrapped_key_is_of_no_use_to_another(tmp_path: Path) -> None:
    keys = store(tmp_path)
    keys.ensure("red")
    (tmp_path / "keys" / "blue.json").write_bytes((tmp_path / "keys" / "red.json").read_bytes())
    with pytest.raises(KeyUnknownError):
        keys.keys("blue")


def test_without_the_master_key_none_is_opened(tmp_path: Path) -> None:
    keys = store(tmp_path)
    keys.ensure("red")
    (tmp_path / "secrets" / "isolation_key").write_text("ab" * 32)
    with pytest.raises(KeyUnknownError, match="another master key"):
        keys.keys("red")


def test_another_master_key_wraps_the_same_keys(tmp_path: Path) -> None:
    keys, master = store(tmp_path), tmp_path / "secrets" / "isolation_key"
    for tenant in ("red", "blue"):
        keys.ensure(tenant)
    before = {tenant: keys.keys(tenant) for tenant in ("red", "blue")}
    old = master.read_text()
    assert keys.rotate_master() == 2
    assert master.read_text() != old
    assert {tenant: keys.keys(tenant) for tenant in ("red", "blue")} == before
    master.write_text(old)
    with pytest.raises(KeyUnknownError):
        keys.keys("red")


def test_a_rotation_of_the_master_that_was_killed_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = store(tmp_path)
    for tenant in ("red", "blue"):
        keys.ensure(tenant)
    before = {tenant: keys.keys(tenant) for tenant in ("red", "blue")}
    wrapped = keys._keep

    def keep(tenant: str, plain: list[str]) -> None:
        if tenant == "red":
            raise KeyboardInterrupt
        wrapped(tenant, plain)

    monkeypatch.setattr(keys, "_keep", keep)
    with pytest.raises(KeyboardInterrupt):
        keys.rotate_master()
    assert {tenant: store(tmp_path).keys(tenant) for tenant in ("red", "blue")} == before
    store(tmp_path).rotate_master()
    assert {tenant: store(tmp_path).keys(tenant) for tenant in ("red", "blue")} == before
    assert len((tmp_path / "secrets" / "isolation_key").read_text().split()) == 1


def test_a_tenants_rotation_that_was_killed_is_gone_on_with_under_the_same_new_key(tmp_path: Path) -> None:
    keys = store(tmp_path)
    keys.ensure("red")
    (old,) = keys.keys("red")
    asked: list[tuple[str, str]] = []

    def killed(before: str, after: str) -> None:
        asked.append((before, after))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        keys.rotate("red", killed)
    assert keys.keys("red") == [asked[0][1], old]
    keys.rotate("red", lambda before, after: asked.append((before, after)))
    assert asked[1] == asked[0]
    assert keys.keys("red") == [asked[0][1]]
