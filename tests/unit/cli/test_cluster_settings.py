"""Settings of a hub in a cluster: what they stand for, and what cannot be meant."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mlp_hub import in_cluster
from mlp_hub.cli.doctor.doctor import checks_of
from mlp_hub.settings import Settings, SettingsError

KUBECONFIG = """
current-context: one
contexts: [{name: one, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443"}}]
"""


def load(home: Path, **more: str) -> Settings:
    return Settings.load({"MLP_HOME": str(home), "MLP_EXECUTOR": "kubernetes", **more})


def test_the_kubeconfig_is_that_of_kubeconfig_unless_a_setting_names_another(tmp_path: Path) -> None:
    assert load(tmp_path, KUBECONFIG="/a").kubernetes_config == Path("/a")
    assert load(tmp_path, KUBECONFIG="/a", MLP_KUBERNETES_CONFIG="/b").kubernetes_config == Path("/b")
    assert Settings.load({"MLP_HOME": "/x", "KUBECONFIG": "/a"}).kubernetes_config is None


def test_files_lie_apart_from_the_hubs_secrets(tmp_path: Path) -> None:
    settings = load(tmp_path)
    assert settings.homes_dir == tmp_path / "files" / "homes"
    assert settings.volume == {"hostPath": {"path": str(tmp_path / "files"), "type": "Directory"}}
    assert Settings.load({"MLP_HOME": str(tmp_path)}).homes_dir == tmp_path / "homes"


def test_an_installation_is_what_the_settings_say(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(KUBECONFIG)
    volume = "{nfs: {server: s, path: /p}}"
    settings = load(
        tmp_path, KUBECONFIG=str(tmp_path / "config"), MLP_PORT="9000", MLP_KUBERNETES_VOLUME=volume
    )
    at = in_cluster.installation_of(settings)
    assert (at.hub, at.service) == (("127.0.0.1", 9001), ("127.0.0.1", 9002))
    assert at.volume == {"nfs": {"server": "s", "path": "/p"}}
    assert at.below(settings.homes_dir / "ann") == "homes/ann"
    assert in_cluster.hub_url(settings) == "http://127.0.0.1:9001"


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("MLP_KUBERNETES_NAME", "Mlp", "small letters"),
        ("MLP_KUBERNETES_NAME", "a" * 21, "20 characters"),
        ("MLP_KUBERNETES_VOLUME", "{nfs: ", "cannot be read"),
        ("MLP_KUBERNETES_VOLUME", "nfs", "one source of a PersistentVolume"),
        ("MLP_KUBERNETES_NAMESPACES", "red", "the namespace of a team is mlp-TEAM"),
        ("MLP_KUBERNETES_NAMESPACES", "mlp-red", "for a hub whose parts are pods"),
        ("MLP_KUBERNETES_CAPACITY", "{cpu: 4}", "amounts of a node with cpu and memory"),
        ("MLP_KUBERNETES_CAPACITY", "{cpu: ", "cannot be read"),
        ("MLP_KUBERNETES_CAPACITY", "{cpu: many, memory: 1Gi}", "has cpu: many"),
        ("MLP_HUB_LISTEN_TENANTS", "here", "HOST:PORT"),
        ("KUBECONFIG", "/a:/b", "names 2 files"),
        ("MLP_KUBERNETES_PULL_POLICY", "Sometimes", "one of"),
    ],
)
def test_invalid_settings_fail_at_once(tmp_path: Path, variable: str, value: str, says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        load(tmp_path, **{variable: value})


@pytest.mark.parametrize(
    ("text", "context", "says"),
    [
        (None, "", "No such file"),
        ("- a list", "", "is no kubeconfig"),
        ("", "", "is no kubeconfig"),
        ("[[[", "", "cannot be read"),
        (KUBECONFIG, "two", "contexts are: one"),
    ],
)
def test_a_kubeconfig_that_names_no_cluster_is_refused(
    tmp_path: Path, text: str | None, context: str, says: str
) -> None:
    if text is not None:
        (tmp_path / "config").write_text(text)
    settings = load(tmp_path, KUBECONFIG=str(tmp_path / "config"), MLP_KUBERNETES_CONTEXT=context)
    with pytest.raises(SettingsError, match=says):
        in_cluster.address_of(settings)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "config cannot be read: .*No such file"),
        ("", "config is no kubeconfig"),
        ("[[[", "cannot be read"),
    ],
)
def test_a_hub_refuses_to_connect_with_an_invalid_kubeconfig(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, says: str
) -> None:
    if text is not None:
        (tmp_path / "config").write_text(text)
    with pytest.raises(SettingsError, match=says):
        asyncio.run(in_cluster.connect(load(tmp_path, KUBECONFIG=str(tmp_path / "config"))))
    assert capsys.readouterr() == ("", "")


def test_without_any_it_says_what_to_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(SettingsError, match="MLP_KUBERNETES_CONFIG or KUBECONFIG"):
        in_cluster.address_of(load(tmp_path))


def test_the_doctor_skips_checks_of_things_that_pods_do_not_need(tmp_path: Path) -> None:
    here = {name for name, _ in checks_of(Settings.load({"MLP_HOME": str(tmp_path)}))}
    pods = {name for name, _ in checks_of(load(tmp_path))}
    sandboxes = {"sandbox", "cgroups", "network", "isolation"}
    assert here - pods == {"mpi", "tensorflow", "torch", "gpu", *sandboxes}
    assert pods - here == {"cluster"}
