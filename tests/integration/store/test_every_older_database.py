"""A database of each earlier revision, with work in it, becomes one of this version."""

from __future__ import annotations

from alembic.script import ScriptDirectory
from sqlalchemy import Connection, MetaData, func, insert, inspect, select, table

from mlp_hub.domain.jobs.job import JobSpec, Phase
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.store import Database, codec, migrate
from mlp_hub.store import engine as engines
from mlp_language.message import msg
from support.stores.older_rows import row

REVISIONS = sorted(s.revision for s in ScriptDirectory.from_config(migrate._config()).walk_revisions())
SPEC = JobSpec(user="ann", name="digits", tenant="red", runtime="plain", per_worker=Resources(1000, 0, 512))


def jobs_of(revision: str) -> dict[str, Phase]:
    """The jobs that are there since a revision, one of each phase."""
    return {f"{revision}-{n}": phase for n, phase in enumerate(Phase)}


def said(revision: str) -> str:
    return "submitted" if revision < "0017" else codec.message_text(msg("submitted"))


def counts(connection: Connection) -> dict[str, int]:
    """Say how many rows each table has."""
    names = set(inspect(connection).get_table_names()) - {"alembic_version"}
    return {
        name: connection.execute(select(func.count()).select_from(table(name))).scalar_one() for name in names
    }


def work(connection: Connection, revision: str) -> None:
    """Have jobs as a hub of this revision wrote them."""
    metadata = MetaData()
    metadata.reflect(connection, only=["tenant", "user", "job", "job_event"], resolve_fks=False)
    tables = metadata.tables
    if revision == REVISIONS[0]:
        connection.execute(insert(tables["tenant"]), row(tables["tenant"], name="red", weight=1.0))
    ann = {"name": f"ann-{revision}", "number": int(revision)}
    connection.execute(insert(tables["user"]), row(tables["user"], **ann))
    for uid, phase in jobs_of(revision).items():
        of = {"uid": uid, "user": f"ann-{revision}", "name": uid, "tenant": "red", "spec": codec.dumps(SPEC)}
        state = {"phase": phase.value, "target": "run", "message": "", "version": 1, "submitted_at": 1.0}
        connection.execute(insert(tables["job"]), row(tables["job"], **of, **state))
        event = {"job": uid, "seq": 1, "time": 1.0, "kind": "submitted", "message": said(revision)}
        connection.execute(insert(tables["job_event"]), row(tables["job_event"], **event))


def test_data_from_every_older_revision_is_present_after_the_upgrade(empty_url: str) -> None:
    """One database goes through all revisions, and has work of each when it comes to the newest."""
    engine = engines.make_engine(engines.parse(empty_url), write=True)
    before: str | None = None
    there: dict[str, int] = {}
    for revision in REVISIONS:
        assert migrate.upgrade(empty_url, revision) == before
        with engine.begin() as connection:
            now = counts(connection)
            # a revision may add a setting, such as the time since which it counts
            assert now.get("setting", 0) >= there.get("setting", 0), revision
            # notes of runs are in the rows of their jobs now
            assert there.keys() - {"run_note"} <= now.keys(), revision
            kept = there.keys() & now.keys() - {"setting"}
            assert {n: now[n] for n in kept} == {n: there[n] for n in kept}, revision
            work(connection, revision)
            before, there = revision, counts(connection)
    engine.dispose()

    db = Database(empty_url, guard=True)
    db.open()
    try:
        with db.reading() as tx:
            for revision in REVISIONS:
                jobs = jobs_of(revision)
                found = {uid: tx.jobs.get(SYSTEM, uid) for uid in jobs}
                assert {uid: job and job.phase for uid, job in found.items()} == jobs
                assert {job.spec.name for job in found.values() if job} == {"digits"}
                assert [e.kind for e in tx.events.since(f"{revision}-0")] == ["submitted"]
            assert tx.tenants.names() == {"default", "red"}
    finally:
        db.close()
