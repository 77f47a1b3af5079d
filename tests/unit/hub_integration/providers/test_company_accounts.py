"""People of the provider and accounts of the hub beside each other, in the hub's database."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jupyterhub import orm
from nativeauthenticator.orm import UserInfo

from mlp_hub.hub_integration.accounts.outbox import OutboxEntry
from mlp_hub.hub_integration.accounts.refusal import AccountRefused
from mlp_hub.hub_integration.providers.login.authenticator import CompanyAccounts
from mlp_hub.hub_integration.providers.protocols.provider import (
    ARRIVAL,
    LoginResult,
    PendingLogin,
    ProviderIdentity,
)
from mlp_hub.hub_integration.providers.records import identities
from mlp_hub.settings import Settings

ANN = ProviderIdentity(
    "https://sso.example.org", "s-ann", "ann", "ann@example.org", True, ("/ml/red",), False
)
BEGUN = PendingLogin(
    ANN.issuer, "http://localhost:8000/hub/oauth_callback", "0" * 32, "nonce", "verifier", "", 0.0
)
HANDLER = SimpleNamespace(
    current_user=None, request=SimpleNamespace(connection=None, remote_ip="127.0.0.1", headers={})
)
RIGHT = "correct horse battery"

Make = Callable[..., CompanyAccounts]


@pytest.fixture
def accounts_with(tmp_path: Path) -> Make:
    """Make the accounts of a hub with these settings, always on the same database."""
    same = orm.new_session_factory("sqlite:///:memory:")()

    def make(db: Any = same, **environ: str) -> CompanyAccounts:
        settings = Settings.load(
            {
                "MLP_HOME": str(tmp_path),
                "MLP_LOGIN": "oidc",
                "MLP_LOGIN_ISSUER": ANN.issuer,
                "MLP_LOGIN_CLIENT_ID": "mlp-hub",
                "MLP_LOGIN_TITLE": "the company",
                "MLP_LOGIN_TENANTS": "/ml/{tenant} -> {tenant}",
                **environ,
            }
        )
        return CompanyAccounts(db=db, settings_of=lambda: settings, reserved_names={"admin"})

    return make


@pytest.fixture
def accounts(accounts_with: Make) -> CompanyAccounts:
    return accounts_with()


def arrive(accounts: CompanyAccounts, identity: ProviderIdentity = ANN, **begun: Any) -> dict[str, Any]:
    arrival = LoginResult(identity, {"subject": identity.subject}, None)
    data = {"username": identity.claimed_name, ARRIVAL: (arrival, replace(BEGUN, **begun))}
    found: dict[str, Any] = asyncio.run(accounts.get_authenticated_user(HANDLER, data))
    return found


def own_account(accounts: CompanyAccounts, name: str, *, admin: bool = False) -> None:
    """Make an account of the hub's own, with a password."""
    hashed = asyncio.run(accounts.hasher.hashed(RIGHT))
    accounts.store_account(name, hashed, authorized=True)
    accounts.db.add(orm.User(name=name, admin=admin))
    accounts.db.commit()


def by_password(accounts: CompanyAccounts, name: str, password: str = RIGHT) -> str | None:
    return asyncio.run(accounts._authenticate(name, password, name))


def why(action: Callable[[], Any]) -> str:
    with pytest.raises(AccountRefused) as refused:
        action()
    return refused.value.message.template


def test_a_new_person_has_an_account_at_once_and_it_is_managed(accounts: CompanyAccounts) -> None:
    found = arrive(accounts)
    assert (found["name"], found["groups"], found["auth_state"]) == ("ann", ["/ml/red"], {"subject": "s-ann"})
    assert UserInfo.find(accounts.db, "ann").is_authorized
    assert accounts.managed_by("ann") == "the company"
    assert arrive(accounts, replace(ANN, claimed_name="anna"))["name"] == "ann"


def test_names_of_the_hubs_own_accounts_and_reserved_ones_are_not_taken_over(
    accounts: CompanyAccounts,
) -> None:
    own_account(accounts, "ann")
    assert arrive(accounts)["name"] == "ann-2"
    assert arrive(accounts, replace(ANN, subject="s-admin", claimed_name="admin"))["name"] == "admin-2"
    assert accounts.managed_by("ann") == ""


def test_nobody_gets_an_own_account_under_the_name_of_a_person_of_the_provider(accounts_with: Make) -> None:
    accounts = accounts_with(MLP_LOGIN_ACCOUNTS="all")
    arrive(accounts)
    said = why(lambda: asyncio.run(accounts.sign_up("ann", RIGHT, "127.0.0.1")))
    assert "is taken" in said
    # not even after the account was deleted in the panel: the home is still there
    accounts.db.delete(UserInfo.find(accounts.db, "ann"))
    accounts.db.commit()
    assert "is taken" in why(lambda: asyncio.run(accounts.prepare_account("ann", RIGHT)))
    assert arrive(accounts)["name"] == "ann"


