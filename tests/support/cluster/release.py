"""A hub that the Helm chart installed in a real cluster: all of its parts are pods."""

from __future__ import annotations

import base64
import contextlib
import shutil
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import yaml

from mlp_cluster import helm
from support.cluster.chart import CHART, VALUES
from support.cluster.kube import Kube, Namespace, RefusedError
from support.cluster.pod_stack import leave
from support.hubs.live_hub import LOGS, PASSWORD, LiveHub
from support.waiting import PATIENCE_S, wait_for

NAME = "hub-mlp-hub"
"""Begin of the names of the objects of the release `hub`."""
PARTS = ("proxy", "hub", "service", "data", "postgresql")
OF_THE_CHART = {
    "MLP_HOME", "MLP_PORT", "MLP_BIND", "MLP_PUBLIC_URL", "MLP_BASE_PATH", "MLP_USERS_DOMAIN", "MLP_TRUSTED_PROXIES", "MLP_TLS_CERT",
}  # fmt: skip
"""Variables in whose place the chart has values, or sets them itself."""
CERTIFICATE = "certificate"
FEW = {"requests": {"cpu": "20m", "memory": "64Mi"}}
"""Pods of other tests are on the node too."""
PATIENT = "c.Spawner.start_timeout = c.PodSpawner.node_patience_s = 900\n"
"""On a machine with much else to do a pod may be long in coming; this bounds only tests that fail."""
START_S = 900.0
"""Seconds for images, databases and all parts on a busy machine; it bounds only tests that fail."""


