from __future__ import annotations

import pytest

from support.clients.mlp_stand_in import StandIn


@pytest.fixture
def world(monkeypatch, tmp_path):
    """A stand-in of the service, and an environment that leads to it."""
    with StandIn() as stand_in:
        for name in ("JUPYTERHUB_USER", "JUPYTERHUB_API_TOKEN", "MLP_JOB", "MLP_USER", "MLP_JOB_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr("mlp.submitting.provenance.told", dict)  # where tests run is nobody's matter
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        for name, value in stand_in.env().items():
            monkeypatch.setenv(name, value)
        yield stand_in
