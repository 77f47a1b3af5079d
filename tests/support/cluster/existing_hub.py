"""A JupyterHub with KubeSpawner in a real cluster, configured as Zero-to-JupyterHub renders it: what a site has before it attaches.

Its hub is a pod with the Services `hub`, `proxy-api` and `proxy-public`, the Secret `hub` has tokens of services, servers are pods
of the same namespace with a claim for each user. Its proxy is this project's, which has the API of configurable-http-proxy.
"""

from __future__ import annotations

import base64
import contextlib
import json
import secrets
import subprocess
import threading
import uuid
from pathlib import Path
from typing import Any

import httpx

from support.cluster.kube import Kube, Namespace, RefusedError
from support.ports import free_port
from support.waiting import PATIENCE_S, wait_for

SERVICES = ("tests", "mlp", "mlp-spawner", "mlp-data")
IMAGE, SERVER_IMAGE = "mlp.local/hub:dev", "mlp.local/notebook:dev"
START_S = 600.0
"""Seconds for images and pods on a busy machine; it bounds only tests that fail."""
CONFIG = """
import os
from pathlib import Path

def token_of(service):
    return Path(f"/usr/local/etc/jupyterhub/secret/hub.services.{service}.apiToken").read_text()

c.JupyterHub.spawner_class = "kubespawner.KubeSpawner"
c.ConfigurableHTTPProxy.api_url = "http://proxy-api:8001"
c.ConfigurableHTTPProxy.should_start = False
c.JupyterHub.cleanup_servers = False
c.JupyterHub.last_activity_interval = 60
c.JupyterHub.tornado_settings = {"slow_spawn_timeout": 0}
c.JupyterHub.hub_bind_url = "http://:8081"
c.JupyterHub.hub_connect_url = "http://hub:8081"
c.JupyterHub.db_url = "sqlite:////srv/jupyterhub/jupyterhub.sqlite"
c.JupyterHub.cookie_secret = b"c" * 32
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.Authenticator.admin_users = {"root"}
c.KubeSpawner.namespace = os.environ["POD_NAMESPACE"]
c.KubeSpawner.common_labels = {"app": "jupyterhub", "release": "site", "app.kubernetes.io/managed-by": "kubespawner"}
c.KubeSpawner.extra_labels = {"hub.jupyter.org/network-access-hub": "true"}
c.KubeSpawner.image = "SERVER_IMAGE"
c.KubeSpawner.image_pull_policy = "IfNotPresent"
c.KubeSpawner.cmd = "jupyterhub-singleuser"
c.KubeSpawner.uid, c.KubeSpawner.fs_gid = 1000, 100
c.KubeSpawner.allow_privilege_escalation = False
c.KubeSpawner.automount_service_account_token = False
c.KubeSpawner.mem_guarantee = "400M"
c.KubeSpawner.pvc_name_template = "claim-{user_server}"
c.KubeSpawner.storage_pvc_ensure = True
c.KubeSpawner.storage_class, c.KubeSpawner.storage_capacity = os.environ["POD_NAMESPACE"], "1Gi"
c.KubeSpawner.storage_access_modes = ["ReadWriteOnce"]
c.KubeSpawner.volumes = {"home": {"name": "volume-{user_server}", "persistentVolumeClaim": {"claimName": "{pvc_name}"}}}
c.KubeSpawner.volume_mounts = {"home": {"mountPath": "/home/jovyan", "name": "volume-{user_server}"}}
c.KubeSpawner.environment = {"HOME": "/home/jovyan"}
c.KubeSpawner.working_dir = "/home/jovyan"
c.KubeSpawner.start_timeout = c.KubeSpawner.http_timeout = 600
c.KubeSpawner.profile_list = [
    {"display_name": "Small", "slug": "small", "default": True, "kubespawner_override": {"cpu_limit": 0.5, "cpu_guarantee": 0.05}},
    {"display_name": "Large", "slug": "large", "kubespawner_override": {"cpu_limit": 4, "cpu_guarantee": 0.05}},
]

async def greet(spawner):
    spawner.environment["SITE_HOOK"] = "ran"

c.KubeSpawner.pre_spawn_hook = greet
c.JupyterHub.services = []
c.JupyterHub.load_roles = [{"name": "tests", "services": ["tests"], "scopes": [
    "admin:users", "admin:servers", "tokens", "list:users", "access:servers"]}]
for name, service in HUB_SERVICES.items():
    c.JupyterHub.services.append({**service, "name": name, "api_token": token_of(name)})
"""
PROXY = """
import os
from pathlib import Path
from mlp_hub.proxy import launch_command
argv = launch_command(bind="0.0.0.0", port=8000, api_socket=Path("/tmp/api.sock"), routes=Path("/tmp/routes.json"), hub=("hub", 8081),
    hosts=["localhost", "127.0.0.1"], platform="", api=("0.0.0.0", 8001))
os.execv(argv[0], argv)
"""


