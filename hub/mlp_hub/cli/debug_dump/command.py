"""`mlp-hub debug-dump`: reads all parts, takes out what may not leave the site, and writes one archive."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from mlp_hub.cli.debug_dump import known, parts
from mlp_hub.cli.debug_dump.redaction import Redactor
from mlp_hub.cli.errors import CommandFailed, UsageFailure
from mlp_hub.settings import Settings
from mlp_language.render import say

LINES_MOST = 100_000


def debug_dump(settings: Settings, file: Path | None, *, lines: int) -> int:
    """Write the archive, readable by its owner alone, and print where it is and what it has."""
    if not 0 <= lines <= LINES_MOST:
        raise UsageFailure(say("--lines is {lines}; it must be 0 to {most}", lines=lines, most=LINES_MOST))
    if not settings.home.is_dir():
        raise CommandFailed(
            say("There is no hub in {home}.", home=str(settings.home)),
            say("Set MLP_HOME to its state directory."),
        )
    path = file or Path(time.strftime("mlp-hub-debug-%Y%m%d-%H%M%S.tar.gz"))
    try:
        names, unknown = known.names(settings.service_db_url, settings.hub_db_url), ""
    except (sa.exc.SQLAlchemyError, OSError) as error:
        # without the names nothing that may contain one can leave
        names, unknown = {}, str(getattr(error, "orig", None) or error)
    redactor = Redactor(names, known.secrets(settings))
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
            with tarfile.open(fileobj=opened, mode="w:gz") as archive:
                written = [
                    _add(archive, name, text) for name, text in _files(settings, redactor, lines, unknown)
                ]
            opened.flush()
            os.fsync(opened.fileno())
    except FileExistsError:
        raise CommandFailed(say("{path} exists.", path=str(path)), say("Name another file.")) from None
    except OSError as error:
        with contextlib.suppress(OSError):  # it may never have been made
            path.unlink()
        raise CommandFailed(
            say("{path} cannot be written: {why}.", path=str(path), why=error.strerror or str(error))
        ) from error
    sys.stdout.write(f"{path}: {', '.join(written)}\n")
    if unknown:
        sys.stdout.write(
            say(
                "The platform's database cannot be read ({why}), so that names cannot be replaced: logs and the queue are left out.",
                why=redactor.text(unknown),
            )
            + "\n"
        )
    sys.stdout.write(
        say("Names are replaced, and secrets and programs are left out. Look through it before you send it.")
        + "\n"
    )
    return 0


def _files(settings: Settings, redactor: Redactor, lines: int, unknown: str) -> Iterator[tuple[str, str]]:
    for name, value in parts.read(settings):
        if unknown and name in ("queue", "overview", "nodes"):
            continue
        yield f"{name}.json", _json(redactor.value(value))
    if not unknown and lines:
        for name, text in parts.logs(settings, lines):
            yield f"log/{name}", redactor.text(text)


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, default=str) + "\n"


def _add(archive: tarfile.TarFile, name: str, text: str) -> str:
    data = text.encode(errors="replace")
    entry = tarfile.TarInfo(f"mlp-hub-debug/{name}")
    entry.size, entry.mtime, entry.mode = len(data), int(time.time()), 0o600
    archive.addfile(entry, io.BytesIO(data))
    return name
