"""Where the service is and who asks: environment first, then what `mlp login` stored."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mlp.errors import Unauthorized, Unreachable
from mlp.language import say

API_PATH = "/services/mlp/api/v1"


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Address and identity. `user` is None where only the service can tell (from the token).

    `data_url` is where files of datasets are, where that is not beside the API. `expires` is when a stored token ends, in seconds since 1970; 0 where it does not, or nobody knows.
    """

    url: str
    token: str = field(repr=False)
    user: str | None = None
    expires: float = 0.0
    data_url: str = ""


def login_file(env: Mapping[str, str] = os.environ) -> Path:
    """Return where `mlp login` keeps address and token."""
    base = env.get("XDG_CONFIG_HOME") or str(Path(env.get("HOME", "~")).expanduser() / ".config")
    return Path(base) / "mlp" / "login.json"


@dataclass(frozen=True, slots=True)
class StoredLogin:
    """A login that is kept: the API's address, the token, whose it is, and when it ends (seconds since 1970; 0: never)."""

    url: str
    token: str = field(repr=False)
    user: str = ""
    expires: float = 0.0


def read_logins(env: Mapping[str, str] = os.environ) -> list[StoredLogin]:
    """Return what `mlp login` stored, of each hub, the current one first; a broken file counts as not being there."""
    try:
        data = json.loads(login_file(env).read_text())
    except (OSError, ValueError):
        return []
    if not isinstance(data, dict):
        return []
    hubs = data.get("hubs")
    if not isinstance(hubs, dict):  # as it was when there was one
        hubs = {data.get("url"): data}
    found = [
        StoredLogin(url, str(one["token"]), str(one.get("user") or ""), _seconds(one.get("expires")))
        for url, one in hubs.items()
        if isinstance(url, str) and isinstance(one, dict) and isinstance(one.get("token"), str)
    ]
    return sorted(found, key=lambda login: login.url != data.get("current", data.get("url")))


def read_login(url: str = "", env: Mapping[str, str] = os.environ) -> StoredLogin | None:
    """Return the login at a hub, or the current one; None where there is none."""
    for login in read_logins(env):
        if url in ("", login.url):
            return login
    return None


def write_login(login: StoredLogin, env: Mapping[str, str] = os.environ) -> Path:
    """Store a login beside those at other hubs, as the current one."""
    return _write([login, *(one for one in read_logins(env) if one.url != login.url)], env)


def drop_login(url: str, env: Mapping[str, str] = os.environ) -> None:
    """Forget the login at a hub; of the others the one that was used last becomes the current one."""
    _write([one for one in read_logins(env) if one.url != url], env)


def _write(logins: list[StoredLogin], env: Mapping[str, str]) -> Path:
    """Store logins, the current one first, readable by their owner only from the first byte on."""
    path = login_file(env)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_suffix(f".{os.getpid()}")
    hubs = {one.url: {"token": one.token, "user": one.user, "expires": one.expires} for one in logins}
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        json.dump({"current": logins[0].url if logins else "", "hubs": hubs}, out)
    fresh.replace(path)
    return path


def _seconds(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


def normalise_url(url: str) -> str:
    """Return the base of the API for a person's input: the hub's address is enough."""
    url = url.strip().rstrip("/")
    if "://" not in url:
        url = f"http://{url}"
    if url.endswith("/api/v1"):
        return url
    for tail in ("/hub", "/services/mlp", "/hub/home", "/hub/login"):
        url = url.removesuffix(tail)
    return url + API_PATH


def api_url(env: Mapping[str, str] = os.environ) -> str:
    """Return the base of the API that `MLP_API_URL` names, by the hub's address too; empty where it names none."""
    given = env.get("MLP_API_URL", "")
    return normalise_url(given) if given and not given.startswith("http+unix:") else given


def hub_of(url: str) -> str:
    """Return where the pages of the hub are whose API this is."""
    return url.removesuffix(API_PATH).removesuffix("/api/v1") + "/hub"


def load(env: Mapping[str, str] = os.environ) -> ClientSettings:
    """Find address and token.

    Raises `Unreachable` without an address, `Unauthorized` without a token.
    """
    given = api_url(env)
    stored = read_login(given, env)
    url = given or (stored.url if stored else "")
    if not url:
        raise Unreachable(
            say("MLP_API_URL is not set and nobody has logged in here. Run: mlp login http://HUB-ADDRESS")
        )
    token = (
        env.get("MLP_TOKEN")
        or (stored.token if stored else None)
        or env.get("JUPYTERHUB_API_TOKEN")
        or env.get("MLP_JOB_TOKEN")
    )
    if not token:
        raise Unauthorized(say("no token is given: set MLP_TOKEN, or run: mlp login"))
    kept = stored is not None and token == stored.token
    user = stored.user or None if stored and kept else None
    if not env.get("MLP_TOKEN") and not user:
        user = env.get("JUPYTERHUB_USER") or env.get("MLP_USER")
    expires = stored.expires if stored and kept else 0.0
    return ClientSettings(url.rstrip("/"), token, user, expires, env.get("MLP_DATA_URL", ""))


def on_platform(env: Mapping[str, str] = os.environ) -> bool:
    """Tell whether this process runs in a notebook server or a job: then files here are the user's home."""
    return bool(env.get("JUPYTERHUB_USER") or env.get("MLP_JOB"))
