"""Which processes the embedded hub consists of, written down for the supervisor."""

from __future__ import annotations

import contextlib
import hashlib
import json
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mlp_hub
from mlp_hub import durable, proxy
from mlp_hub.cli.state import identity
from mlp_hub.settings import Settings, SettingsError, variable_of

TOKENS = ("proxy_token", "service_token", "spawner_token", "data_token", "gateway_token", "operator_token")
GRACE_S = 15.0
HOLD_S = 60
"""Tuning: seconds that requests wait for a part that is a pod and is replaced, before they are refused."""
LEAVE_S = 5
"""Tuning: seconds until a cluster sends no more connections to a proxy that ends."""
SUPERVISES = "from mlp_hub.cli.supervisor import run"
"""Part of a supervisor's command line; `ports` recognizes the supervisor of another hub by it."""
HUB_HEALTH = "/hub/health"
SERVICE_HEALTH = "/services/mlp/api/v1/health"
SERVICE_READY = "/services/mlp/api/v1/ready"
# what components and sandboxes may need of the operator's environment; all else stays out of them
_KEPT = ("HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER", "LD_LIBRARY_PATH")
_KEPT_PREFIXES = ("LC_", "PIP_", "UV_", "SSL_", "CUDA_", "NVIDIA_", "XDG_", "OAUTH_")
_KEPT_SUFFIXES = ("_PROXY", "_CA_BUNDLE", "_CA_CERTS")


