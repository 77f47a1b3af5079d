"""A real Prometheus, and its tool for rules; both are in Debian's package `prometheus`."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
import yaml

from support.programs import running_program
from support.waiting import PATIENCE_S, wait_for

needs_prometheus = pytest.mark.skipif(
    shutil.which("prometheus") is None or shutil.which("promtool") is None,
    reason="there is no prometheus here: apt-get install prometheus",
)


def promtool(*words: str | Path) -> str:
    """Return what promtool prints; raise AssertionError with that where it fails."""
    done = subprocess.run(["promtool", *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Prometheus:
    """One that runs, at a port of loopback."""

    def __init__(self, address: str) -> None:
        self._base = f"http://{address}"

    def get(self, path: str, **query: str) -> Any:
        """Return the data of an answer of its API."""
        with urlopen(f"{self._base}/api/v1/{path}?{urlencode(query)}", timeout=PATIENCE_S) as answer:  # noqa: S310 - its own address
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Return the present values of a query, by labels."""
        found = self.get("query", query=expression)["result"]
        return [(one["metric"], float(one["value"][1])) for one in found]

    def targets(self) -> dict[str, str]:
        """Return the health of each job: up, down or unknown, with the last error."""
        found = self.get("targets")["activeTargets"]
        return {one["labels"]["job"]: f"{one['health']} {one['lastError']}".strip() for one in found}

    def alerts(self) -> dict[str, str]:
        """Return the states of the alerts that are pending or firing."""
        return {one["labels"]["alertname"]: one["state"] for one in self.get("alerts")["alerts"]}


@contextmanager
def running(root: Path, config: dict[str, Any], rules: dict[str, Any] | None = None) -> Iterator[Prometheus]:
    """Run one with this configuration, which is checked first; it scrapes and evaluates each half second."""
    root.mkdir(parents=True, exist_ok=True)
    whole: dict[str, Any] = {
        "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "500ms"},
        **config,
    }
    if rules is not None:
        (root / "rules.yml").write_text(yaml.safe_dump(rules))
        whole["rule_files"] = ["rules.yml"]
    file = root / "prometheus.yml"
    file.write_text(yaml.safe_dump(whole))
    promtool("check", "config", file)

    def words(address: str) -> list[str]:
        return [
            "prometheus",
            f"--config.file={file}",
            f"--storage.tsdb.path={root / 'data'}",
            f"--web.listen-address={address}",
        ]

    with running_program("Prometheus", root / "log", words, Prometheus) as found:
        yield found


def until_value(prometheus: Prometheus, expression: str) -> list[tuple[dict[str, str], float]]:
    """Return the values of a query as soon as there are any."""
    found: list[tuple[dict[str, str], float]] = wait_for(
        lambda: prometheus.query(expression), message=f"for {expression}"
    )
    return found
