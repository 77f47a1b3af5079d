"""A hub in pods on a PostgreSQL that the chart does not run: it restarts, its disk is full, it fails over to one that lacks commits.

The tests of this file are one story; each goes on where the one before stopped.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from mlp_cluster.place import find
from support.cluster.asking import Asking
from support.cluster.kube import Kube
from support.cluster.release import NAME, Release
from support.executors.small_disk import SmallDisk, small_disk
from support.stores.postgres import PostgresServer, postgres_server
from support.waiting import wait_for

pytestmark = pytest.mark.whole  # CI has the same with two services on a machine
MIB = 600
SECRET = "databases"


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallDisk]:
    folder = Path(tempfile.mkdtemp(prefix="mlp-pgdisk-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        with small_disk(folder / "disk", MIB) as mounted:
            yield mounted
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def server(kube: Kube, disk: SmallDisk) -> Iterator[PostgresServer]:
    """A PostgreSQL on this machine, which pods reach at the address of the cluster's outside."""
    place = find(kube.kubeconfig.parent.name)
    if place is None:
        pytest.skip("pods of a cluster of others do not reach this machine")
    with postgres_server(place.outside, disk.root) as started:
        for name in ("platform", "jupyterhub"):
            started.run("CREATE DATABASE {}", name)
        yield started


@pytest.fixture(scope="module")
def hub(kube: Kube, server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    database = {"trial": {"enabled": False}, "existingSecret": {"name": SECRET}}
    made = Release(
        kube, tmp_path_factory.mktemp("outside") / "home", {"database": database}, MLP_RATE_CHANGES="1000"
    )
    made.parts = tuple(part for part in made.parts if part != "postgresql")
    urls = {
        f"{key}-url": f"postgresql://postgres@{server.listen}/{name}"
        for key, name in (("platform", "platform"), ("hub", "jupyterhub"))
    }
    try:
        made.prepare()
        literals = [f"--from-literal={key}={url}" for key, url in urls.items()]
        made.at("create", "secret", "generic", SECRET, *literals)
        made.up()
        made.add_user("ann")
        made.ok("POST", "/tenants", body={"name": "narrow", "cpu": 0.1, "ram": 1000})
        made.ok("PUT", "/tenants/narrow/members/ann", body={"role": "member"})
        yield made
    finally:
        made.destroy()


def epoch(server: PostgresServer) -> int:
    with psycopg.connect(server.url("platform")) as connection:
        row = connection.execute("SELECT epoch FROM lease").fetchone()
        assert row is not None
        return int(row[0])


def test_1_it_restarts_in_the_middle_of_writes_and_nothing_acknowledged_is_lost(
    hub: Release, server: PostgresServer
) -> None:
    asking = Asking(hub)
    with asking.all_the_time("reads", "writes"):
        server.stop()
        server.launch()
    asking.report("restart of PostgreSQL")
    assert asking.lost() == []


def test_2_while_its_disk_is_full_writes_are_refused_with_words_and_afterwards_taken_again(
    hub: Release, server: PostgresServer, disk: SmallDisk
) -> None:
    asking = Asking(hub)
    with asking.all_the_time("writes") as asked:
        disk.fill()
        wait_for(lambda: asked["writes"].refused, message="for a write to be refused")
        disk.free()
        server.stop()  # it ends itself where its log finds no room, and its own supervisor starts it
        server.launch()
    asking.report("full disk of PostgreSQL")
    assert asking.lost() == []


def test_3_it_fails_over_to_a_standby_that_lacks_commits_and_the_epoch_does_not_go_back(
    hub: Release, server: PostgresServer
) -> None:
    standby = server.copy_to(Path(tempfile.mkdtemp(prefix="mlp-pg-", dir=server.root.parent)))
    leader = hub.leader()
    hub.at(
        "delete", "pod", leader, "--grace-period=0", "--force"
    )  # the standby never hears of the next epoch
    wait_for(lambda: hub.leader() != leader, message="for another to lead")
    asking = Asking(hub)
    with asking.all_the_time("writes"):
        pass
    before = epoch(server)
    server.take_away()
    try:
        standby.promote()
        assert epoch(standby) < before
        with asking.all_the_time("reads", "writes"):
            wait_for(lambda: epoch(standby) > before, message="for a leader of a higher epoch")
        asking.report("failover of PostgreSQL")
        hub.at("rollout", "status", f"deployment/{NAME}-service", "--timeout=300s")
    finally:
        standby.stop()
