"""Access to a cluster through kubectl, as people use it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

PATIENCE = "180s"
"""Bounds a test that fails; none waits so long."""

CUT_OFF = re.compile(r"failed calling webhook.*(broken pipe|connection reset|EOF)")
"""What the API server says where a webhook closed an idle connection just as it was used: nobody has judged the request yet. It sends
no POST twice by itself, so whoever asked has to."""


class RefusedError(Exception):
    """kubectl said no."""


class Kube:
    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        beside = kubeconfig.with_name("kubectl")
        found = str(beside) if beside.exists() else shutil.which("kubectl")
        assert found, f"no kubectl beside {kubeconfig} and none in PATH"
        self.program = found

    def __call__(self, *words: str, given: str | None = None) -> str:
        command = [self.program, f"--kubeconfig={self.kubeconfig}", *words]
        while True:
            done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
            if not CUT_OFF.search(done.stderr):
                break
        if done.returncode:
            raise RefusedError(done.stderr.strip())
        return done.stdout

    def get(self, *words: str) -> dict[str, Any]:
        return json.loads(self("get", "-o", "json", *words))


class Namespace:
    """One namespace of a cluster."""

    def __init__(self, kube: Kube, name: str) -> None:
        self.kube = kube
        self.name = name

    def __call__(self, *words: str, given: str | None = None) -> str:
        return self.kube("--namespace", self.name, *words, given=given)

    def get(self, *words: str) -> dict[str, Any]:
        return self.kube.get("--namespace", self.name, *words)

    def apply(self, given: str | dict[str, Any]) -> None:
        self(
            "apply", "--server-side", "-f", "-", given=given if isinstance(given, str) else json.dumps(given)
        )

    def until(self, what: str, holds: str) -> None:
        """Wait until an object has a condition, or a field a value (`jsonpath={.status.phase}=Succeeded`)."""
        try:
            self("wait", what, f"--for={holds}", f"--timeout={PATIENCE}")
        except RefusedError as refused:
            pods = self("get", "pods,events", "-o", "wide")
            raise AssertionError(
                f"{what} is not {holds}: {refused}\n{self('get', what, '-o', 'yaml')}\n{pods}"
            ) from None
