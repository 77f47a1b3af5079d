"""Components that ended by themselves stand in the audit log, each once, whenever the service comes to read of it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from mlp_hub.service.health.deaths import ACTION, Deaths
from mlp_hub.store import Database


@pytest.fixture
def db(tmp_path: Path) -> Any:
    made = Database(str(tmp_path / "db.sqlite"))
    made.create_schema()
    yield made
    made.close()


def entries(db: Database) -> list[tuple[float, str, dict[str, Any]]]:
    found, _ = db.read_now(lambda tx: tx.audit.page(action=ACTION))
    return [(e.time, e.name, dict(e.detail)) for e in reversed(found)]


def note(path: Path, *deaths: tuple[str, float, str]) -> Path:
    content = [{"component": component, "at": at, "why": why} for component, at, why in deaths]
    path.write_text(json.dumps({"plan": "x", "components": {}, "deaths": content}))
    return path


def test_each_end_is_written_down_once_however_often_it_is_looked_at(db: Database, tmp_path: Path) -> None:
    path = note(tmp_path / "state.json", ("hub", 1000.25, "was ended by signal 9"))
    deaths = Deaths(db, path)
    asyncio.run(deaths.record_deaths())
    asyncio.run(deaths.record_deaths())
    note(path, ("hub", 1000.25, "was ended by signal 9"), ("service", 1010.5, "has not answered for 30 s"))
    asyncio.run(deaths.record_deaths())
    asyncio.run(Deaths(db, path).record_deaths())  # the service was started again
    assert entries(db) == [
        (1000.25, "hub", {"message": "it was ended by signal 9"}),
        (1010.5, "service", {"message": "it has not answered for 30 s"}),
    ]


def test_the_same_again_and_again_is_counted_in_one_entry(db: Database, tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    deaths = Deaths(db, path)
    for turn in range(1, 6):
        note(path, *(("hub", 1000.0 + 7 * n, "was ended by signal 9") for n in range(turn)))
        asyncio.run(deaths.record_deaths())
    asyncio.run(Deaths(db, path).record_deaths())
    ((at, name, detail),) = entries(db)
    assert (at, name, detail["times"]) == (1000.0, "hub", 5)


@pytest.mark.parametrize("text", ["", "{half", "[]", '{"components": {}}', '{"deaths": [{"at": "x"}]}'])
def test_a_note_that_cannot_be_read_is_none(db: Database, tmp_path: Path, text: str) -> None:
    (tmp_path / "state.json").write_text(text)
    asyncio.run(Deaths(db, tmp_path / "state.json").record_deaths())
    asyncio.run(Deaths(db, tmp_path / "nowhere").record_deaths())
    assert entries(db) == []
