"""Clones' clusters do not meet."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from mlp_cluster import __main__ as command
from mlp_cluster import place
from mlp_cluster.running import ClusterError


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLUSTER_DIR", str(tmp_path))
    monkeypatch.delenv("CLUSTER_NAME", raising=False)
    routes(monkeypatch)


def routes(monkeypatch: pytest.MonkeyPatch, *networks: str) -> None:
    told = json.dumps([{"dst": "default"}, *({"dst": network} for network in networks)])
    monkeypatch.setattr(place, "output", lambda _: told)


def test_a_name_fits_a_network_device_and_is_the_clones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = place.clone_name()
    assert len(mine) < 16
    monkeypatch.setattr(place, "ROOT", Path("/another/clone"))
    assert place.clone_name() != mine


def test_a_cluster_that_was_brought_is_left_as_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/another/kubeconfig")
    assert place.brought() == "/another/kubeconfig"
    assert command.main(["down"]) == 0
    assert "left as it is" in capsys.readouterr().out


def test_a_cluster_of_the_clone_does_not_count_as_external_if_kubeconfig_names_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = place.claim(place.clone_name())
    monkeypatch.setenv("KUBECONFIG", str(mine.kubeconfig))
    assert place.brought() is None
    monkeypatch.setattr(command, "down", lambda name: name == mine.name)
    assert command.main(["down"]) == 0
    assert "the cluster is gone" in capsys.readouterr().out
    shutil.rmtree(mine.folder)
    assert command.main(["kubeconfig"]) == 1, "it names a cluster that ran here and does not any more"


def test_a_cluster_keeps_its_number_and_another_gets_the_next() -> None:
    first = place.claim("mlp-a")
    assert place.claim("mlp-a") == first == place.find("mlp-a")
    second = place.claim("mlp-b")
    assert {first.number, second.number} == {0, 1}
    assert not {first.node, *first.networks} & {second.node, *second.networks}


def test_addresses_that_the_machine_routes_elsewhere_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    routes(monkeypatch, "10.99.0.0/24", "10.65.3.0/24", "10.98.2.7")
    assert place.claim("mlp-a").number == 3


def test_a_machine_without_free_addresses_reports_the_wanted_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    routes(monkeypatch, "10.0.0.0/8")
    with pytest.raises(ClusterError, match=r"10\.99\.0\.0/16"):
        place.claim("mlp-a")
    assert place.find("mlp-a") is None


def test_the_last_two_builds_are_kept_while_nothing_runs(tmp_path: Path) -> None:
    kinds = [tmp_path / "layers" / f"base-{number}" for number in range(3)]
    for age, folder in enumerate(kinds):
        folder.mkdir(parents=True)
        os.utime(folder, (age, age))
    place.claim("mlp-a")
    place.used(kinds[2], "base")
    assert all(folder.exists() for folder in kinds)
    shutil.rmtree(tmp_path / "running")
    place.used(kinds[0], "base")
    assert [folder.exists() for folder in kinds] == [True, False, True]


@pytest.mark.parametrize("name", ["sixteen-letters-", "../up", "Mine", "a b", "1st"])
def test_a_name_that_cannot_be_a_devices_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLUSTER_NAME", name)
    with pytest.raises(ClusterError, match="CLUSTER_NAME"):
        place.clone_name()
