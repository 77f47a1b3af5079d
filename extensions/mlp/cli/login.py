"""`mlp login`, `logout`, `whoami`: tokens of this machine, one for each hub.

A token comes by the browser: a page of the hub asks the person, and sends a one-time code to a port of this machine (RFC
8252), or shows it to be typed in. Only who knows the verifier (RFC 7636) gets the token for it, and that never leaves here.
"""

from __future__ import annotations

import getpass
import hashlib
import os
import secrets
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from mlp.cli import browser, device, output
from mlp.client import settings
from mlp.client.rest import Client
from mlp.client.settings import StoredLogin
from mlp.errors import MLPError, Unauthorized, UsageError
from mlp.grammar.parsing import ParsedLine
from mlp.language import say
from mlp.rendering.format import span

DAY_S = 24 * 3600
DAYS = 30
SOON_S = 5 * DAY_S


def login(call: ParsedLine) -> int:
    """Get a token for this machine, or make a hub whose token still holds the current one."""
    current = settings.read_login()
    url = settings.normalise_url(call.names[0]) if call.names else settings.api_url()
    url = url or (current.url if current else "")
    if not url:
        raise UsageError(say("which hub? Give its address: mlp login http://HUB-ADDRESS:8000"))
    kept = settings.read_login(url)
    given = call.given
    pasted = given.get("token_stdin") or not sys.stdin.isatty()
    token = sys.stdin.readline().strip() if pasted else ""
    if token or given.get("token_stdin") or url.startswith("http+unix:"):
        made = _pasted(url, token, asked=not pasted)
    elif kept and not given.get("expires") and _holds(kept):
        made = kept
    elif pasted:
        # a provider's code needs nobody to type here, as by `ssh HOST mlp login --no-browser`
        by_code = _by_device(url, given) if given.get("no_browser") else None
        made = by_code or _pasted(url, token, asked=False)
    else:
        made = _by_device(url, given) or _by_browser(url, given)
    path = settings.write_login(made)
    if given.get("json"):
        output.show({"user": made.user, "url": url, "file": str(path)}, as_json=True)
        return output.DONE
    done = say(
        "Logged in as {user} at {address}; stored in {path}.", user=made.user, address=url, path=str(path)
    )
    sys.stdout.write(f"{done}\n")
    if os.environ.get("MLP_TOKEN"):
        sys.stderr.write(f"{say('MLP_TOKEN is set, and takes precedence over it.')}\n")
    return output.DONE


def logout(call: ParsedLine) -> int:
    """End the token of this machine at a hub, and forget it here."""
    kept = settings.read_login(settings.normalise_url(call.names[0]) if call.names else "")
    if kept is None:
        raise UsageError(
            say("nobody is logged in at {address} on this machine", address=call.names[0])
            if call.names
            else say("nobody is logged in on this machine")
        )
    ended = True
    try:
        client = Client(kept.url, kept.token, kept.user or None)
        client.end_own_token()
    except Unauthorized:
        ended = False  # it was over already
    settings.drop_login(kept.url)
    if call.given.get("json"):
        output.show({"user": kept.user, "url": kept.url, "ended": ended}, as_json=True)
    else:
        sys.stdout.write(f"{say('Logged out at {address}; the token is ended.', address=kept.url)}\n")
    return output.DONE


def whoami(call: ParsedLine) -> int:
    """Say as whom this machine works at which hub, by which token, and until when."""
    found = settings.load()
    client = Client.from_env()
    kept = settings.read_login(found.url)
    user = str(client.get("/auth"))
    source = _source(found.token, kept)
    others = [one.url for one in settings.read_logins() if one.url != found.url]
    if call.given.get("json"):
        data = {
            "user": user,
            "url": found.url,
            "token": source,
            "expires": found.expires or None,
            "others": others,
        }
        output.show(data, as_json=True)
        return output.DONE
    lines = [say("{user} at {address}", user=user, address=found.url), say("by {token}", token=source)]
    if found.expires:
        lines.append(say("valid for another {span}", span=span(found.expires - time.time())))
    lines += [say("logged in too: {address}", address=one) for one in others]
    sys.stdout.write("\n".join(lines) + "\n")
    return output.DONE


