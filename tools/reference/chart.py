"""Files of the Helm chart that are made of tables: the schema of its values, rules of roles, alert rules and dashboards; and its reference page."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from mlp_hub.service.monitoring.dashboards.grafana import grafana_json
from mlp_hub.service.monitoring.dashboards.table import DASHBOARDS
from mlp_hub.service.monitoring.rule_files import rules_file
from mlp_hub.settings import Settings, table
from reference import rights
from reference.rest import markdown_table

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "helm" / "mlp-hub"
ANYWHERE = "https://hub.invalid"
"""Stand-in for the hub's address in the rules; the template replaces it."""
SET_BY_CHART = frozenset(
    [
        "home",
        "port",
        "bind",
        "config",
        "public_url",
        "users_domain",
        "base_path",
        "allowed_hosts",
        "trusted_proxies",
        "tls_cert",
        "tls_key",
        "executor",
        "replicas",
        "database_url",
        "hub_database_url",
        "hub_listen",
        "hub_address",
        "service_listen",
        "service_address",
        "data_listen",
        "data_address",
        "proxy_listen",
        "proxy_address",
        "service_proxies",
        "hub_listen_tenants",
        "service_listen_tenants",
        "data_listen_tenants",
        "metrics_listen",
        "audit_heads",
        "kubernetes_config",
        "kubernetes_context",
        "kubernetes_name",
        "kubernetes_image",
        "kubernetes_pull_policy",
        "kubernetes_pull_secrets",
        "kubernetes_files",
        "kubernetes_volume",
        "kubernetes_address",
        "kubernetes_hub",
        "kubernetes_service",
        "kubernetes_data",
        "kubernetes_pod",
        "kubernetes_identities",
        "kubernetes_namespaces",
        "kubernetes_capacity",
    ]
)
"""Settings that the chart sets itself, or has a separate value for."""
OF_ONE_MACHINE = frozenset(
    [
        "simulated_nodes",
        "allow_no_sandbox",
        "first_uid",
        "node_name",
        "node_cpu",
        "node_ram",
        "node_gpus",
        "node_gpu_kind",
        "dcgm_job_dir",
        "log_max",
        "notebook_processes",
    ]
)
"""Settings that mean nothing where all runs in pods."""
_SIMPLE = {"int": "integer", "float": "number", "bool": "boolean", "str": "string", "path": "string"}
_HEAD = """# Values of the chart

`helm/mlp-hub/values.schema.json` refuses unknown names and values of another type. [Install the chart](../how-to/helm.md) describes the first steps.
Values that other charts have as lists are dicts by name, so that several files of values merge; `null` removes an entry.

"""


def schema() -> dict[str, Any]:
    """Return the schema of the values: the written one, with a property for each setting."""
    found: dict[str, Any] = yaml.safe_load((CHART / "values.schema.yaml").read_text(encoding="utf-8"))
    of_settings = found["properties"]["settings"]["properties"]
    for spec, row in _settings():
        of_settings[spec.name] = _of_setting(spec.metadata, row.doc, row.unit)
    return {key: value for key, value in found.items() if not key.startswith("x-")}


def _settings() -> Iterator[tuple[Any, Any]]:
    fields = {spec.name: spec for spec in dataclasses.fields(Settings)}
    for row in table():
        left_out = row.name in SET_BY_CHART | OF_ONE_MACHINE or fields[row.name].metadata["secret"]
        if not left_out:
            yield fields[row.name], row


def _of_setting(meta: Mapping[str, Any], doc: str, unit: str) -> dict[str, Any]:
    if meta["kind"] == "list":
        values = {"type": ["string", "null"]}
        return {"type": "object", "additionalProperties": values, "description": f"{doc} By any key."}
    found: dict[str, Any] = {"type": [_SIMPLE[meta["kind"]], "null"]}
    found |= {
        name: meta[of] for name, of in (("minimum", "low"), ("maximum", "high")) if meta[of] is not None
    }
    if meta["choices"]:
        found = {"enum": [*meta["choices"], None]}
    return {**found, "description": f"{doc} In {unit}." if unit else doc}


def values() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """List each value that a person can set, by its path, with its schema."""
    whole = schema()
    yield from _below(whole, whole["properties"], "")


def _below(whole: Mapping[str, Any], properties: Mapping[str, Any], before: str) -> Iterator[tuple[str, Any]]:
    for name, found in properties.items():
        path, meant = f"{before}{name}", resolved(whole, found)
        inner = meant.get("properties")
        yield path, meant
        if inner:
            yield from _below(whole, inner, f"{path}.")


def resolved(whole: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with its references resolved; its own description has priority."""
    reference = found.get("$ref")
    if reference is None:
        return dict(found)
    name = str(reference).removeprefix("#/definitions/")
    return {**whole["definitions"][name], **{key: value for key, value in found.items() if key != "$ref"}}


def chart_page() -> str:
    """Return the reference page of the values."""
    defaults = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    rows = []
    for path, found in values():
        default = _default(defaults, path)
        if found.get("properties"):
            continue
        rows.append((f"`{path}`", default, found["description"]))
    return _HEAD + markdown_table(("value", "default", "meaning"), rows)


def _default(defaults: Any, path: str) -> str:
    for name in path.split("."):
        if not isinstance(defaults, dict) or name not in defaults:
            return ""
        defaults = defaults[name]
    return "" if defaults in ("", None, {}) else f"`{json.dumps(defaults)}`"


def files() -> dict[str, str]:
    """Return the content of each file of the chart that is made of tables, by its path in the chart."""
    rules = yaml.safe_dump(
        rules_file(f"{ANYWHERE}/services/mlp/docs/"), sort_keys=False, allow_unicode=True, width=1000
    )
    return {
        "values.schema.json": json.dumps(schema(), indent=1, ensure_ascii=False) + "\n",
        "files/rules.yaml": rules,
        "templates/_rights.tpl": rights.template(),
        **{
            f"files/dashboards/mlp-hub-{one.name}.json": json.dumps(grafana_json(one), ensure_ascii=False)
            + "\n"
            for one in DASHBOARDS
        },
    }


def write() -> None:
    """Write these files."""
    for name, content in files().items():
        path = CHART / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
