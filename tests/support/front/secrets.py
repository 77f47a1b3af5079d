"""Secrets of people and of tenants, as the front end's stand-in service has them."""

from __future__ import annotations

from typing import Any

from support.front.shapes import Json, when


def secret_of(name: str, whose: str, *keys: str) -> Json:
    """Return what is told of a secret of a person's or a tenant's."""
    found = {"name": name, "keys": list(keys), "tenant": None, "user": None, whose: "red"}
    return found | {"changed_at": when(-300), "changed_by": "ann"}


def secrets(of: dict[str, Json], method: str, whose: str, rest: list[str], body: Json) -> tuple[int, Any]:
    """Answer for the secrets `of` somebody as the service would."""
    match method, rest:
        case "GET", []:
            return 200, list(of.values())
        case "PUT", [name]:
            of[name] = secret_of(name, whose, *sorted(body["keys"]))
            return 200, ""
        case "DELETE", [name] if name in of:
            of.pop(name)
            return 200, ""
    return 403, {"msg": "this secret does not exist", "reason": "NotFound"}
