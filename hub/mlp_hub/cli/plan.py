"""Which processes the embedded hub consists of, written down for the supervisor."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mlp_hub
from mlp_hub import proxy
from mlp_hub.settings import Settings

STOP_ORDER = ("hub", "service", "proxy")
GRACE_S = 15.0
# what components and sandboxes may need of the operator's environment; all else stays out of them
_KEPT = ("HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER", "LD_LIBRARY_PATH")
_KEPT_PREFIXES = ("LC_", "PIP_", "UV_", "SSL_", "CUDA_", "NVIDIA_", "XDG_", "OAUTH_")
_KEPT_SUFFIXES = ("_PROXY", "_CA_BUNDLE", "_CA_CERTS")


def make(settings: Settings, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the supervisor's plan for these settings."""
    base = {key: value for key, value in environ.items() if _is_kept(key)} | settings.to_environ()
    python = sys.executable
    with_config = {"MLP_CONFIG": str(settings.config)} if settings.config else {}
    hub_config = Path(mlp_hub.__file__).parent / "hubside" / "jupyterhub_config.py"
    components = {
        "hub": _entry(
            settings,
            "hub",
            [python, "-m", "mlp_hub.hubside", "-f", str(hub_config)],
            base | with_config,
            # a changed file restarts the hub
            extra=_digest_of(settings.config),
        ),
        "service": _entry(settings, "service", [python, "-m", "mlp_hub.app"], base),
        "proxy": _entry(
            settings,
            "proxy",
            proxy.launch_command(
                bind=settings.bind,
                port=settings.port,
                api_socket=settings.proxy_api_socket,
                routes=settings.private_dir / "routes.json",
                hub_socket=settings.hub_socket,
                hosts=[*settings.allowed_hosts, socket.gethostname(), settings.bind],
                connections=settings.connections_max,
                per_address=settings.connections_per_address,
            ),
            base,
            secret_env={"CONFIGPROXY_AUTH_TOKEN": str(settings.secret_file("proxy_token"))},
        ),
    }
    plan = {
        "directory": str(settings.private_dir),
        "lock": str(settings.home / "supervisor.lock"),
        "grace_s": GRACE_S,
        "log_max": settings.log_max << 20,
        "url": settings.url,
        "build": build_stamp(),
        "components": [components[name] for name in STOP_ORDER],
    }
    plan["id"] = hashlib.sha256(json.dumps(plan_essence(plan)).encode()).hexdigest()[:16]
    return plan


def plan_essence(plan: Mapping[str, Any]) -> list[Any]:
    """Return what has to change for a running supervisor to read its plan again."""
    return [plan["build"], plan["log_max"], [c["digest"] for c in plan["components"]]]


def supervisor_command(plan_file: Path) -> list[str]:
    """Return the command line of the supervisor: isolated and without site, so that it stays small."""
    root = str(Path(mlp_hub.__file__).parent.parent)
    code = f"import sys; sys.path.append({root!r}); from mlp_hub.cli.supervisor import run; sys.exit(run(sys.argv[1]))"
    return [sys.executable, "-IS", "-c", code, str(plan_file)]


def build_stamp() -> str:
    """Tell which build is installed: what `make up` noted down, else when this package was last written."""
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
    secret_env: Mapping[str, str] | None = None,
    extra: str = "",
) -> dict[str, Any]:
    ours = {key: value for key, value in sorted(env.items()) if key.startswith("MLP_")}
    # the rest of the environment differs from shell to shell and must not restart anything
    same = json.dumps([argv, ours, build_stamp(), extra])
    return {
        "name": name,
        "argv": argv,
        "env": dict(env),
        "secret_env": dict(secret_env or {}),
        "log": str(settings.log_dir / f"{name}.log"),
        "digest": hashlib.sha256(same.encode()).hexdigest()[:16],
    }


def _is_kept(key: str) -> bool:
    return key in _KEPT or key.startswith(_KEPT_PREFIXES) or key.upper().endswith(_KEPT_SUFFIXES)


def _digest_of(path: Path | None) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path else ""


def write(settings: Settings, plan: Mapping[str, Any]) -> None:
    """Write the plan where the supervisor reads it."""
    path = plan_file(settings)
    new = path.with_suffix(".new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(plan, file, indent=1, sort_keys=True)
    new.replace(path)


def read(settings: Settings) -> dict[str, Any] | None:
    """Return the plan that was written last; None where there is none."""
    try:
        found: dict[str, Any] = json.loads(plan_file(settings).read_text())
    except (OSError, ValueError):
        return None
    return found


def plan_file(settings: Settings) -> Path:
    """Return where the plan lies."""
    return settings.private_dir / "plan.json"