class ExistingHub:
    """The site's hub in a namespace of its own, with its public port forwarded to this machine."""

    def __init__(self, kube: Kube, home: Path) -> None:
        self.kube = kube
        self.at = Namespace(kube, f"site-{uuid.uuid4().hex[:6]}")
        self.home = home
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.http = httpx.Client(base_url=self.url, timeout=PATIENCE_S, trust_env=False)
        self.clients = [self.http]
        self.tokens = {name: secrets.token_hex(32) for name in SERVICES}
        self.given: dict[str, Any] = {}
        self._ended = threading.Event()
        self._forward: subprocess.Popen[bytes] | None = None
        self._forwarding = threading.Thread(target=self._keep_forwarding, daemon=True)

    # ------------------------------------------------------------------ objects

    def up(self, *users: str) -> None:
        """Install it, with a volume for each user's claim; return once people can log in."""
        self.kube("create", "namespace", self.at.name)
        for of in ("database", *users):
            self.at.apply(self._volume(of))
        data = {f"hub.services.{name}.apiToken": _b64(token) for name, token in self.tokens.items()}
        data["proxy"] = _b64("p" * 64)
        self.at.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hub"}, "data": data})
        for one in (*_rights(self.at.name), *_ports(), _deployment("proxy", _proxy())):
            self.at.apply(one)
        self._forwarding.start()
        self.upgrade({})

    def upgrade(self, values: dict[str, Any]) -> None:
        """Give the hub values as `helm upgrade` does, of which it reads `hub`; return once it serves again."""
        self.given = values.get("hub", {})
        config = CONFIG.replace("SERVER_IMAGE", SERVER_IMAGE)
        config = config.replace("HUB_SERVICES", repr({"tests": {}, **self.given.get("services", {})}))
        for _, text in sorted(self.given.get("extraConfig", {}).items()):
            config += f"\n{text}\n"
        self.at.apply(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "hub"},
                "data": {"jupyterhub_config.py": config},
            }
        )
        self.at.apply(_deployment("hub", _hub(self.given, config)))
        self.at("rollout", "status", "deployment/proxy", f"--timeout={START_S:.0f}s")
        self.at("rollout", "status", "deployment/hub", f"--timeout={START_S:.0f}s")
        wait_for(self._answers, START_S, 0.2, "for the site's login page")

    def _answers(self) -> bool:
        with contextlib.suppress(httpx.TransportError):
            return self.http.get("/hub/login").status_code == 200
        return False

    def _volume(self, of: str) -> dict[str, Any]:
        place = self.home / "claims" / of
        place.mkdir(parents=True)
        for path in (self.home, place.parent):
            path.chmod(0o755)
        place.chmod(0o777)
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"{self.at.name}-{of}", "labels": {"site": self.at.name}},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": self.at.name,  # no other test's claim takes it
                "hostPath": {"path": str(place), "type": "Directory"},
            },
        }

    def destroy(self) -> None:
        """Remove all of it."""
        for client in self.clients:
            client.close()
        self._ended.set()
        if self._forward is not None:
            self._forward.terminate()
        self.kube("delete", "namespace", self.at.name, "--wait=false", "--ignore-not-found")
        self.kube("delete", "pv", "-l", f"site={self.at.name}", "--wait=false", "--ignore-not-found")

    def _keep_forwarding(self) -> None:
        command = [self.kube.program, f"--kubeconfig={self.kube.kubeconfig}", "-n", self.at.name]
        command += ["port-forward", "svc/proxy-public", f"{self.port}:80"]
        while not self._ended.is_set():
            self._forward = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self._forward.wait()
            self._ended.wait(0.3)

    def log(self, part: str) -> str:
        """Return what a part has printed, as far as it can be had."""
        try:
            return self.at("logs", f"deployment/{part}", "--all-containers", "--tail=200")
        except RefusedError as refused:
            return str(refused)

    # ------------------------------------------------------------------- people

    def api(self, method: str, path: str, token: str = "", **more: Any) -> httpx.Response:
        """Call the hub's API, as the service of the tests unless a token is given."""
        headers = {"Authorization": f"token {token or self.tokens['tests']}"}
        return self.http.request(method, f"/hub/api{path}", headers=headers, **more)

    def token(self, user: str) -> str:
        """Make a user known, and a token with all rights of the user."""
        self.api("POST", f"/users/{user}")
        answer = self.api("POST", f"/users/{user}/tokens", json={})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["token"])

    def spawn(self, user: str, profile: str) -> str:
        """Start a server of a profile; return why it did not start, empty where it runs."""
        answer = self.api("POST", f"/users/{user}/server", json={"profile": profile})
        assert answer.status_code in (201, 202), answer.text
        said = ""
        with self.http.stream(
            "GET",
            f"/hub/api/users/{user}/server/progress",
            headers={"Authorization": f"token {self.tokens['tests']}"},
            timeout=START_S,
        ) as events:
            for line in events.iter_lines():
                if line.startswith("data:"):
                    event = json.loads(line.removeprefix("data:"))
                    if event.get("ready"):
                        return ""
                    if event.get("failed"):
                        said = str(event.get("message") or event)
        return said or "no event said that it is ready"

    def stop(self, user: str) -> None:
        """Stop a user's server; return once it is gone."""
        self.api("DELETE", f"/users/{user}/server")
        wait_for(lambda: not self.api("GET", f"/users/{user}").json()["servers"], START_S, 0.2)


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _rights(namespace: str) -> tuple[dict[str, Any], ...]:
    verbs = ["get", "watch", "list", "create", "delete"]
    rules = [
        {
            "apiGroups": [""],
            "resources": ["pods", "persistentvolumeclaims", "secrets", "services"],
            "verbs": verbs,
        },
        {"apiGroups": [""], "resources": ["events"], "verbs": ["get", "watch", "list"]},
    ]
    of = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "hub"}}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return (
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "hub-db-dir"},
            "spec": {**claim, "storageClassName": namespace},
        },
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "hub"}},
        {**of, "kind": "Role", "rules": rules},
        {
            **of,
            "kind": "RoleBinding",
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "hub"},
            "subjects": [{"kind": "ServiceAccount", "name": "hub", "namespace": namespace}],
        },
    )