def remind() -> None:
    """Say that the stored token that is used ends soon."""
    try:
        left = settings.load().expires - time.time()
    except MLPError:
        return
    if 0 < left < SOON_S:
        text = say("The login of this machine ends in {span}. Renew it: mlp login", span=span(left))
        sys.stderr.write(f"{text}\n")


def _source(token: str, kept: StoredLogin | None) -> str:
    """Name where a token was found."""
    if kept is not None and token == kept.token and token != os.environ.get("MLP_TOKEN"):
        return str(settings.login_file())
    return next(
        (name for name in ("MLP_TOKEN", "JUPYTERHUB_API_TOKEN") if os.environ.get(name) == token),
        "MLP_JOB_TOKEN",
    )


def _holds(kept: StoredLogin) -> bool:
    """Tell whether a stored token is good for a while still."""
    if kept.expires and kept.expires - time.time() < SOON_S:
        return False
    try:
        return str(Client(kept.url, kept.token).get("/auth")) == kept.user
    except Unauthorized:
        return False


def _pasted(url: str, token: str, *, asked: bool) -> StoredLogin:
    """Check a token that was made elsewhere."""
    if asked:
        text = say("A token is made at {address}", address=f"{settings.hub_of(url)}/token")
        sys.stderr.write(f"{text}\n")
        token = getpass.getpass(f"{say('Token:')} ").strip()
    if not token or not token.isascii() or not token.isprintable():
        raise UsageError(say("a token is needed: paste it, or --token-stdin with it on standard input"))
    return StoredLogin(url, token, Client(url, token).user)


def _by_device(url: str, given: Mapping[str, Any]) -> StoredLogin | None:
    """Log in at the hub's provider by a code, where that has such a way; None where it has not."""
    hub = Client(settings.hub_of(url), "", anonymous=True)
    try:
        flow = hub.get("/api/mlp/cli-login")["device"]
    except (MLPError, LookupError, TypeError):  # an older hub's; the browser's way says what is wrong
        return None
    if not flow:
        return None
    access_token, id_token = device.tokens(flow, opens=not given.get("no_browser") and browser.is_there())
    body = {
        "access_token": access_token,
        "id_token": id_token,
        "machine": browser.machine(),
        "days": str(_days(given.get("expires"))),
    }
    return _made(url, hub.request("POST", "/api/mlp/device-token", body).json())


def _made(url: str, made: Mapping[str, Any]) -> StoredLogin:
    return StoredLogin(url, str(made["token"]), str(made["user"]), time.time() + float(made["expires_in"]))


def _by_browser(url: str, given: Mapping[str, Any]) -> StoredLogin:
    """Have the person say yes in a browser, here or elsewhere, and trade the code for a token."""
    hub = settings.hub_of(url)
    verifier = secrets.token_urlsafe(48)
    digest = hashlib.sha256(verifier.encode()).digest()
    asked = {
        "challenge": urlsafe_b64encode(digest).rstrip(b"=").decode(),
        "machine": browser.machine(),
        "days": _days(given.get("expires")),
    }
    if given.get("no_browser") or not browser.is_there():
        redirect_uri = ""
        page = f"{hub}/mlp-login?{urlencode(asked)}"
        sys.stderr.write(
            f"{say('Open this address in a browser, and type in the code that it shows:')}\n{page}\n"
        )
        code = getpass.getpass(f"{say('Code:')} ").strip()
    else:
        with browser.CodeListener() as listener:
            redirect_uri = listener.url
            asked |= {"redirect_uri": redirect_uri, "state": listener.state}
            page = f"{hub}/mlp-login?{urlencode(asked)}"
            hint = say("A browser opens at this address; without one on this machine: mlp login --no-browser")
            sys.stderr.write(f"{hint}\n{page}\n")
            browser.open_page(page)
            code = listener.code()
    return _exchanged(url, code, verifier, redirect_uri)


def _days(expires: int | None) -> int:
    """Return for how many days a token is asked for; parts of one count as one."""
    return DAYS if expires is None else max(1, -(-expires // DAY_S))


def _exchanged(url: str, code: str, verifier: str, redirect_uri: str) -> StoredLogin:
    if not code:
        raise UsageError(say("a code is needed: enter the code that the page shows"))
    hub = Client(settings.hub_of(url), "", anonymous=True)
    body = {"code": code, "verifier": verifier, "redirect_uri": redirect_uri}
    return _made(url, hub.request("POST", "/api/mlp/cli-token", body).json())
