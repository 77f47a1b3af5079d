"""`mlp-hub audit --verify`: checks the chain of the audit log in the database itself; the hub need not run."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from mlp_hub.cli.errors import CommandFailed
from mlp_hub.domain.errors import MLPError
from mlp_hub.domain.text import escaped
from mlp_hub.service.audit.checked import CHECKED, CheckedChain
from mlp_hub.service.audit.heads import PublishedHead, read_heads
from mlp_hub.service.audit.verify import ChainReport, verify
from mlp_hub.service.support.units import utc_text
from mlp_hub.settings import Settings
from mlp_hub.store import Database
from mlp_language.render import here, render, say, says

SHOWN = 20
"""Breaks that are printed; the others are counted."""
BROKEN = 1


def check(settings: Settings, files: Sequence[str]) -> int:
    """Check the log against its chain, and against heads in `files`, or in the file of the settings; 1 where it is broken.

    The result is stored, so that the page *Audit* shows when the log was checked.
    """
    if not (settings.database_url or settings.service_db_file.exists()):
        raise CommandFailed(
            say("The audit log cannot be checked: {path} is not there.", path=str(settings.service_db_file)),
            say("Start the hub with `mlp-hub up`, or name another state directory with MLP_HOME."),
        )
    heads, notes = _heads(settings, files)
    db = Database(settings.service_db_url)
    try:
        db.check_schema()
        now = time.time()
        with db.reading() as tx:
            report = verify(tx, heads, now)
        _print(report, notes)
        _store(db, report, now)
    except MLPError as error:
        raise CommandFailed(
            say("The audit log cannot be checked: {error}.", error=str(error)),
            say("Look at the database with `mlp-hub doctor`."),
        ) from error
    finally:
        db.close()
    return 0 if report.sound else BROKEN


def _heads(settings: Settings, files: Sequence[str]) -> tuple[list[PublishedHead], list[str]]:
    """Return the heads outside, and sentences on their files."""
    heads: list[PublishedHead] = []
    notes = []
    for path in [Path(name) for name in files] or [settings.audit_heads_file]:
        try:
            found = read_heads(path)
        except FileNotFoundError:
            if files:
                raise CommandFailed(
                    say("{path} is not there.", path=str(path)), say("Name a file of heads: --heads FILE.")
                ) from None
            notes.append(say("{path} is not there.", path=str(path)))
            continue
        except OSError as error:
            raise CommandFailed(
                say("{path} cannot be read: {why}.", path=str(path), why=str(error.strerror)),
                say("Run the command as the account of the hub, or name a copy: --heads FILE."),
            ) from error
        heads += found.heads
        if found.bad:
            lines = ", ".join(map(str, found.bad))
            notes.append(say("{path} has lines that are not heads: {lines}.", path=str(path), lines=lines))
    return heads, notes


def _print(report: ChainReport, notes: Sequence[str]) -> None:
    lines = [*notes]
    reader = here()
    if report.first is None or report.last is None:
        lines.append(say("The audit log has no chain yet; the hub begins it when it starts."))
    else:
        lines.append(
            say(
                "Checked {entries} entries and {links} links, up to link {n}.",
                entries=report.entries,
                links=report.links,
                n=report.last.seq,
            )
        )
        if report.first.seq:
            lines.append(say("The log was cut at link {n}: older entries were not kept.", n=report.first.seq))
        if report.outside and not report.first.seq:
            lines.append(
                say(
                    "{n} entries are older than the chain, and cannot be checked: the hub was upgraded after them.",
                    n=report.outside,
                )
            )
        if report.agreed is not None:
            lines.append(
                says(
                    "It matches 1 head outside the database, up to link {link} of {time}.",
                    "It matches {n} heads outside the database, up to link {link} of {time}.",
                    report.heads,
                    link=report.agreed.seq,
                    time=utc_text(report.agreed.time),
                )
            )
        else:
            lines.append(say("No head outside the database confirms it."))
        lines.append(say("Head: {hash}", hash=report.last.hash.hex()))
    lines += [say("BROKEN: {why}.", why=render(found.message, reader)) for found in report.breaks[:SHOWN]]
    if (rest := len(report.breaks) + report.more - SHOWN) > 0:
        lines.append(say("{n} more breaks follow.", n=rest))
    if report.sound:
        lines.append(say("No break was found."))
    sys.stdout.write("".join(escaped(line) + "\n" for line in lines))


def _store(db: Database, report: ChainReport, now: float) -> None:
    last = 0 if report.last is None else report.last.seq
    found = CheckedChain(now, report.sound, report.entries, last)
    try:
        with db.begin() as tx:
            tx.settings.put(CHECKED, found.stored())
    except MLPError as error:
        sys.stderr.write(
            say("The result cannot be stored for the page Audit: {error}.", error=str(error)) + "\n"
        )