def test_an_account_that_was_made_under_the_name_meanwhile_stays_its_owners(
    accounts: CompanyAccounts,
) -> None:
    arrive(accounts)
    accounts.db.delete(UserInfo.find(accounts.db, "ann"))
    accounts.db.add(
        UserInfo(username="ann", password=b"hash", is_authorized=True)
    )  # by a hub without the provider
    accounts.db.commit()
    assert arrive(accounts)["name"] == "ann-2"
    assert arrive(accounts)["name"] == "ann-2"


def test_a_user_whose_account_was_closed_in_the_panel_learns_the_reason(accounts: CompanyAccounts) -> None:
    arrive(accounts)
    UserInfo.find(accounts.db, "ann").is_authorized = False
    accounts.db.commit()
    assert "was closed" in why(lambda: arrive(accounts))


def test_administrators_are_those_of_the_group_where_one_is_set_and_else_as_the_panel_says(
    accounts_with: Make,
) -> None:
    assert arrive(accounts_with())["admin"] is None
    accounts = accounts_with(MLP_LOGIN_ADMIN_GROUPS="/ops")
    assert arrive(accounts, replace(ANN, admin=True))["admin"] is True
    assert arrive(accounts)["admin"] is False


def test_an_admin_right_by_a_group_is_written_down_with_the_login_that_brings_it(accounts_with: Make) -> None:
    accounts = accounts_with(MLP_LOGIN_ADMIN_GROUPS="/ops")
    chief = replace(ANN, admin=True, groups=("/ops",))

    def told() -> list[tuple[str, str, bool]]:
        accounts.db.rollback()  # what is not committed is gone with a kill
        rows = accounts.db.query(OutboxEntry).order_by(OutboxEntry.id)
        return [(row.kind, row.user, json.loads(row.fields)["admin"]) for row in rows]

    arrive(accounts)
    assert told() == []
    arrive(accounts, chief)
    assert told() == [("group_admin", "ann", True)]
    accounts.db.add(orm.User(name="ann", admin=True))  # as JupyterHub has them after that
    accounts.db.commit()
    arrive(accounts, chief)
    arrive(accounts)
    assert told() == [("group_admin", "ann", True), ("group_admin", "ann", False)]


def test_an_administrator_at_one_provider_has_no_admin_rights_by_another(accounts_with: Make) -> None:
    accounts = accounts_with(MLP_LOGIN_ADMIN_GROUPS="/ops")
    assert arrive(accounts, replace(ANN, admin=True, groups=("/ops",)))["admin"] is True
    elsewhere = replace(ANN, issuer="https://other.example.org", groups=())
    found = arrive(accounts, elsewhere)
    assert (found["name"], found["admin"]) == ("ann-2", False)


def test_one_person_who_is_let_in_twice_at_once_is_one_user(tmp_path: Path, accounts_with: Make) -> None:
    """Two hubs on one database, as while one takes over from the other."""
    open_ = orm.new_session_factory(f"sqlite:///{tmp_path / 'hub.sqlite'}")
    one, other = accounts_with(db=open_()), accounts_with(db=open_())
    meanwhile(one, lambda: other._found_or_made(LoginResult(ANN, {}, None), BEGUN))
    assert arrive(one)["name"] == arrive(other)["name"] == "ann"
    assert [row.name for row in one.db.query(identities.PersonIdentity)] == ["ann"]
    assert [row.username for row in one.db.query(UserInfo)] == ["ann"]
    bob, rob = (replace(ANN, subject=f"s-{name}", claimed_name="bob") for name in ("bob", "rob"))
    meanwhile(one, lambda: other._found_or_made(LoginResult(rob, {}, None), BEGUN))
    assert arrive(one, bob)["name"] == "bob-2"
    assert arrive(one, rob)["name"] == "bob"


def meanwhile(accounts: CompanyAccounts, happens: Callable[[], Any]) -> None:
    """Have something happen once, after the accounts have seen that a name is free."""
    looked, left = accounts._is_taken, [happens]

    def taken(name: str) -> bool:
        found = looked(name)
        if left:
            left.pop()()
        return found

    accounts._is_taken = taken  # type: ignore[method-assign]


async def test_a_login_waits_until_a_refresh_of_the_same_person_has_ended(
    accounts: CompanyAccounts,
) -> None:
    expected: list[str] = []
    gate = asyncio.Event()

    async def expect(name: str) -> None:
        expected.append(name)
        await gate.wait()

    noted: list[str] = []
    refresher = SimpleNamespace(expect=expect, arrived=noted.append)
    accounts.watching = SimpleNamespace(refresher=refresher)  # type: ignore[assignment]
    data = {"username": "ann", ARRIVAL: (LoginResult(ANN, {"subject": ANN.subject}, None), BEGUN)}
    await accounts.get_authenticated_user(HANDLER, data)
    assert (expected, noted) == ([], ["ann"])
    again = asyncio.create_task(accounts.get_authenticated_user(HANDLER, data))
    for _ in range(10):
        await asyncio.sleep(0)
    assert (expected, noted) == (["ann"], ["ann"])
    gate.set()
    await again
    assert noted == ["ann", "ann"]


