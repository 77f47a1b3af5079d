"""Mail addresses that an older version stored as readable text are hidden by the upgrade; all else of a channel stays."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, MetaData, Table, insert, select

from mlp_hub.store import engine as engines
from mlp_hub.store import migrate
from support.stores.older_rows import row

BEFORE = "0050"
CHANNELS = {
    "mail": ("mail", "ann@example.org"),
    "odd": ("mail", "a@b@example.org"),
    "hook": ("webhook", "https://hooks.example.org"),
    "chat": ("service", "Slack"),
}


def channels(connection: Connection) -> Table:
    metadata = MetaData()
    metadata.reflect(connection, only=["notice_channel"])
    return metadata.tables["notice_channel"]


def test_the_upgrade_hides_names_of_mail_addresses_and_can_be_repeated(empty_url: str) -> None:
    migrate.upgrade(empty_url, BEFORE)
    engine = engines.make_engine(engines.parse(empty_url), write=True)
    try:
        with engine.begin() as connection:
            table = channels(connection)
            for name, (kind, shown) in CHANNELS.items():
                values: dict[str, Any] = {"user": "ann", "name": name, "kind": kind, "shown": shown}
                connection.execute(insert(table), row(table, **values, sealed=b"sealed"))
        for _ in range(2):
            migrate.upgrade(empty_url)
            with engine.begin() as connection:
                table = channels(connection)
                found = connection.execute(select(table.c.name, table.c.shown, table.c.sealed)).all()
            assert {name: shown for name, shown, _ in found} == {
                "mail": "***@example.org",
                "odd": "***@example.org",
                "hook": "https://hooks.example.org",
                "chat": "Slack",
            }
            assert {bytes(sealed) for _, _, sealed in found} == {b"sealed"}
    finally:
        engine.dispose()
