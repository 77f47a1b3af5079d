"""Tokens and configurations with which a test's Prometheus scrapes a real hub."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from support.hubs.live_hub import LiveHub

TOKENS_USER = "admin"


def token_of(hub: LiveHub, file: Path, user: str = TOKENS_USER) -> str:
    """Make a scraper's token, and write it into a file."""
    made = hub.run("token", "--user", user, "--scope", "read:metrics", "--note", "prometheus").stdout.strip()
    file.write_text(made)
    return made


def as_the_operator_writes(
    configs: Iterable[dict[str, Any]], file: Path, target: str, namespace: str
) -> dict[str, Any]:
    """Return ScrapeConfigs as the Prometheus Operator writes them for Prometheus, with the Secret mounted at `file` and plain HTTP to `target`."""
    jobs = []
    for one in configs:
        spec = one["spec"]
        jobs.append(
            {
                "job_name": f"scrapeConfig/{namespace}/{one['metadata']['name']}",
                "metrics_path": spec["metricsPath"],
                "authorization": {"type": spec["authorization"]["type"], "credentials_file": str(file)},
                "static_configs": [{"targets": [target]}],
                "relabel_configs": [
                    {"target_label": each["targetLabel"], "replacement": each["replacement"]}
                    for each in spec["relabelings"]
                ],
            }
        )
    return {"scrape_configs": jobs}


def scrape(hub: LiveHub, file: Path) -> dict[str, Any]:
    """Return the configuration that the command prints, for an address that needs no name of localhost."""
    printed = yaml.safe_load(hub.run("monitor", "scrape", "--token-file", str(file)).stdout)
    found: dict[str, Any] = printed
    for job in found["scrape_configs"]:
        job["static_configs"] = [{"targets": [f"127.0.0.1:{hub.port}"]}]
    return found
