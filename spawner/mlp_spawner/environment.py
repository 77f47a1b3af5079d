"""Environment of a notebook server: JupyterHub's variables, ours, and nothing else of the hub's; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import quote, urlsplit

from mlp_hub.sandbox import ENVIRONMENTS_AT, KERNELS, QUIET, thread_variables

API_PATH = "/services/mlp/api/v1"
_PASSED_ON = ("JUPYTERHUB_", "JPY_", "MEM_", "CPU_", "MLP_")
_PIP = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CERT", "PIP_TRUSTED_HOST", "PIP_DEFAULT_TIMEOUT")


@dataclass(frozen=True, slots=True)
class Who:
    """Owner of a server, and the paths of its data inside the sandbox."""

    user: str
    base_url: str  # the server's prefix on the public port
    home: str
    python: str
    service_socket: str  # path of the service's socket for tenants


def api_url(service_socket: str) -> str:
    """Write the address of the REST API over a UNIX socket, as `MLP_API_URL` has it."""
    return f"http+unix://{quote(service_socket, safe='')}{API_PATH}"


def build(given: Mapping[str, str], who: Who) -> dict[str, str]:
    """Return the whole environment of the server. `given` is the spawner's `get_env()`."""
    return _common(given, who.user, who.home) | {
        "PATH": f"{who.home}/.local/bin:{PurePosixPath(who.python).parent}:/usr/local/bin:/usr/bin:/bin",
        # an http:// one would make the server ask for a port beside its socket
        "JUPYTERHUB_SERVICE_URL": f"http+unix://x{who.base_url}",
        "MLP_API_URL": api_url(who.service_socket),
        "JUPYTER_PATH": f"{ENVIRONMENTS_AT}/{KERNELS}",
    }


def build_for_pod(given: Mapping[str, str], user: str, api_url: str, data_url: str = "") -> dict[str, str]:
    """Return the environment of a server in a pod, whose image has its own search path."""
    files = {"MLP_DATA_URL": data_url} if data_url else {}
    return _common(given, user, f"/home/{user}") | {"MLP_API_URL": api_url} | files


def _common(given: Mapping[str, str], user: str, home: str) -> dict[str, str]:
    passed_on = {k: v for k, v in given.items() if k.startswith(_PASSED_ON)}
    return (
        QUIET
        | thread_variables(_cores(given))
        | passed_on
        | {
            "HOME": home,
            "MLP_DATA": f"/mlp/datasets/{user}",
            "USER": user,
            "LOGNAME": user,
            "SHELL": "/bin/bash",
            "LANG": "C.UTF-8",
            "TMPDIR": "/tmp",  # noqa: S108 - the server's own
            "XDG_RUNTIME_DIR": "/tmp",  # noqa: S108
        }
    )


def _cores(given: Mapping[str, str]) -> float:
    """Return the cores of the server; 0 if JupyterHub has no limit."""
    try:
        return max(0.0, float(given.get("CPU_LIMIT") or 0))
    except ValueError:
        return 0.0


def pip_settings(hub: Mapping[str, str]) -> dict[str, str]:
    """Pick the hub's own settings of where packages come from, but none that holds a password."""
    return {k: hub[k] for k in _PIP if hub.get(k) and not any(urlsplit(u).password for u in hub[k].split())}