def _ports() -> list[dict[str, Any]]:
    def service(name: str, part: str, port: int, target: int) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name},
            "spec": {
                "selector": {"app": "jupyterhub", "component": part, "release": "site"},
                "ports": [{"name": "http", "port": port, "targetPort": target}],
            },
        }

    return [
        service("hub", "hub", 8081, 8081),
        service("proxy-api", "proxy", 8001, 8001),
        service("proxy-public", "proxy", 80, 8000),
    ]


def _deployment(name: str, pod: dict[str, Any]) -> dict[str, Any]:
    labels = {"app": "jupyterhub", "component": name, "release": "site"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels, **pod.pop("metadata", {})}, "spec": pod},
        },
    }


def _proxy() -> dict[str, Any]:
    token = {"name": "CONFIGPROXY_AUTH_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "proxy"}}}
    container = {
        "name": "chp",
        "image": IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python", "-c", PROXY],
        "env": [token, {"name": "HOME", "value": "/tmp"}],
        "readinessProbe": {"tcpSocket": {"port": 8000}, "periodSeconds": 1},
    }
    return {"containers": [container], "terminationGracePeriodSeconds": 1}


def _hub(given: dict[str, Any], config: str) -> dict[str, Any]:
    own = Path("/usr/local/etc/jupyterhub")
    fields = {"POD_NAMESPACE": "metadata.namespace"}
    env = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()]
    env.append(
        {"name": "CONFIGPROXY_AUTH_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "proxy"}}}
    )
    env.append({"name": "HOME", "value": "/tmp"})
    env += [{"name": name, "value": value} for name, value in given.get("extraEnv", {}).items()]
    container = {
        "name": "hub",
        "image": IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": ["jupyterhub", "--config", str(own / "jupyterhub_config.py"), "--upgrade-db"],
        "env": env,
        "volumeMounts": [
            {"name": "config", "mountPath": str(own)},
            {"name": "secret", "mountPath": str(own / "secret")},
            {"name": "database", "mountPath": "/srv/jupyterhub"},
            *given.get("extraVolumeMounts", ()),
        ],
        "workingDir": "/srv/jupyterhub",
        "readinessProbe": {"httpGet": {"path": "/hub/health", "port": 8081}, "periodSeconds": 1},
    }
    return {
        # a pod with another configuration is another pod, as a checksum of the chart makes it
        "metadata": {"annotations": {"checksum": str(hash(config))}},
        "serviceAccountName": "hub",
        "securityContext": {"runAsUser": 1000, "fsGroup": 1000},
        "terminationGracePeriodSeconds": 5,
        "initContainers": given.get("initContainers", []),
        "containers": [container],
        "volumes": [
            {"name": "config", "configMap": {"name": "hub"}},
            {"name": "secret", "secret": {"secretName": "hub"}},
            {"name": "database", "persistentVolumeClaim": {"claimName": "hub-db-dir"}},
            *given.get("extraVolumes", ()),
        ],
    }
