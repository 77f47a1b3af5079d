"""Owner of a state directory, so that a copy never acts on the processes of the original.

`identity.json` holds a random id and the directory that it was given to. Each process of the
platform has the id in its environment. A copy has the file too, but is another directory. The id is
not its own, and a pid file in it does not count.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass

from mlp_hub import durable
from mlp_hub.settings import Settings

FILE = "identity.json"
VARIABLE = "MLP_INSTANCE"
"""In the environment of every process of the platform: the id of its state directory."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Identity as written: the id, and the directory that it was given to."""

    id: str
    device: int
    inode: int
    path: str


def read(settings: Settings) -> Identity | None:
    """Return what is written down, whether this directory's own or not; None where nothing is."""
    try:
        found = durable.read_object(settings.home / FILE)
        return Identity(str(found["id"]), int(found["device"]), int(found["inode"]), str(found["path"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def own(settings: Settings) -> str | None:
    """Return the id of this very directory; None where it has none yet, or a copied one."""
    found = read(settings)
    return found.id if found is not None and _is_of(found, settings) else None


def origin(settings: Settings) -> str | None:
    """Return the path of the directory that this one is a copy of; None where it is none."""
    found = read(settings)
    return None if found is None or _is_of(found, settings) else found.path


def give(settings: Settings, known: str = "") -> str:
    """Give the directory its own new id, or one that is known, and return it."""
    place = settings.home.stat()
    made = Identity(known or secrets.token_hex(8), place.st_dev, place.st_ino, str(settings.home.resolve()))
    durable.write(settings.home / FILE, json.dumps(asdict(made)))
    return made.id


def _is_of(found: Identity, settings: Settings) -> bool:
    """Whether it was given to this directory, which may have been moved, or got another device number at a boot."""
    try:
        place = settings.home.stat()
    except OSError:
        return False
    same_place = found.device == place.st_dev or found.path == str(settings.home.resolve())
    return found.inode == place.st_ino and same_place
