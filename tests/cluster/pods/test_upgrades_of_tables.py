"""Upgrades to versions with other tables, where all parts are pods: which cost no request, and which stop the services.

The next version is the same image with two files over its own: the tables' revision, and a migration.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlp_hub.store import tables
from mlp_hub.store.tables import REVISION
from support.cluster.asking import Asking
from support.cluster.kube import Kube
from support.cluster.release import NAME, Release
from support.waiting import wait_for

MIGRATION = '''"""One column more."""
import sqlalchemy as sa
from alembic import op

revision = "{revision}"
down_revision = "{before}"
{marked}

def upgrade() -> None:
    op.add_column("job", sa.Column("more{revision}", sa.Text()))
'''


@pytest.fixture(scope="module")
def hub(kube: Kube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    hub = Release(kube, tmp_path_factory.mktemp("tables") / "home", MLP_RATE_CHANGES="1000")
    try:
        hub.up()
        hub.add_user("ann")
        hub.ok("POST", "/tenants", body={"name": "narrow", "cpu": 0.1, "ram": 1000})
        hub.ok("PUT", "/tenants/narrow/members/ann", body={"role": "member"})
        yield hub
    finally:
        hub.destroy()


def next_version(hub: Release, *migrations: tuple[str, bool]) -> dict[str, Any]:
    """Return values of a version that has these revisions too, each with whether it only adds."""
    newest, before, files = migrations[-1][0], REVISION, {}
    works_from = REVISION
    for revision, adds_only in migrations:
        marked = "ADDS_ONLY = True" if adds_only else ""
        files[f"{revision}_more.py"] = MIGRATION.format(revision=revision, before=before, marked=marked)
        before = revision
        works_from = works_from if adds_only else revision
    source = Path(str(tables.__file__)).read_text()
    files["tables.py"] = source.replace(f'REVISION = "{REVISION}"', f'REVISION = "{newest}"', 1).replace(
        f'WORKS_FROM = "{tables.WORKS_FROM}"', f'WORKS_FROM = "{works_from}"', 1
    )
    name = f"next-{newest}"
    hub.at.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": files})
    store = hub.at("exec", f"deploy/{NAME}-hub", "-c", "hub", "--", "python3", "-c", WHERE).strip()
    places = {"tables.py": f"{store}/tables/__init__.py"}
    places |= {file: f"{store}/migrations/versions/{file}" for file in files if file != "tables.py"}
    volumes = {f"next-{at}": {"configMap": {"name": name}} for at in range(len(places))}
    mounts = {
        f"next-{at}": {"mountPath": place, "subPath": file} for at, (file, place) in enumerate(places.items())
    }
    part = {"extraVolumes": volumes, "extraVolumeMounts": mounts}
    return {"hub": part, "service": {**hub.values["service"], **part}}


WHERE = "import mlp_hub.store, os; print(os.path.dirname(mlp_hub.store.__file__))"


def revision(hub: Release) -> str:
    query = "PGPASSWORD=$(cat /srv/secrets/database_password) psql -h 127.0.0.1 -U mlp -tA mlp -c 'SELECT version_num FROM alembic_version'"
    return hub.at("exec", f"deploy/{NAME}-postgresql", "--", "sh", "-c", query).strip()


def told(hub: Release, words: str) -> bool:
    return words in hub.at("logs", f"deploy/{NAME}-hub", "-c", "setup")


@pytest.mark.whole
def test_1_a_version_whose_tables_only_add_comes_and_goes_without_a_refused_request(hub: Release) -> None:
    asking = Asking(hub)
    with asking.all_the_time("reads", "writes") as asked:
        hub.helm("upgrade", "hub", *hub.with_values(**next_version(hub, ("9001", True))))
        hub.until_ready()
        assert told(hub, "The new tables only add to the old ones")
    asking.report("upgrade with a migration that adds")
    assert [each for found in asked.values() for each in found.refused] == []
    assert revision(hub) == "9001"
    with asking.all_the_time("reads", "writes") as asked:
        hub.helm("rollback", "hub", "1")
        hub.until_ready()
    asking.report("rollback to the version before it")
    assert [each for found in asked.values() for each in found.refused] == []
    assert (revision(hub), asking.lost()) == ("9001", [])


@pytest.mark.whole
def test_2_a_version_with_other_tables_waits_until_the_services_before_have_ended(hub: Release) -> None:
    asking = Asking(hub)
    with asking.all_the_time("reads", "writes"):
        hub.helm("upgrade", "hub", *hub.with_values(**next_version(hub, ("9001", True), ("9002", False))))
        hub.until_ready()
        assert told(hub, "waiting until those have ended")
        wait_for(lambda: revision(hub) == "9002")
    asking.report("upgrade with a migration that stops the services")
    assert asking.lost() == []
