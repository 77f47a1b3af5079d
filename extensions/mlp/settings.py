"""Where the service is and who asks: environment first, then what `mlp login` stored."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mlp.errors import Unauthorized, Unreachable

API_PATH = "/services/mlp/api/v1"


@dataclass(frozen=True, slots=True)
class Settings:
    """Address and identity. `user` is None where only the service can tell (from the token)."""

    url: str
    token: str = field(repr=False)
    user: str | None = None


def login_file(env: Mapping[str, str] = os.environ) -> Path:
    """Return where `mlp login` keeps address and token."""
    base = env.get("XDG_CONFIG_HOME") or str(Path(env.get("HOME", "~")).expanduser() / ".config")
    return Path(base) / "mlp" / "login.json"


def read_login(env: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return what `mlp login` stored, or nothing; a broken file counts as not being there."""
    try:
        data = json.loads(login_file(env).read_text())
    except (OSError, ValueError):
        return {}
    return {k: v for k, v in data.items() if isinstance(v, str)} if isinstance(data, dict) else {}


def write_login(url: str, token: str, user: str, env: Mapping[str, str] = os.environ) -> Path:
    """Store address and token, readable by their owner only from the first byte on."""
    path = login_file(env)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_suffix(f".{os.getpid()}")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        json.dump({"url": url, "token": token, "user": user}, out)
    fresh.replace(path)
    return path


def normalise_url(url: str) -> str:
    """Return the base of the API for what a person gives: the hub's address is enough."""
    url = url.strip().rstrip("/")
    if "://" not in url:
        url = f"http://{url}"
    if url.endswith("/api/v1"):
        return url
    for tail in ("/hub", "/services/mlp", "/hub/home", "/hub/login"):
        url = url.removesuffix(tail)
    return url + API_PATH


def load(env: Mapping[str, str] = os.environ) -> Settings:
    """Find address and token.

    Raises `Unreachable` when there is no address, `Unauthorized` when there is no token.
    """
    stored = read_login(env)
    url = env.get("MLP_API_URL") or stored.get("url")
    if not url:
        raise Unreachable(
            "MLP_API_URL is not set and nobody has logged in here. Run: mlp login http://HUB-ADDRESS"
        )
    own = not env.get("MLP_API_URL") or env.get("MLP_API_URL") == stored.get("url")
    token = (
        env.get("MLP_TOKEN")
        or (stored.get("token") if own else None)
        or env.get("JUPYTERHUB_API_TOKEN")
        or env.get("MLP_JOB_TOKEN")
    )
    if not token:
        raise Unauthorized("there is no token: set MLP_TOKEN, or run: mlp login")
    user = stored.get("user") if token == stored.get("token") else None
    if not env.get("MLP_TOKEN") and not user:
        user = env.get("JUPYTERHUB_USER") or env.get("MLP_USER")
    return Settings(url.rstrip("/"), token, user)


def on_platform(env: Mapping[str, str] = os.environ) -> bool:
    """Tell whether this process runs in a notebook server or a job: then files here are the user's home."""
    return bool(env.get("JUPYTERHUB_USER") or env.get("MLP_JOB"))