class Release(LiveHub):
    """A release of the chart with the values of the quickstart, files in a directory of this machine, and its name forwarded to a port.

    `mlp-hub` runs in the hub's pod, `up` and `down` are helm's and the Deployments'. What `more` has goes over the values.
    """

    def __init__(self, kube: Kube, home: Path, more: dict[str, Any] | None = None, **environ: str) -> None:
        self.name = f"t{uuid.uuid4().hex[:6]}"
        self.files = home / "files"
        super().__init__(
            home,
            **{
                **environ,
                "MLP_EXECUTOR": "kubernetes",
                "MLP_KUBERNETES_CONFIG": str(kube.kubeconfig),
                "MLP_KUBERNETES_NAME": self.name,
                "MLP_KUBERNETES_FILES": str(self.files),
            },
        )
        self.inner_port = 8000  # as the chart has it
        self.parts: tuple[str, ...] = PARTS
        self.kube = kube
        self._given = dict(self.env)
        self.program = helm.build()
        self.at = Namespace(kube, f"release-{self.name}")
        self.values = {**self._values(environ), **(more or {})}
        self._ended = threading.Event()
        self._forward: subprocess.Popen[bytes] | None = None
        self._forwarding = threading.Thread(target=self._keep_forwarding, daemon=True)

    def _values(self, environ: dict[str, str]) -> dict[str, Any]:
        # the chart sets addresses and paths itself
        settings = {
            name.removeprefix("MLP_").lower(): yaml.safe_load(value)
            for name, value in environ.items()
            if name.startswith("MLP_") and name not in OF_THE_CHART
        }
        address: dict[str, Any] = {"url": f"{self.url}/"}
        if users := environ.get("MLP_USERS_DOMAIN"):
            address["usersDomain"] = users
        if trusted := environ.get("MLP_TRUSTED_PROXIES"):
            address["trustedProxies"] = {"given": trusted}
        return {
            "installation": self.name,
            "address": address,
            "storage": {"source": {"hostPath": {"path": str(self.files), "type": "Directory"}}},
            "settings": {"node_cpu_overcommit": 16, **settings},
            "config": PATIENT,
            "service": {"replicas": 2},
            "proxy": {"tls": {"secretName": CERTIFICATE}} if "MLP_TLS_CERT" in environ else {},
        }

    # ---------------------------------------------------------------------- helm

    def helm(self, *words: str | Path, check: bool = True) -> str:
        """Run helm in the release's namespace."""
        command = [self.program, "--kubeconfig", self.kube.kubeconfig, "--namespace", self.at.name, *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=START_S, check=False)
        assert not check or done.returncode == 0, f"helm {' '.join(map(str, words))}: {done.stderr}"
        return done.stdout

    def with_values(self, **changed: Any) -> list[str | Path]:
        """Return the words for helm that give the values, with these in the place of those of the same name."""
        file = self.home / "values.yaml"
        few = {part: {"resources": FEW} for part in PARTS}
        merged = {**few, **self.values, **changed}
        for part in PARTS:
            merged[part] = {**few[part], **merged[part]}
        file.write_text(yaml.safe_dump(merged))
        return [CHART, "--values", VALUES / "trial.yaml", "--values", file]

    def up(self) -> str:
        """Install it, or start its parts again where `down` ended them; return once people can log in."""
        if self._forwarding.is_alive():
            self._scale({part: 2 if part == "service" else 1 for part in self.parts})
            self.until_ready()
            return ""
        self.prepare()
        notes = self.helm("install", "hub", *self.with_values())
        self._forwarding.start()
        self.until_ready()
        return notes

    def prepare(self) -> None:
        """Make the directory of all files, and the namespace; nothing where they are."""
        if self.files.exists():
            return
        self.files.mkdir(parents=True)
        self.files.chmod(0o777)  # of another, who lets the hub write there, as volumes may be
        self.home.chmod(0o755)
        self.kube("create", "namespace", self.at.name)
        self.kube("label", "namespace", self.at.name, "pod-security.kubernetes.io/enforce=restricted")
        if pem := self._given.get("MLP_TLS_CERT"):
            both = (f"--from-file=tls.crt={pem}", f"--from-file=tls.key={pem}")
            self.at("create", "secret", "generic", CERTIFICATE, *both)

    def down(self, jobs: str = "") -> None:
        """End all pods of the release but its database; jobs and notebook servers go on."""
        ended = [part for part in self.parts if part != "postgresql"]
        self._scale(dict.fromkeys(ended, 0))
        for part in ended:
            self.at(
                "wait", "pod", "-l", f"app.kubernetes.io/component={part}", "--for=delete", "--timeout=180s"
            )

    def _scale(self, parts: dict[str, int]) -> None:
        for part, count in parts.items():
            self.at("scale", f"deployment/{NAME}-{part}", f"--replicas={count}")

    def until_ready(self) -> None:
        """Wait until all parts are ready, and the login page and the API answer."""
        for part in self.parts:
            self.at("rollout", "status", f"deployment/{NAME}-{part}", f"--timeout={START_S:.0f}s")
        self.until_login()
        wait_for(self._answers, START_S, 0.2, "for the API to answer")

    def until_login(self) -> None:
        """Wait for the login page."""

        def there() -> bool:
            with contextlib.suppress(httpx.TransportError):
                answer = self.http.get("/hub/login")
                return answer.status_code == 200 and "username_input" in answer.text
            return False

        wait_for(there, START_S, 0.2, "for the login page")

    def _answers(self) -> bool:
        with contextlib.suppress(httpx.TransportError):
            return self.http.get("/services/mlp/api/v1/health").status_code == 200
        return False

    def destroy(self) -> None:
        """Remove the release, and all that it and its hub have in the cluster."""
        for client in self.clients:
            client.close()
        self._keep_logs()
        self.helm("uninstall", "hub", "--wait", "--ignore-not-found", check=False)
        self._ended.set()
        if self._forward is not None:
            self._forward.terminate()
        leave(self.kube, self.name)
        self.kube("delete", "namespace", self.at.name, "--wait=false", "--ignore-not-found")
        self.kube("delete", "pv", f"{self.at.name}-{NAME}-files", "--wait=false", "--ignore-not-found")
        shutil.rmtree(self.home, ignore_errors=True)

    def _keep_logs(self) -> None:
        to = LOGS / f"{time.strftime('%H%M%S')}-{self.name}"
        to.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(RefusedError):
            (to / "cluster.log").write_text(self.at("get", "pods,events,pvc", "-o", "wide"))
        for name in self.pods():
            for before in ((), ("--previous",)):
                with contextlib.suppress(RefusedError):
                    words = ("logs", name, "--all-containers", "--prefix", *before)
                    (to / f"{name}{'-before' if before else ''}.log").write_text(self.at(*words))

    # ---------------------------------------------------------------------- pods

    def pods(self, part: str = "") -> dict[str, Any]:
        """Return the pods of the release, or of one part, by name."""
        chosen = "app.kubernetes.io/instance=hub" + (f",app.kubernetes.io/component={part}" if part else "")
        return {one["metadata"]["name"]: one for one in self.at.get("pods", "-l", chosen)["items"]}

    def leader(self) -> str:
        """Return the pod of the service that leads, once there is one."""

        def one() -> str:
            found = self._leaders()
            return found[0] if len(found) == 1 else ""

        return wait_for(one)

    def _leaders(self) -> Sequence[str]:
        labelled = self.at.get("pods", "-l", "mlp-hub/leads=true")["items"]
        return [one["metadata"]["name"] for one in labelled]

    # ------------------------------------------------------------------- mlp-hub

    def run(self, *args: str, check: bool = True, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run `mlp-hub ARGS` in the hub's pod."""
        command = [
            self.kube.program,
            f"--kubeconfig={self.kube.kubeconfig}",
            "-n",
            self.at.name,
            "exec",
            "-i",
        ]
        # what a test has changed of the environment
        changed = [f"{name}={value}" for name, value in self.env.items() if self._given.get(name) != value]
        command += [f"deploy/{NAME}-hub", "-c", "hub", "--", "env", *changed, "mlp-hub", *args]
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False
        )
        assert not check or done.returncode == 0, f"mlp-hub {' '.join(args)}: {done.stdout}\n{done.stderr}"
        return done

    @property
    def admin_password(self) -> str:
        """Password of the first administrator, as NOTES.txt says to read it."""
        return base64.b64decode(self.at.get("secret", f"{NAME}-secrets")["data"]["admin-password"]).decode()

    def add_user(self, name: str, tenant: str | None = None, admin: bool = False) -> None:
        words = [*(("--tenant", tenant) if tenant else ()), *(("--admin",) if admin else ())]
        self.run("user", "add", name, *words, "--password-stdin", stdin=f"{PASSWORD}\n")

    def token(self, user: str) -> str:
        if user not in self._tokens:
            self._tokens[user] = self.run("token", "--user", user).stdout.strip()
        return self._tokens[user]

    # ------------------------------------------------------------------- forward

    def _keep_forwarding(self) -> None:
        # it ends with the pod that it leads to
        command = [self.kube.program, f"--kubeconfig={self.kube.kubeconfig}", "-n", self.at.name]
        command += ["port-forward", f"svc/{NAME}-proxy", f"{self.port}:80"]
        while not self._ended.is_set():
            self._forward = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self._forward.wait()
            self._ended.wait(0.3)


@contextlib.contextmanager
def release(kube: Kube, home: Path, **more: Any) -> Iterator[Release]:
    """Install a release, hand it out, remove it."""
    made = Release(kube, home, **more)
    try:
        made.up()
        yield made
    finally:
        made.destroy()
