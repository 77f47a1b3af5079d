"""The device flow of a login provider (RFC 8628): a code that a person types in at the provider, while we ask whether they did."""

from __future__ import annotations

import http.client
import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from mlp.cli import browser
from mlp.client.transport import Address
from mlp.errors import Refused, Unreachable
from mlp.language import say

Json = dict[str, Any]
GRANT = "urn:ietf:params:oauth:grant-type:device_code"
EVERY_S = 5.0
SLOWER_S = 5.0
LONGEST_S = 3600.0
TIMEOUT_S = 30.0
MOST_BYTES = 1 << 20


def tokens(
    flow: Mapping[str, str],
    *,
    opens: bool,
    sleep: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[str, str]:
    """Return the access token and the ID token of a login at the provider.

    Raises `Refused` or `Unreachable`.
    """
    status, begun = _post(flow, "begin", {"client_id": flow["client_id"], "scope": flow["scope"]})
    if status != 200 or not all(
        isinstance(begun.get(k), str) for k in ("device_code", "user_code", "verification_uri")
    ):
        raise Unreachable(_odd(flow, status, begun))
    _show(flow, begun, opens=opens)
    until = clock() + min(_number(begun.get("expires_in"), 600.0), LONGEST_S)
    every = max(_number(begun.get("interval"), EVERY_S), 1.0)
    asked = {"grant_type": GRANT, "device_code": begun["device_code"], "client_id": flow["client_id"]}
    while clock() < until:
        sleep(every)
        try:
            status, found = _post(flow, "token", asked)
        except Unreachable:
            every += SLOWER_S  # as where it asks for patience
            continue
        if status == 200 and isinstance(found.get("access_token"), str):
            return found["access_token"], str(found.get("id_token") or "")
        error = found.get("error")
        if error == "slow_down":
            every += SLOWER_S
        elif error == "access_denied":
            raise Refused("Forbidden", say("it was refused at {title}", title=flow["title"]))
        elif error == "expired_token":
            break
        elif error != "authorization_pending":
            raise Refused("Forbidden", _odd(flow, status, found))
    raise Refused(
        "Forbidden", say("nobody entered the code at {title}; run mlp login again", title=flow["title"])
    )


def _show(flow: Mapping[str, str], begun: Json, *, opens: bool) -> None:
    where, code = _line(begun["verification_uri"]), _line(begun["user_code"])
    text = say(
        "Log in with {title} at this address, and type in the code {code}:", title=flow["title"], code=code
    )
    sys.stderr.write(f"{text}\n{where}\n")
    whole = begun.get("verification_uri_complete")
    if opens and isinstance(whole, str) and urlsplit(whole).scheme in ("http", "https"):
        browser.open_page(whole)


def _post(flow: Mapping[str, str], where: str, form: Mapping[str, str]) -> tuple[int, Json]:
    """Send a form to the provider and return status and object; raise `Unreachable` without such an answer."""
    url = flow[where]
    address = Address.parse(url)
    query = urlsplit(url).query
    target = address.base + (f"?{query}" if query else "")
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    connection = address.http(TIMEOUT_S)
    try:
        connection.request("POST", target, body=urlencode(form).encode(), headers=headers)
        answer = connection.getresponse()
        found = json.loads(answer.read(MOST_BYTES) or b"null")
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Unreachable(
            say(
                "{title} does not answer at {address} ({why}). Try again in a moment. An earlier token works without it: mlp login --token-stdin",
                title=flow["title"],
                address=address.shown,
                why=str(error) or type(error).__name__,
            )
        ) from error
    finally:
        connection.close()
    return answer.status, found if isinstance(found, dict) else {}


def _odd(flow: Mapping[str, str], status: int, found: Json) -> str:
    why = _line(found.get("error_description") or found.get("error") or status)
    return say("{title} does not let a terminal log in ({why})", title=flow["title"], why=why)


def _number(value: object, otherwise: float) -> float:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else otherwise


def _line(text: object) -> str:
    """Write what a provider says without what would move the cursor of a terminal."""
    return "".join(letter for letter in str(text) if letter.isprintable())[:500]
