"""Accounts and tokens through the hub's API, as the operator."""

from __future__ import annotations

import getpass
import os
import secrets
import sys
from urllib.parse import quote

from mlp_hub.api.auth.scopes import ACCESS, METRICS_READ
from mlp_hub.cli.errors import AwayFailure, CommandFailed, UsageFailure
from mlp_hub.cli.http import HttpAnswer, request
from mlp_hub.settings import Settings
from mlp_language.render import say

_SERVICE = "/services/mlp/api/v1"


def _hub(settings: Settings, method: str, path: str, body: object = None) -> HttpAnswer:
    return _checked(
        settings,
        request(settings.hub_at, method, f"{settings.base}/hub/api{path}", token=_token(settings), body=body),
    )


def _token(settings: Settings) -> str:
    try:
        return settings.secret("operator_token")
    except OSError as error:
        raise CommandFailed(
            say(
                "{home} has no hub: {strerror}: {filename}.",
                home=str(settings.home),
                strerror=str(error.strerror),
                filename=error.filename,
            ),
            say("Start it with `mlp-hub up`, or name another state directory with MLP_HOME."),
        ) from error


def _checked(settings: Settings, answer: HttpAnswer) -> HttpAnswer:
    if answer.status == 0:
        raise CommandFailed(
            say("The hub of {home} does not answer: {error}.", home=str(settings.home), error=answer.error),
            say("Start it with `mlp-hub up`; `mlp-hub status` shows its state."),
        )
    if answer.status >= 500:
        raise _away(answer)
    return answer


def _away(answer: HttpAnswer) -> AwayFailure:
    return AwayFailure(
        _sentence(answer.message),
        say("It recovers by itself if a part restarts; `mlp-hub doctor` shows problems of the database."),
    )


def _sentence(said: str) -> str:
    said = said.rstrip(".")
    return f"{said[:1].upper()}{said[1:]}."


def ensure_admin(settings: Settings) -> bool:
    """Make the first administrator unless the account exists; return whether it was made."""
    found = _hub(settings, "GET", f"/mlp/accounts/{quote(settings.admin_name, safe='')}")
    if found.status == 200:
        return False
    if found.status != 404:
        raise CommandFailed(
            say("The hub does not list its accounts: {message}.", message=found.message),
            say("See `mlp-hub logs hub`."),
        )
    _create(settings, settings.admin_name, settings.secret("admin-password"), admin=True)
    return True


def _create(settings: Settings, name: str, password: str, *, admin: bool) -> None:
    body = {"name": name, "password": password, "authorized": True, "admin": admin}
    made = _hub(settings, "POST", "/mlp/accounts", body)
    if made.status != 201:
        raise UsageFailure(say("{name} was not made: {message}", name=name, message=made.message))


def user_add(settings: Settings, name: str, *, tenant: str | None, admin: bool, password_stdin: bool) -> None:
    """Make an approved account, in a tenant if one is named, and print what its owner needs to know."""
    if tenant is not None:
        ask_service(
            settings, "GET", f"/tenants/{quote(tenant)}", "Make it first, in the panel or by POST /tenants."
        )
    password, generated = _password(password_stdin)
    note = add(settings, name, password, tenant=tenant, admin=admin)
    sys.stdout.write(f"{name} can log in at {settings.url}\n{note}")
    if generated:
        sys.stdout.write(f"Password: {password}\n")


def add(
    settings: Settings, name: str, password: str, *, tenant: str | None = None, admin: bool = False
) -> str:
    """Make an approved account, in a tenant if one is named; return what its owner needs to know of that, a line or nothing."""
    # what is made is written down there: no account without it
    health = ask_service(settings, "GET", "/health")
    if health.json()["status"] == "failing":
        raise _away(health)
    _create(settings, name, password, admin=admin)
    ask_service(settings, "PUT", f"/users/{quote(name)}:approve")
    if tenant is None:
        return ""
    place = ask_service(settings, "PUT", f"/tenants/{quote(tenant)}/members/{quote(name)}").json()
    return _sentence(place["note"]) + "\n" if place["note"] else ""


def user_password(settings: Settings, name: str, *, password_stdin: bool) -> None:
    """Give somebody another password, which logs them out everywhere, and print it where it was made up here."""
    password, generated = _password(password_stdin)
    ask_service(
        settings, "PUT", f"/users/{quote(name, safe='')}:password", body={"password": password}, timeout=90
    )
    sys.stdout.write(f"{name} has another password, and is logged out everywhere. Jobs go on.\n")
    if generated:
        sys.stdout.write(f"Password: {password}\n")


def user_logout(settings: Settings, name: str) -> None:
    """End all sessions and tokens of somebody, and stop their notebook servers."""
    ask_service(settings, "PUT", f"/users/{quote(name, safe='')}:logout", timeout=90)
    sys.stdout.write(f"{name} is logged out everywhere. Jobs go on.\n")


def _password(stdin: bool) -> tuple[str, bool]:
    """Return the password and whether it was made up here."""
    if stdin:
        password = sys.stdin.readline().rstrip("\n")
        if not password:
            raise UsageFailure(say("The password on standard input is empty"), say("Pass it as one line."))
        return password, False
    if sys.stdin.isatty():
        password = getpass.getpass("Password (empty: make one up): ")
        if password:
            if getpass.getpass("Again: ") != password:
                raise UsageFailure(say("The two passwords are not the same"))
            return password, False
    return secrets.token_urlsafe(12), True


def ask_service(
    settings: Settings,
    method: str,
    path: str,
    remedy: str = "",
    *,
    timeout: float = 30.0,
    body: dict[str, object] | None = None,
    key: str | None = None,
) -> HttpAnswer:
    """Ask the service of the running hub as the operator; raise `CommandFailed` where it refuses or does not answer.

    A request with a `key` that was answered is not done again: the same answer comes.
    """
    if method == "PUT" and body is None:
        body = {}
    answer = _checked(
        settings,
        request(
            settings.service_at,
            method,
            _SERVICE + path,
            token=_token(settings),
            body=body,
            timeout=timeout,
            headers=None if key is None else {"Idempotency-Key": key},
        ),
    )
    if answer.status >= 300:
        raise UsageFailure(_sentence(answer.message), remedy if answer.status == 403 else "")
    return answer


def token(settings: Settings, name: str, scopes: list[str], *, note: str, expires_in: int | None) -> str:
    """Return a new token of a user; without scopes it may do all that the user may.

    The service asks the hub for it, and writes it into the audit log.
    """
    body: dict[str, object] = {"note": note or f"mlp-hub token by {os.environ.get('USER', 'operator')}"}
    if scopes:
        # without it the platform accepts no token of a person, whatever else the token holds
        # JupyterHub's own scope of its metrics; the platform's are useless to a token that cannot reach the platform
        reaches = METRICS_READ not in scopes or ACCESS in scopes
        body["scopes"] = scopes if reaches else [ACCESS, *scopes]
    if expires_in is not None:
        body["expires_in"] = expires_in
    # asked first: for a user that does not exist the hub answers as for one that may not be touched
    if _hub(settings, "GET", f"/users/{quote(name)}").status == 404:
        raise UsageFailure(
            say("User {name} does not exist.", name=name), say("Make one: mlp-hub user add {name}", name=name)
        )
    return str(ask_service(settings, "POST", f"/users/{quote(name)}/token", body=body).json())
