"""Settings of a hub whose parts are pods: where each listens, and where the others and teams' pods find it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlp_hub import in_cluster
from mlp_hub.app import disk_of, listeners_of
from mlp_hub.settings import Settings, SettingsError
from mlp_hub.unix_sockets import url_of

IN_PODS = {
    "MLP_EXECUTOR": "kubernetes",
    "MLP_HUB_ADDRESS": "hub.mlp.svc:8081",
    "MLP_SERVICE_ADDRESS": "service.mlp.svc:8083",
    "MLP_DATA_ADDRESS": "data.mlp.svc:8086",
    "MLP_PROXY_ADDRESS": "[fd00::1]:8001",
    "MLP_KUBERNETES_HUB": "hub.mlp.svc:8082",
    "MLP_KUBERNETES_SERVICE": "service.mlp.svc:8084",
    "MLP_KUBERNETES_DATA": "data.mlp.svc:8087",
    "MLP_SERVICE_LISTEN": "10.0.0.1:8083",
    "MLP_SERVICE_LISTEN_TENANTS": "10.0.0.1:8084",
}


def load(home: Path, **more: str) -> Settings:
    return Settings.load({"MLP_HOME": str(home), **more})


def test_without_addresses_all_ways_are_sockets(tmp_path: Path) -> None:
    settings = load(tmp_path)
    assert settings.hub_at == settings.hub_socket
    assert settings.service_at == settings.service_socket
    assert settings.data_at == settings.data_socket
    assert settings.proxy_at == settings.proxy_api_socket
    assert url_of(settings.hub_at).startswith("http+unix://%2F")


def test_addresses_replace_the_sockets(tmp_path: Path) -> None:
    settings = load(tmp_path, **IN_PODS)
    assert url_of(settings.hub_at) == "http://hub.mlp.svc:8081"
    assert settings.service_at == ("service.mlp.svc", 8083)
    assert settings.data_at == ("data.mlp.svc", 8086)
    assert url_of(settings.proxy_at) == "http://[fd00::1]:8001"


def test_teams_pods_have_a_host_for_each_part(tmp_path: Path) -> None:
    at = in_cluster.installation_of(load(tmp_path, **IN_PODS))
    assert (at.hub, at.service, at.data) == (
        ("hub.mlp.svc", 8082),
        ("service.mlp.svc", 8084),
        ("data.mlp.svc", 8087),
    )
    assert in_cluster.data_url(load(tmp_path, **IN_PODS)) == "http://data.mlp.svc:8087/data"


def test_the_service_listens_apart_for_parts_and_for_pods(tmp_path: Path) -> None:
    found = {one.where: one.behind_proxy for one in listeners_of(load(tmp_path, **IN_PODS), 1)}
    assert found["10.0.0.1", 8083] is True
    assert found["10.0.0.1", 8084] is False


@pytest.mark.parametrize("part", ["HUB", "DATA"])
def test_one_port_for_parts_and_for_pods_is_refused(tmp_path: Path, part: str) -> None:
    given = {f"MLP_{part}_LISTEN": "10.0.0.1:8081", f"MLP_{part}_LISTEN_TENANTS": "10.0.0.1:8081"}
    with pytest.raises(
        SettingsError, match=f"MLP_{part}_LISTEN and MLP_{part}_LISTEN_TENANTS both name port 8081"
    ):
        load(tmp_path, **given)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MLP_HUB_ADDRESS", "hub"),
        ("MLP_SERVICE_ADDRESS", ":8083"),
        ("MLP_DATA_ADDRESS", "http://data:8086"),
        ("MLP_PROXY_LISTEN", "10.0.0.1:99999"),
        ("MLP_PROXY_ADDRESS", "fd00::1:8001"),
        ("MLP_HUB_LISTEN", "10.0.0.1:x"),
        ("MLP_DATA_LISTEN", "10.0.0.1"),
    ],
)
def test_an_address_that_is_none_is_named(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=name):
        load(tmp_path, **{name: value})


def test_limits_of_disks_are_shares_of_the_volume_of_files(tmp_path: Path) -> None:
    """The state directory may be in memory, and small."""
    files = {**IN_PODS, "MLP_KUBERNETES_FILES": str(tmp_path)}
    assert disk_of(load(tmp_path / "not-there", **files)).floor > 0
