"""A database of each earlier revision, with work in it, becomes one of this version."""

from __future__ import annotations

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import MetaData, func, insert, select

from mlp_hub.domain.job import JobSpec, Phase
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.tenant_context import SYSTEM
from mlp_hub.store import Database, codec, migrate
from mlp_hub.store import engine as engines
from mlp_language.message import msg
from older_rows import row

REVISIONS = sorted(s.revision for s in ScriptDirectory.from_config(migrate._config()).walk_revisions())
SPEC = JobSpec(user="ann", name="digits", tenant="red", runtime="plain", per_worker=Resources(1000, 0, 512))
PHASES = {f"j{n}": phase for n, phase in enumerate(Phase)}


def said(revision: str) -> str:
    return "submitted" if revision < "0017" else codec.message_text(msg("submitted"))


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_was_in_it_is_there_after_the_upgrade(empty_url: str, revision: str) -> None:
    migrate.upgrade(empty_url, revision)
    engine = engines.make_engine(engines.parse(empty_url), write=True)
    metadata = MetaData()
    with engine.begin() as connection:
        metadata.reflect(connection)
        tables = metadata.tables
        connection.execute(insert(tables["tenant"]), row(tables["tenant"], name="red", weight=1.0))
        connection.execute(insert(tables["user"]), row(tables["user"], name="ann"))
        for uid, phase in PHASES.items():
            of = {"uid": uid, "user": "ann", "name": uid, "tenant": "red", "spec": codec.dumps(SPEC)}
            state = {"phase": phase.value, "target": "run", "message": "", "version": 1, "submitted_at": 1.0}
            connection.execute(insert(tables["job"]), row(tables["job"], **of, **state))
            event = {"job": uid, "seq": 1, "time": 1.0, "kind": "submitted", "message": said(revision)}
            connection.execute(insert(tables["job_event"]), row(tables["job_event"], **event))
        before = {
            name: connection.execute(select(func.count()).select_from(table)).scalar()
            for name, table in tables.items()
            if name != "alembic_version"
        }
    engine.dispose()

    assert migrate.upgrade(empty_url) == revision

    db = Database(empty_url, guard=True)
    db.open()
    try:
        with db.reading() as tx:
            found = {uid: tx.jobs.get(SYSTEM, uid) for uid in PHASES}
            assert {uid: job and job.phase for uid, job in found.items()} == PHASES
            assert {job.spec.name for job in found.values() if job} == {"digits"}
            assert tx.tenants.names() == {"default", "red"}
            assert [e.kind for e in tx.events.since("j0")] == ["submitted"]
            now = MetaData()
            now.reflect(tx.connection)
            for name, count in before.items():
                assert (
                    tx.connection.execute(select(func.count()).select_from(now.tables[name])).scalar()
                    == count
                )
    finally:
        db.close()
