"""A dump for support is made without the names that logs have, also of what was deleted and of people who were never let in."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from mlp_hub.cli.debug_dump.known import names
from mlp_hub.cli.debug_dump.redaction import Redactor


def made(path: Path, table: str, insert: str, rows: list[tuple[str | None, ...]]) -> str:
    with sqlite3.connect(path) as connection:
        connection.execute(table)
        connection.executemany(insert, rows)
    connection.close()
    return f"sqlite:///{path}"


def test_names_of_deleted_objects_and_unknown_people_are_replaced(tmp_path: Path) -> None:
    entries: list[tuple[str | None, ...]] = [
        ("tenant.delete", "teal", "root", "teal"),
        ("job.delete", "zoe/secret-plan@2", "zoe", "red"),
        ("member.remove", "lea", "tad", "red"),
        ("silence.end", "7412", "tad", "red"),
        ("prices.set", "prices", "admin", None),
    ]
    platform = made(
        tmp_path / "platform.sqlite",
        "CREATE TABLE audit (action TEXT, object TEXT, actor TEXT, tenant TEXT)",
        "INSERT INTO audit VALUES (?, ?, ?, ?)",
        entries,
    )
    made(
        tmp_path / "platform.sqlite",
        'CREATE TABLE "user" (name TEXT)',
        'INSERT INTO "user" VALUES (?)',
        [("tad",)],
    )
    hub = made(
        tmp_path / "hub.sqlite",
        "CREATE TABLE users_info (username TEXT)",
        "INSERT INTO users_info VALUES (?)",
        [("mallory",)],
    )
    found = names(platform, hub)
    assert found["tad"] == "user-1"
    assert found.keys() == {"tad", "teal", "zoe", "secret-plan", "lea", "red", "mallory"}, (
        "and neither numbers nor words"
    )
    said = Redactor(found, []).text("job secret-plan of zoe in teal, by mallory: prices 7412")
    assert said == "job former-job-2 of former-user-5 in former-team-2, by other-user-1: prices 7412"
    assert names(platform, f"sqlite:///{tmp_path}/missing.sqlite").keys() == found.keys() - {"mallory"}
