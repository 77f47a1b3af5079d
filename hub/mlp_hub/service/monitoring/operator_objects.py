"""Objects of the Prometheus Operator for a hub: scrapes, with their token from a Secret, and the alert rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

GROUP = "monitoring.coreos.com"
SECRET, KEY = "mlp-hub-metrics", "token"
"""Contract: the Secret with the scraper's token, which the operator of the hub makes, and the key in it."""


def operator_objects(
    scrape: Mapping[str, Any], rules: Mapping[str, Any], namespace: str, labels: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return a ScrapeConfig for each job of `scrape`, and a PrometheusRule. `labels` are those that the operator selects by.

    The hub is outside of the cluster's Services, so that a ServiceMonitor has nothing to select; a ScrapeConfig names the address.
    """

    def metadata(name: str) -> dict[str, Any]:
        return {"name": name, "namespace": namespace, **({"labels": dict(labels)} if labels else {})}

    jobs = [
        {
            "apiVersion": f"{GROUP}/v1alpha1",
            "kind": "ScrapeConfig",
            "metadata": metadata(job["job_name"]),
            "spec": _spec(job),
        }
        for job in scrape["scrape_configs"]
    ]
    rule = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "PrometheusRule",
        "metadata": metadata("mlp-hub"),
        "spec": dict(rules),
    }
    return [*jobs, rule]


def _spec(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job in the words of the operator."""
    return {
        "jobName": job["job_name"],
        "scheme": job["scheme"].upper(),
        "metricsPath": job["metrics_path"],
        "scrapeInterval": "30s",
        "authorization": {"type": "Bearer", "credentials": {"name": SECRET, "key": KEY}},
        "staticConfigs": job["static_configs"],
        # the operator names a job after its object; alerts and dashboards are the same everywhere
        "relabelings": [{"targetLabel": "job", "replacement": job["job_name"]}],
    }
