"""`mlp-hub restore FILE`: a state directory as it was when the backup was made."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

from mlp_hub.cli.backups import archive, dumps, manifest
from mlp_hub.cli.backups.backup import COPIES, is_part, room
from mlp_hub.cli.backups.manifest import Manifest
from mlp_hub.cli.errors import CommandFailed
from mlp_hub.cli.state import belonging, database
from mlp_hub.cli.supervisor import processes
from mlp_hub.domain.text import escaped
from mlp_hub.settings import Settings
from mlp_language.render import say

MOST_NAMES = 10


def restore(settings: Settings, file: Path) -> int:
    """Make the state directory, which must be empty or not there, of a backup; say what ran then and what becomes of it.

    Nothing is changed where the backup is damaged, of a newer version, or of another kind of database.
    """
    if not file.is_file():
        raise CommandFailed(say("The file {file} does not exist.", file=str(file)))
    counted = archive.check(file)
    head = manifest.decode(archive.read(file, manifest.NAME), file)
    _refuse(settings, head, counted.size)
    home = settings.home
    part = home.with_name(f".{home.name}.restoring")
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir(mode=0o711, parents=True)
        archive.extract(file, part, partial(is_part, settings))
        for name, url in database.urls(replace(settings, home=part)).items():
            dumps.load(part / COPIES / name, url)
        shutil.rmtree(part / COPIES)
        (part / manifest.NAME).unlink()
        belonging.adopt(replace(settings, home=part))
        os.sync()
        os.rename(part, home)  # noqa: PTH104 - onto an empty folder, which pathlib words otherwise
    except OSError as error:
        raise CommandFailed(
            say(
                "{home} cannot be made: {strerror}: {filename}.",
                home=str(home),
                strerror=str(error.strerror),
                filename=error.filename,
            )
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    _print_summary(settings, head)
    return 0


def _refuse(settings: Settings, head: Manifest, size: int) -> None:
    home = settings.home
    if processes.find(settings, "supervisor"):
        raise CommandFailed(
            say("A hub runs on {home}.", home=str(home)), say("Stop it first: mlp-hub down --jobs stop")
        )
    if home.is_symlink() or (home.exists() and (not home.is_dir() or any(home.iterdir()))):
        raise CommandFailed(
            say("{home} is not empty.", home=str(home)),
            say("Name an empty or new directory, MLP_HOME=PATH, or move that one away."),
        )
    if head.revision > database.newest_revision():
        raise CommandFailed(
            say(
                "The backup is of MLP Hub {program} with tables of revision {revision}; this version knows "
                "{newest_revision}.",
                program=head.program,
                revision=head.revision,
                newest_revision=database.newest_revision(),
            ),
            say("Install that version or a newer one."),
        )
    kinds = tuple(dumps.kind(url) for url in database.urls(settings).values())
    if kinds != (head.platform_kind, head.hub_kind):
        raise CommandFailed(
            say(
                "The backup's databases are {platform_kind} (platform) and {hub_kind} (JupyterHub), but the settings have {kind} and {other}.",
                platform_kind=head.platform_kind,
                hub_kind=head.hub_kind,
                kind=kinds[0],
                other=kinds[1],
            ),
            say("Set MLP_DATABASE_URL and MLP_HUB_DATABASE_URL to their earlier values."),
        )
    if room(home) < size:
        raise CommandFailed(
            say(
                "{home} would need {size} MiB, {room} MiB are free.",
                home=str(home),
                size=size >> 20,
                room=room(home) >> 20,
            )
        )


def _print_summary(settings: Settings, head: Manifest) -> None:
    lines = [f"{settings.home} is as it was at {head.made_at}, of MLP Hub {head.program}."]
    if not head.files:
        lines.append("People's homes and jobs' outputs are not in this backup.")
    if head.running:
        lines.append(
            f"Ran then: {_names(head.running, 'job')}. The next up queues them again; "
            "they go on from the last checkpoint that is in the backup, or from the beginning."
        )
    if head.waiting:
        lines.append(f"Waited or suspended then: {_names(head.waiting, 'job')}. They keep their places.")
    if head.servers:
        lines.append(
            f"Notebook servers ran of {_names(head.servers, 'user')}. Their owners start them again."
        )
    if head.running or head.servers:
        lines.append("Where the hub of this backup still runs, stop it first: both would run these jobs.")
    lines.append(f"Start it: MLP_HOME={shlex.quote(str(settings.home))} mlp-hub up")
    sys.stdout.write("\n".join(map(escaped, lines)) + "\n")


def _names(names: list[str], what: str) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"{len(names)} {what}{'' if len(names) == 1 else 's'} ({', '.join(names[:MOST_NAMES])}{more})"
