"""A dump for support is made without the secrets in the files that settings name."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from mlp_hub.cli.debug_dump.known import secrets
from mlp_hub.settings import Settings

FILES = [spec.name for spec in dataclasses.fields(Settings) if spec.metadata.get("kind") == "path"]
WITHOUT = {
    "home": "the state directory, whose directory of secrets is read",
    "config": "settings, of which the secret ones are known",
    "audit_heads": "hashes",
    "audit_ship_ca": "public",
    "metrics_otlp_ca": "public",
    "metrics_mlflow_ca": "public",
    "alertmanager_ca": "public",
    "traces_ca": "public",
    "audit_ship_file": "entries of the audit log",
    "kubernetes_config": "read by the client of the cluster alone",
    "kubernetes_files": "a directory of volumes",
    "dcgm_job_dir": "names of jobs",
    "simulated_nodes": "nodes",
}
"""Paths of settings whose files have no secrets that a dump must know, and why."""


@pytest.mark.parametrize("name", [name for name in FILES if name not in WITHOUT])
def test_a_dump_knows_the_secrets_of_each_file_that_a_setting_names(name: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text('token = "t0p-secret-of-a-file"')
    path.chmod(0o600)
    settings = dataclasses.replace(Settings.load({"MLP_HOME": str(tmp_path)}), **{name: path})
    assert "t0p-secret-of-a-file" in set(secrets(settings)), (
        f"name the setting as one of _OF_SECRETS in cli/debug_dump/known.py, or say in WITHOUT why {name} has none"
    )


def test_every_path_that_is_left_out_is_a_setting() -> None:
    assert set(WITHOUT) <= set(FILES)
