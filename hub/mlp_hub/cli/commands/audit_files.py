"""`mlp-hub audit --export`: writes the audit log into a file, as lines of JSON or as CSV."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO

from mlp_hub.cli.commands.audit import pages, query_of
from mlp_hub.cli.errors import CommandFailed, UsageFailure
from mlp_hub.service.support.csv_text import csv_bytes
from mlp_hub.settings import Settings
from mlp_language.render import say

COLUMNS = ("id", "time", "actor", "action", "object", "tenant", "detail")


def export(
    settings: Settings, filters: dict[str, str | None], file: str, *, as_csv: bool, force: bool = False
) -> int:
    """Write all entries that pass the filters, the newest first; `-` is standard output.

    A file appears under its name once it is whole, readable by its owner alone. An existing one is replaced with `force` only.
    """
    query = query_of(filters)
    if file == "-":
        _write(settings, query, sys.stdout.buffer, as_csv=as_csv)
        sys.stdout.buffer.flush()
        return 0
    target, part = Path(file), Path(f"{file}.part")
    if not force and os.path.lexists(target):
        raise _exists(file)
    try:
        with suppress(FileNotFoundError):
            part.unlink()
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as out:  # noqa: PTH123 - a descriptor
            count = _write(settings, query, out, as_csv=as_csv)
            out.flush()
            os.fsync(out.fileno())
        if force:
            part.replace(target)
        else:
            _name(part, target)
    except FileExistsError:
        raise _exists(file) from None
    except OSError as error:
        raise CommandFailed(
            say("{file} cannot be written: {why}.", file=file, why=str(error.strerror)),
            say("Name a file in a directory that you may write to: --export FILE."),
        ) from error
    finally:
        with suppress(OSError):
            part.unlink()
    sys.stdout.write(say("{n} entries are in {file}.", n=count, file=file) + "\n")
    return 0


def _name(part: Path, target: Path) -> None:
    """Give a whole file its name. Raises `FileExistsError` where another file has it."""
    try:
        os.link(part, target)  # unlike a move, it replaces nothing
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(target):
            raise FileExistsError(target) from None
        part.replace(target)


def _exists(file: str) -> UsageFailure:
    return UsageFailure(
        say("{file} exists already, and was not changed.", file=file),
        say("Name a new file, or replace this one: --force."),
    )


def _write(settings: Settings, query: dict[str, str], out: IO[bytes], *, as_csv: bool) -> int:
    count = 0
    if as_csv:
        out.write(csv_bytes([COLUMNS]))
    for page in pages(settings, query, None):
        count += len(page)
        if as_csv:
            rows = [{**entry, "detail": _json(entry["detail"])} for entry in page]
            out.write(csv_bytes([row[name] for name in COLUMNS] for row in rows))
        else:
            lines = (_json(entry) + "\n" for entry in page)
            out.write("".join(lines).encode("utf-8", "replace"))
    return count


def _json(value: object) -> str:
    """Return JSON as the REST interface writes it, so that both exports are the same bytes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