def test_somebody_else_cannot_confirm(accounts: CompanyAccounts) -> None:
    arrive(accounts)
    assert arrive(accounts, confirms="ann")["name"] == "ann"
    bob = replace(ANN, subject="s-bob", claimed_name="bob")
    assert "reports another user" in why(lambda: arrive(accounts, bob, confirms="ann"))
    assert UserInfo.find(accounts.db, "bob") is None


def test_a_form_cannot_arrive(accounts: CompanyAccounts) -> None:
    data = {"username": "ann", "password": "x", ARRIVAL: "('s-ann', 'now')"}
    assert asyncio.run(accounts.get_authenticated_user(HANDLER, data)) is None


# ------------------------------------------------------------------------ passwords


@pytest.mark.parametrize("password", ["", "x", "\0", "arrival"])
def test_no_password_is_that_of_a_person_of_the_provider(accounts_with: Make, password: str) -> None:
    accounts = accounts_with(MLP_LOGIN_ACCOUNTS="all")
    arrive(accounts)
    assert by_password(accounts, "ann", password) is None
    assert "manages the password" in why(lambda: asyncio.run(accounts.set_password("ann", RIGHT)))


def test_administrators_log_in_with_a_password_for_when_the_provider_is_away(
    accounts: CompanyAccounts,
) -> None:
    own_account(accounts, "root-of-all", admin=True)
    own_account(accounts, "carol")
    assert by_password(accounts, "root-of-all") == "root-of-all"
    assert "only administrators" in why(lambda: by_password(accounts, "carol"))
    assert by_password(accounts, "carol", "wrong") is None, "only who knows the password is told"
    assert "managed by" in why(lambda: asyncio.run(accounts.sign_up("dora", RIGHT, "127.0.0.1")))
    assert accounts.enable_signup is False


def test_all_or_none_may_where_it_is_set_so(accounts_with: Make) -> None:
    accounts = accounts_with(MLP_LOGIN_ACCOUNTS="all")
    own_account(accounts, "carol")
    own_account(accounts, "root-of-all", admin=True)
    assert by_password(accounts, "carol") == "carol"
    assert accounts.enable_signup is True
    none = accounts_with(MLP_LOGIN_ACCOUNTS="none")
    assert by_password(none, "root-of-all") is None


def test_groups_of_the_hubs_own_accounts_stay_as_they_are(accounts: CompanyAccounts) -> None:
    own_account(accounts, "root-of-all", admin=True)
    data = {"username": "root-of-all", "password": RIGHT}
    found = asyncio.run(accounts.get_authenticated_user(HANDLER, data))
    assert found["groups"] is None


# -------------------------------------------------------------------- how they are now


class Person:
    """A user of JupyterHub as it hands one to the authenticator."""

    def __init__(self, name: str, state: dict[str, Any] | None) -> None:
        self.name, self.state = name, state

    async def get_auth_state(self) -> dict[str, Any] | None:
        return self.state


class Stays:
    """Stands for what asks the provider (`test_refreshing_people.py`), and says the same of all."""

    def __init__(self, stays: bool) -> None:
        self.refresher, self.people, self._stays = self, self, stays

    def may_go_on(self, name: str) -> bool:
        return self._stays

    async def stays(self, name: str) -> bool:
        assert name == "ann"
        return self._stays


def test_a_logged_in_user_stays_as_long_as_the_provider_allows(accounts: CompanyAccounts) -> None:
    arrive(accounts)
    ann = Person("ann", {"subject": "s-ann"})
    for stays in (True, False):
        accounts.watching = Stays(stays)  # type: ignore[assignment]
        assert asyncio.run(accounts.refresh_user(ann)) is stays


def test_an_ended_login_requires_a_new_one_and_a_programs_token_stays_valid(
    accounts: CompanyAccounts,
) -> None:
    arrive(accounts)
    accounts.watching = Stays(True)  # type: ignore[assignment]
    ann = Person("ann", None)
    assert asyncio.run(accounts.refresh_user(ann)) is False
    by_token = SimpleNamespace(_token_authenticated=True)
    assert asyncio.run(accounts.refresh_user(ann, by_token)) is True
    accounts.watching = Stays(False)  # type: ignore[assignment]  # too long ago
    assert asyncio.run(accounts.refresh_user(ann, by_token)) is False


def test_the_hubs_own_accounts_are_not_asked_about(accounts: CompanyAccounts) -> None:
    own_account(accounts, "root-of-all", admin=True)
    own_account(accounts, "carol")
    assert asyncio.run(accounts.refresh_user(Person("root-of-all", None))) is True
    assert asyncio.run(accounts.refresh_user(Person("carol", None))) is False, (
        "a session from before the provider"
    )
    own_account(accounts, "svc-nightly")  # a tenant's, which has tokens alone
    by_token = SimpleNamespace(_token_authenticated=True)
    assert asyncio.run(accounts.refresh_user(Person("svc-nightly", None), by_token)) is True


def test_a_persons_row_tells_what_they_are_called_there(accounts: CompanyAccounts) -> None:
    arrive(accounts, replace(ANN, claimed_name="Ann Example"))
    (row,) = accounts.db.query(identities.PersonIdentity).all()
    assert (row.subject, row.claimed_name) == ("s-ann", "Ann Example")
