"""Accounts of tenants for programs, as the front end's stand-in service has them."""

from __future__ import annotations

from typing import Any

from support.front.shapes import Json, when

DAY_S = 86_400


def token_of(number: int, **change: Any) -> Json:
    """Return what is told of a token."""
    return {
        "id": f"a{number}", "note": "", "scopes": [], "created": when(-5 * DAY_S), "expires": when(60 * DAY_S),
        "last_used": when(-300), "last_from": "10.1.2.3", "current": False, "ends_soon": False,
    } | change  # fmt: skip


def account_of(name: str, *tokens: Json) -> Json:
    """Return a tenant's account with its tokens."""
    found = {"name": name, "user": f"svc-{name}", "made_by": "ann", "made_at": when(-9 * DAY_S)}
    return {**found, "tokens": list(tokens)}


def services(of: dict[str, Json], method: str, rest: list[str], verb: str, body: Json) -> tuple[int, Any]:
    """Answer for the accounts `of` one tenant as the service would."""
    match method, rest, verb:
        case "GET", [], "":
            return 200, list(of.values())
        case "POST", [], "":
            of[body["name"]] = account_of(body["name"])
            return 201, _given(of[body["name"]], body, None)
        case "PUT", [name], "rotate":
            for old in of[name]["tokens"]:
                old |= {"expires": when(body["grace"]), "ends_soon": True}
            return 200, _given(of[name], body, when(body["grace"]))
        case "DELETE", [name], "":
            of.pop(name)
            return 200, ""
    return 403, {"msg": "this account does not exist", "reason": "NotFound"}


def _given(account: Json, body: Json, old_until: str | None) -> Json:
    ends = when(body["expires_in"])
    number = len(account["tokens"]) + 1
    account["tokens"].append(token_of(number, expires=ends, last_used=None, last_from=""))
    return {
        "user": account["user"],
        "token": f"secret-{account['name']}-{number}",
        "expires": ends,
        "old_until": old_until,
    }
