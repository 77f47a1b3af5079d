"""`mlp-hub backup FILE`: all data to continue elsewhere, in one file, while the hub and its jobs run."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path, PurePosixPath
from tarfile import TarInfo

from sqlalchemy.exc import SQLAlchemyError

from mlp_hub import durable
from mlp_hub.cli.backups import archive, dumps, manifest
from mlp_hub.cli.backups.archive import Counted
from mlp_hub.cli.errors import CommandFailed, UsageFailure
from mlp_hub.cli.state import belonging, database, state_dir
from mlp_hub.domain.tenants.tenant import DEDICATED
from mlp_hub.domain.text import escaped
from mlp_hub.isolation import roots_of
from mlp_hub.settings import Settings
from mlp_language.render import say

COMPRESSED = (".tar.gz", ".tgz")
COPIES = "databases"
"""Folder of a backup that has the copies of the databases."""


def folders(settings: Settings) -> dict[str, Path]:
    """Return the folders with people's files by the names that they have in a backup."""
    return {path.name: path for path in (settings.homes_dir, settings.data_dir)}


def is_part(settings: Settings, name: PurePosixPath, member: TarInfo) -> bool:
    """Tell whether a backup of such settings has a member of this name and kind.

    What is made after it was unpacked, as the databases are, is in none: a link in its place would lead elsewhere.
    """
    top, single = name.parts[0], len(name.parts) == 1
    if top in {manifest.NAME, settings.uid_file.name}:
        return single and member.isreg()
    if top == COPIES:
        return len(name.parts) == 2 and name.name in database.urls(settings) and member.isreg()
    return top in {"secrets", "isolation", *folders(settings)} and (not single or member.isdir())


def backup(settings: Settings, file: Path, *, files: bool) -> int:
    """Write a backup and read it once more; with `files` it includes homes and outputs of jobs.

    The databases are copied first. So files that a job writes while its files are copied are newer than
    the database's data, and never missing. Raises Failure, and leaves no file, if something cannot be
    copied.
    """
    if not file.name.endswith((".tar", *COMPRESSED)):
        raise UsageFailure(say("{file} must end in .tar or .tar.gz.", file=str(file)))
    if file.exists():
        raise UsageFailure(
            say("{file} already exists; name another file, or remove that one.", file=str(file))
        )
    if not settings.secrets_dir.is_dir():
        raise CommandFailed(
            say("{home} has no state.", home=str(settings.home)),
            say("Name the state directory: MLP_HOME=PATH"),
        )
    if any(
        root == file.parent.resolve() or root in file.resolve().parents for root in folders(settings).values()
    ):
        raise UsageFailure(
            say("{file} would be inside a directory of the backup; name a file elsewhere.", file=str(file))
        )
    part, begun = file.with_name(f".{file.name}.part"), time.time()
    try:
        with state_dir.exclusive(settings, _say):
            for name in database.urls(settings):
                belonging.check_database(settings, name)
            written = _write(settings, part, files=files, compress=file.name.endswith(COMPRESSED))
        counted = archive.check(part)
        os.replace(part, file)  # noqa: PTH105 - the same word as below
    except OSError as error:
        raise CommandFailed(
            say("{file} cannot be written: {strerror}.", file=str(file), strerror=str(error.strerror)),
            say("Name a file where there is room."),
        ) from error
    except SQLAlchemyError as error:
        raise CommandFailed(
            say("A database cannot be read: {error}.", error=str(error)), say("`mlp-hub doctor` checks it.")
        ) from error
    finally:
        part.unlink(missing_ok=True)
    _print_summary(settings, file, counted, written, files=files)
    _record(settings, begun, file.stat().st_size)
    return 0


def _record(settings: Settings, begun: float, size: int) -> None:
    """Write down that there is a backup of this moment, for the metrics of the hub."""
    try:
        durable.write(settings.backup_record, json.dumps({"at": begun, "size": size}))
    except OSError as error:
        _say(f"The metrics of the hub do not show this backup: {settings.backup_record}: {error.strerror}.")


def _write(settings: Settings, part: Path, *, files: bool, compress: bool) -> Counted:
    with tempfile.TemporaryDirectory(dir=part.parent, prefix=".mlp-backup-") as place:
        urls = database.urls(settings)
        copies = {name: Path(place, f"{name}.dump") for name in urls}
        for name, copy in copies.items():
            dumps.dump(urls[name], copy)
        # where the copy itself can be asked, it tells what ran at its moment
        asked = {
            n: f"sqlite:///{copies[n]}" if dumps.kind(url) == "sqlite" else url for n, url in urls.items()
        }
        head = manifest.of(settings, asked["platform"], asked["hub"], files=files)
        writer = archive.ArchiveWriter(part, compress=compress)
        writer.data(manifest.NAME, head.encode())
        for name, copy in copies.items():
            writer.file(f"{COPIES}/{name}", copy)
        writer.tree("secrets", settings.secrets_dir)
        # where tenants' files lie, and what opens them; never what is mounted
        for kept in ("places", "keys"):
            writer.tree(f"isolation/{kept}", settings.isolation_dir / kept)
        if (settings.isolation_dir / "id").exists():
            writer.file("isolation/id", settings.isolation_dir / "id")
        if settings.uid_file.exists():  # the numbers to which people's files belong
            writer.file(settings.uid_file.name, settings.uid_file)
        if files:
            for name, path in folders(settings).items():
                writer.tree(name, path)
        writer.close()
        return writer.counted


def dedicated(settings: Settings) -> dict[str, str]:
    """Return the separate roots of tenants, which are not in any backup."""
    return {tenant: how.root for tenant, how in roots_of(settings).kept().items() if how.grade == DEDICATED}


def _print_summary(
    settings: Settings, file: Path, counted: Counted, written: Counted, *, files: bool
) -> None:
    _say(
        f"{file}: {counted.files} files, {_size(counted.size)}, {_size(file.stat().st_size)} on disk; read back, all as written"
    )
    if not files:
        _say("Without people's homes and jobs' outputs.")
    for tenant, root in dedicated(settings).items():
        _say(
            f"The files of tenant {tenant} are not in it: they lie in {root}, which is backed up as a volume of its own."
        )
    if written.changed:
        _say(
            f"{written.changed} files changed or went while they were read; they are in it as they were at some moment."
        )
    if written.unread:
        _say(
            f"{written.unread} files or folders are not in it; copy those that you need by other means (cp --sparse=always keeps holes):"
        )
        for name, why in written.left_out:
            _say(f"  {escaped(name)}: {why}")
        if written.unread > len(written.left_out):
            _say(f"  and {written.unread - len(written.left_out)} more")
    _say("Keep it safe: it holds the keys and tokens of the platform. Restore: mlp-hub restore FILE")


def _size(size: int) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.1f} MiB"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def room(path: Path) -> int:
    """Return how many bytes are free where a path will lie."""
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free