def make(settings: Settings, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the supervisor's plan for these settings."""
    instance = identity.own(settings)
    base = {key: value for key, value in environ.items() if _is_kept(key)} | settings.to_environ()
    if instance is not None:
        base[identity.VARIABLE] = instance
    python = sys.executable
    with_config = {"MLP_CONFIG": str(settings.config)} if settings.config else {}
    if settings.runs.config is not None and settings.config_file is not None:
        # where a spawner's library looks when it is loaded, as KubeSpawner's does
        with_config[settings.runs.config.variable] = str(settings.config_file)
    hub_config = Path(mlp_hub.__file__).parent / "hub_integration" / "jupyterhub_config.py"
    components = {  # in the order in which they are stopped
        "hub": _entry(
            settings,
            "hub",
            [python, "-m", "mlp_hub.hub_integration", "-f", str(hub_config)],
            base | with_config,
            # a changed file or secret restarts the hub
            extra=_digest_of(settings.config) + _digest(settings.login_client_secret),
            secret_env={
                "JUPYTERHUB_CRYPT_KEY": str(settings.secret_file("crypt_key")),
                **{variable: str(path) for variable, path, _ in _given_secrets(settings)},
            },
            asks=(settings.hub_socket, settings.base + HUB_HEALTH),
        ),
        **{
            name: _entry(
                settings,
                name,
                [python, "-m", "mlp_hub.app", str(number)],
                base,
                asks=(settings.replica_socket(number), SERVICE_HEALTH),
            )
            for number, name in enumerate(settings.services, 1)
        },
        "data": _entry(
            settings,
            "data",
            [python, "-m", "mlp_hub.dav"],
            base,
            asks=(settings.data_socket, "/health"),
        ),
        "proxy": _entry(
            settings,
            "proxy",
            proxy_command(settings),
            base,
            secret_env={
                "CONFIGPROXY_AUTH_TOKEN": str(settings.secret_file("proxy_token")),
                "MLP_GATEWAY_TOKEN": str(settings.secret_file("gateway_token")),
            },
            asks=(settings.proxy_api_socket, "/health"),
        ),
    }
    plan = {
        "directory": str(settings.private_dir),
        "lock": str(settings.home / "supervisor.lock"),
        "grace_s": GRACE_S,
        "log_max": settings.log_max << 20,
        "log_format": settings.log_format,
        "listens": f"{settings.bind}:{settings.port}",
        "instance": instance,
        "build": build_stamp(),
        "components": list(components.values()),
    }
    plan["id"] = hashlib.sha256(json.dumps(plan_essence(plan)).encode()).hexdigest()[:16]
    return plan


def proxy_command(settings: Settings) -> list[str]:
    """Return the command line of the proxy; raise `ProxyMissing` where it is not installed."""
    return proxy.launch_command(
        bind=settings.bind,
        port=settings.port,
        api_socket=settings.proxy_api_socket,
        api=settings.proxy_listens,
        routes=settings.private_dir / "routes.json",
        hub=settings.hub_at,
        hosts=[*settings.allowed_hosts, socket.gethostname(), settings.bind, settings.origins.host],
        platform=settings.origins.platform,
        users=settings.origins.users,
        connections=settings.connections_max,
        per_address=settings.connections_per_address,
        per_server=settings.connections_per_user,
        trusted=[str(network) for network in settings.in_front],
        hsts=settings.hsts,
        tls=settings.tls,
        base=settings.base,
        pods=proxy.Succession(HOLD_S, LEAVE_S, settings.proxy_at) if settings.kubernetes_pod else None,
        apps=proxy.Gateway(
            settings.service_at,
            body_max=settings.apps_body_max,
            answer_s=settings.apps_answer_s,
            wake_s=settings.apps_wake_s,
            key_rate=settings.apps_key_rate,
            visitor_rate=settings.apps_visitor_rate,
            tenant_rate=settings.apps_tenant_rate,
        ),
    )


def plan_essence(plan: Mapping[str, Any]) -> list[Any]:
    """Return what has to change for a running supervisor to read its plan again."""
    return [plan["build"], plan["log_max"], [c["digest"] for c in plan["components"]]]


def supervisor_command(plan_file: Path) -> list[str]:
    """Return the command line of the supervisor: isolated and without site, so that it stays small."""
    root = str(Path(mlp_hub.__file__).parent.parent)
    code = f"import sys; sys.path.append({root!r}); {SUPERVISES}; sys.exit(run(sys.argv[1]))"
    return [sys.executable, "-IS", "-c", code, str(plan_file)]


def build_stamp() -> str:
    """Return the installed build: the note of `make up`, or else the last write time of this package."""
    noted = Path(sys.prefix) / ".mlp-installed"
    try:
        return noted.read_text().strip()
    except OSError:
        return str(Path(mlp_hub.__file__).stat().st_mtime_ns)


def _entry(
    settings: Settings,
    name: str,
    argv: list[str],
    env: Mapping[str, str],
    *,
    asks: tuple[Path, str],
    secret_env: Mapping[str, str] | None = None,
    extra: str = "",
) -> dict[str, Any]:
    ours = {key: value for key, value in sorted(env.items()) if key.startswith("MLP_")}
    # the rest of the environment differs from shell to shell and must not restart anything
    same = json.dumps([argv, ours, build_stamp(), extra, _digest_of_secrets(settings)])
    socket_path, path = asks
    return {
        "name": name,
        "argv": argv,
        "env": dict(env),
        "secret_env": dict(secret_env or {}),
        "asks": {"socket": str(socket_path), "path": path},  # which any answer to says that it lives
        "log": str(settings.log_dir / f"{name}.log"),
        "digest": hashlib.sha256(same.encode()).hexdigest()[:16],
    }


def _is_kept(key: str) -> bool:
    return key in _KEPT or key.startswith(_KEPT_PREFIXES) or key.upper().endswith(_KEPT_SUFFIXES)


def _digest_of(path: Path | None) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path else ""


def _digest_of_secrets(settings: Settings) -> str:
    """Return a digest that changes with a secret that all processes read at their start.

    A torn secret that was recreated changes it too.
    """
    digest = hashlib.sha256()
    for name in ("cookie_secret", "crypt_key", "secrets_key", *TOKENS):
        with contextlib.suppress(OSError):
            digest.update(settings.secret_file(name).read_bytes())
    return digest.hexdigest()[:16]


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest() if secret else ""


def _given_secrets(settings: Settings) -> list[tuple[str, Path, str]]:
    """List secrets that were given as settings: the variable, the file that only the hub's user reads, and the secret."""
    if not settings.login_client_secret:
        return []
    return [(variable_of("login_client_secret"), _given_file(settings), settings.login_client_secret)]


def _given_file(settings: Settings) -> Path:
    return settings.secret_file("login_client_secret.given")


def write(settings: Settings, plan: Mapping[str, Any]) -> None:
    """Write the plan where the supervisor reads it, after the secrets whose files it names."""
    write_secrets(settings)
    durable.write(plan_file(settings), json.dumps(plan, indent=1, sort_keys=True))


def write_secrets(settings: Settings) -> None:
    """Write secrets from settings to the files of the plan; files of other earlier secrets are removed."""
    given = _given_secrets(settings)
    for _, path, secret in given:
        durable.write(path, secret + "\n")
    if not given:
        _given_file(settings).unlink(missing_ok=True)


def read(settings: Settings) -> dict[str, Any] | None:
    """Return the plan that was written last; None where there is none."""
    try:
        found = durable.read_object(plan_file(settings), "id", "components")
        known = all(
            isinstance(entry, dict) and {"name", "argv", "env"} <= entry.keys()
            for entry in found["components"]
        )
    except (OSError, ValueError, TypeError):
        return None
    return found if known else None


def started_with(settings: Settings) -> dict[str, str]:
    """Return the settings of the last `up`, by their variables, but for secrets; empty where none is known."""
    plan = read(settings)
    if plan is None:
        return {}
    env: Mapping[str, Any] = next(
        (entry["env"] for entry in plan["components"] if entry["name"] == "service"), {}
    )
    return {str(key): str(value) for key, value in dict(env).items() if str(key).startswith("MLP_")}


def as_started(settings: Settings, environ: Mapping[str, str]) -> Settings:
    """Return these settings with the settings of the last `up`; the shell's settings have priority."""
    started = started_with(settings)
    if not started:
        return settings
    try:
        return Settings.load({**started, **environ, "MLP_HOME": str(settings.home)})
    except SettingsError:
        return settings


def plan_file(settings: Settings) -> Path:
    """Return where the plan lies."""
    return settings.private_dir / "plan.json"
