"""The realm that tests have does what they ask of it."""

from __future__ import annotations

import httpx
import pytest

from support.login.keycloak import PASSWORD, Keycloak, clients_of_the_guide


@pytest.mark.whole
def test_people_groups_and_keys_of_a_realm_follow_the_tests(keycloak: Keycloak) -> None:
    realm = keycloak.realm("http://localhost:1/*")
    try:
        subject = realm.add_user("ann", "/ml/red", "/new/one")

        def token() -> httpx.Response:
            return keycloak.http.post(
                f"/realms/{realm.name}/protocol/openid-connect/token",
                data={
                    "grant_type": "password",
                    "client_id": "another-app",
                    "username": "ann",
                    "password": PASSWORD,
                    "scope": "openid",
                },
            )

        def keys() -> set[str]:
            found = keycloak.http.get(f"/realms/{realm.name}/protocol/openid-connect/certs").json()["keys"]
            return {key["kid"] for key in found}

        assert token().status_code == 200
        assert realm.user_id("ann") == subject
        paths = {group["path"] for group in realm.call("GET", f"/users/{subject}/groups")}
        assert paths == {"/ml/red", "/new/one"}
        realm.leave("ann", "/new/one")
        realm.join("ann", "/hub-admins")
        realm.rename_group("/ml/red", "crimson")
        paths = {group["path"] for group in realm.call("GET", f"/users/{subject}/groups")}
        assert paths == {"/ml/crimson", "/hub-admins"}

        before = keys()
        realm.rotate_keys()
        assert keys() - before
        realm.disable("ann")
        assert token().status_code == 400
    finally:
        realm.delete()


def test_the_admin_console_takes_the_files_of_the_guide(keycloak: Keycloak) -> None:
    """*Import client* sends what its form has beside what the file says: of a file without a protocol, an empty one."""
    realm = keycloak.realm("*")
    try:
        for client in clients_of_the_guide():
            made = {
                "protocol": "",
                "name": "",
                "description": "",
                **client,
                "clientId": f"new-{client['clientId']}",
            }
            realm.call("POST", "/clients", made)
            (found,) = realm.call("GET", "/clients", clientId=made["clientId"])
            assert [mapper["name"] for mapper in found["protocolMappers"]] == ["groups"]
    finally:
        realm.delete()
