"""Head of a backup: its version, its time, and the jobs and servers that ran then."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from msgspec import convert
from sqlalchemy import text

from mlp_hub.cli.backups import dumps
from mlp_hub.cli.errors import CommandFailed
from mlp_hub.domain.jobs.job import HOLDING, WAITING
from mlp_hub.settings import Settings
from mlp_hub.store import engine as engines
from mlp_language.render import say

NAME = "MANIFEST.json"
FORMAT = 1
"""Version of the layout of a backup; another one is refused."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The head of a backup. Jobs are `USER/NAME`, notebook servers their users' names; kinds as `dumps.kind` says."""

    made_at: str
    program: str
    revision: str
    platform_kind: str
    hub_kind: str
    files: bool
    running: list[str]
    waiting: list[str]
    servers: list[str]
    format: int = FORMAT

    def encode(self) -> bytes:
        """Return it as JSON."""
        return json.dumps(asdict(self), indent=1).encode()


def decode(content: bytes, path: Path) -> Manifest:
    """Read it; raise Failure where this version of the program cannot."""
    try:
        found = json.loads(content)
        if found["format"] != FORMAT:
            raise CommandFailed(
                say(
                    "{path} is of layout {found}, this version reads {format}.",
                    path=str(path),
                    found=found["format"],
                    format=FORMAT,
                ),
                say(
                    "Use the version of MLP Hub that made it: {get}.", get=found.get("program", "a newer one")
                ),
            )
        return convert(found, Manifest)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CommandFailed(
            say("{path} is not a backup of MLP Hub: {error}.", path=str(path), error=str(error))
        ) from error


def of(settings: Settings, platform: str, hub: str, *, files: bool) -> Manifest:
    """Return the head of a backup; `platform` and `hub` are the URLs of the databases to query."""
    jobs = _rows(platform, "SELECT \"user\" || '/' || name, phase FROM job ORDER BY 1")
    return Manifest(
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        program=version("mlp-hub"),
        revision=_rows(platform, "SELECT version_num, '' FROM alembic_version")[0][0],
        platform_kind=dumps.kind(settings.service_db_url),
        hub_kind=dumps.kind(settings.hub_db_url),
        files=files,
        running=[name for name, phase in jobs if phase in HOLDING],
        waiting=[name for name, phase in jobs if phase in WAITING],
        servers=[
            name
            for name, _ in _rows(
                hub,
                "SELECT users.name, spawners.name FROM spawners JOIN users ON users.id = spawners.user_id "
                "WHERE spawners.server_id IS NOT NULL ORDER BY 1",
            )
        ],
    )


def _rows(url: str, query: str) -> list[tuple[str, str]]:
    engine = engines.plain_engine(engines.parse(url))
    try:
        with engine.connect() as connection:
            return [(str(a), str(b)) for a, b in connection.execute(text(query))]
    finally:
        engine.dispose()
