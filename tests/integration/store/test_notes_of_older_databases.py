"""Notes that an older version stored beside the runs are notes of the jobs after the upgrade; and the way back."""

from __future__ import annotations

from typing import Any

from sqlalchemy import insert, select

from mlp_hub.store import engine as engines
from mlp_hub.store import migrate
from support.stores.older_rows import row, table_of

BEFORE = "0051"
NOTES = {"a" * 26: "the larger batch", "b" * 26: "", "c" * 26: "x" * 2000}


def test_the_upgrade_moves_the_notes_and_a_run_without_one_has_none(empty_url: str) -> None:
    migrate.upgrade(empty_url, BEFORE)
    engine = engines.make_engine(engines.parse(empty_url), write=True)
    try:
        with engine.begin() as connection:
            job, note = table_of(connection, "job"), table_of(connection, "run_note")
            for number, uid in enumerate((*NOTES, "d" * 26), 1):
                values: dict[str, Any] = {"uid": uid, "user": "ann", "name": "fit", "run": number}
                connection.execute(insert(job), row(job, **values))
            for uid, text in NOTES.items():
                connection.execute(insert(note), {"job": uid, "note": text})
        migrate.upgrade(empty_url)
        with engine.begin() as connection:
            job = table_of(connection, "job")
            found = dict(connection.execute(select(job.c.uid, job.c.note)).all())
        assert found == {"a" * 26: "the larger batch", "b" * 26: None, "c" * 26: "x" * 2000, "d" * 26: None}
        migrate.downgrade(empty_url, BEFORE)
        with engine.begin() as connection:
            note = table_of(connection, "run_note")
            found = dict(connection.execute(select(note.c.job, note.c.note)).all())
        assert found == {uid: text for uid, text in NOTES.items() if text}
    finally:
        engine.dispose()
