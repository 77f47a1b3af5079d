"""Keys of apps that are made, used and revoked at the same moment, and keys whose app or owner is gone or another's."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from mlp_hub.api.auth import scopes
from mlp_hub.domain.apps.app import AppPhase
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.service.apps.endpoints import Endpoint
from mlp_hub.store.tx import Tx
from support.rigs.api_rig import ApiRig
from support.waiting import wait_for

AT_ONCE = 8
KEYS = "/users/ann/apps/line/keys"


def app_of(rig: ApiRig, user: str, name: str, token: str) -> str:
    """Give somebody an app, and return its uid; the gateway knows it as one that runs."""
    found = rig.ask("GET", f"/users/{user}/apps/{name}", token=token)
    if found.status != 200:
        rig.app(user, name, token)
        found = rig.ask("GET", f"/users/{user}/apps/{name}", token=token)
    uid: str = found.json["uid"]
    runs = Endpoint(uid, user, name, found.json["tenant"], AppPhase.RUNNING.value, 0, ("/nowhere.sock",))
    rig._loop.call_soon_threadsafe(rig.platform.apps.endpoints.store_endpoint, runs)
    return uid


@pytest.fixture(autouse=True)
def app(rig: ApiRig) -> str:
    return app_of(rig, "ann", "line", rig.ann)


def verdict(rig: ApiRig, key: str, user: str = "ann", name: str = "line") -> str:
    asked = {"user": user, "app": name, "kind": "key", "secret": key, "address": "127.0.0.1"}
    answer = rig.ask("PUT", "/gateway:admit", asked, token=rig.gateway)
    assert answer.status == 200, answer.body
    found: str = answer.json["verdict"]
    return found


def at_once(*acts: Callable[[], object]) -> list[object]:
    """Do all of it at the same moment; return what came of each."""
    begin, found = threading.Barrier(len(acts)), []

    def do(act: Callable[[], object]) -> None:
        begin.wait()
        found.append(act())

    threads = [threading.Thread(target=do, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_of_many_who_make_the_same_key_one_does(rig: ApiRig) -> None:
    def make() -> tuple[int, str]:
        answer = rig.ask("POST", KEYS, {"name": "same"}, token=rig.ann)
        return answer.status, answer.json.get("key") or ""

    said = at_once(*[make] * AT_ONCE)
    assert Counter(status for status, _ in said) == {201: 1, 403: AT_ONCE - 1}  # type: ignore[misc]
    assert [verdict(rig, key) for _, key in said if key] == ["may"]  # type: ignore[misc]


def test_of_many_who_revoke_a_key_one_does_and_who_uses_it_then_is_nobody(rig: ApiRig) -> None:
    for turn in range(5):
        key = rig.key("ann", "line", f"turn{turn}", rig.ann)

        def revoke(name: str = f"turn{turn}") -> object:
            return rig.ask("DELETE", f"{KEYS}/{name}", token=rig.ann).status

        def use(key: str = key) -> object:
            return verdict(rig, key)

        said = Counter(at_once(*[revoke] * 4, *[use] * 4))
        assert (said[200], said[403]) == (1, 3)
        assert said["may"] + said["unknown"] == 4
        assert verdict(rig, key) == "unknown"


def test_revoking_and_recreating_a_key_at_once_leaves_exactly_one_of_both(rig: ApiRig) -> None:
    old = rig.key("ann", "line", "anew", rig.ann)
    said = at_once(
        lambda: rig.ask("DELETE", f"{KEYS}/anew", token=rig.ann).status,
        lambda: rig.ask("POST", KEYS, {"name": "anew"}, token=rig.ann),
    )
    made = next(one for one in said if not isinstance(one, int))
    assert verdict(rig, old) == "unknown"
    if made.status == 201:  # type: ignore[attr-defined]
        assert verdict(rig, made.json["key"]) == "may"  # type: ignore[attr-defined]
    else:
        assert made.status == 403  # type: ignore[attr-defined]
        assert all(one["name"] != "anew" for one in rig.ask("GET", KEYS, token=rig.ann).json)


def test_a_key_opens_no_other_app_of_the_same_owner_or_of_another(rig: ApiRig) -> None:
    app_of(rig, "ann", "second", rig.ann)
    app_of(rig, "bob", "line", rig.bob)
    key = rig.key("ann", "line", "one", rig.ann)
    assert verdict(rig, key) == "may"
    assert verdict(rig, key, name="second") == verdict(rig, key, user="bob") == "refused"
    assert verdict(rig, key, name="none") == "refused"
    assert rig.ask("DELETE", "/users/ann/apps/second/keys/one", token=rig.ann).status == 403
    assert verdict(rig, key) == "may"


def test_a_key_of_an_app_that_is_being_deleted_is_nobodys(rig: ApiRig) -> None:
    """Its replicas may be there for as long as they like."""
    uid = app_of(rig, "ann", "leaves", rig.ann)
    key = rig.key("ann", "leaves", "one", rig.ann)
    assert verdict(rig, key, name="leaves") == "may"

    def deleting(tx: Tx) -> None:
        found = tx.apps.get(SYSTEM, uid)
        assert found is not None
        tx.apps.put(replace(found, phase=AppPhase.DELETING, wanted=0))

    rig.run(rig.platform.db.write(deleting))
    assert verdict(rig, key, name="leaves") == "unknown"
    asked = {"user": "ann", "app": "leaves", "kind": "token", "secret": rig.ann, "address": "127.0.0.1"}
    assert rig.ask("PUT", "/gateway:admit", asked, token=rig.gateway).json["verdict"] == "refused"


def test_a_key_of_a_deleted_app_opens_no_later_one_of_its_name(rig: ApiRig) -> None:
    app_of(rig, "ann", "again", rig.ann)
    key = rig.key("ann", "again", "one", rig.ann)
    assert rig.ask("DELETE", "/users/ann/apps/again", token=rig.ann).status in (200, 202)
    wait_for(
        lambda: rig.ask("GET", "/users/ann/apps/again", token=rig.ann).status == 403,
        message="for the app to be gone",
    )
    app_of(rig, "ann", "again", rig.ann)
    assert verdict(rig, key, name="again") == "unknown"
    assert rig.ask("GET", "/users/ann/apps/again/keys", token=rig.ann).json == []


def test_a_key_of_a_former_team_member_reaches_no_replica(rig: ApiRig) -> None:
    rig.hub.user("dora", "dora-token", held=(scopes.ACCESS, *scopes.USER_SCOPES))
    rig.tenant("guests", "rita", members=("dora",), rom=1 << 30)
    assert (
        rig.ask("PUT", "/tenants/guests/members/dora", {"role": "member"}, token=rig.root_user).status == 200
    )
    app_of(rig, "dora", "line", "dora-token")  # with a replica that answers
    key = rig.key("dora", "line", "one", "dora-token")
    assert rig.ask("DELETE", "/tenants/guests/members/dora", token=rig.root_user).status == 200

    def is_nowhere() -> bool:
        asked = {"user": "dora", "app": "line", "kind": "key", "secret": key, "address": "127.0.0.1"}
        said = rig.ask("PUT", "/gateway:admit", asked, token=rig.gateway).json
        return said["verdict"] != "may" or not (said["replicas"] or said["wakes"])

    wait_for(is_nowhere, message="for the app of who left to answer nobody")


@pytest.mark.parametrize("secret", ["a\nb", "a\r\nX-Other: b", "a\0b", "a\x1b", "", "x" * 5000, "\u212a"])
def test_attack_what_no_header_carries_is_nobodys_token(rig: ApiRig, secret: str) -> None:
    asked = {"user": "ann", "app": "line", "kind": "token", "secret": secret, "address": "127.0.0.1"}
    answer = rig.ask("PUT", "/gateway:admit", asked, token=rig.gateway)
    assert answer.status == 403 or answer.json["verdict"] == "unknown", answer.body
