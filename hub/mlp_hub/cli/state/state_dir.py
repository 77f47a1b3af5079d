"""Makes the state directory: its folders, its secrets, and the lock of those who change it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from mlp_hub import durable
from mlp_hub.cli.errors import CommandFailed
from mlp_hub.settings import Settings
from mlp_language.render import say

_CLOSED = 0o700
_KEY = 32
"""Given: bytes of a key of AES-256."""
_SHORTEST = 16
"""Given: letters that a secret has at least; a shorter one was torn, or could be guessed."""
# no letters that look like others: a person may have to type it
_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"


def prepare(settings: Settings) -> list[str]:
    """Make what is missing and mend what is there; return what the operator should know, raise CommandFailed where that cannot be."""
    try:
        notes = _prepare_folders(settings)
        for secret in _SECRETS:
            notes += _secret(settings, secret)
        # where sessions of browsers were before they were rows of the database
        shutil.rmtree(settings.secrets_dir / "sessions", ignore_errors=True)
    except OSError as error:
        raise _unusable(settings, error) from error
    return notes


def prepare_folders(settings: Settings) -> None:
    """Make the folders alone, where the secrets come from elsewhere; raise `CommandFailed` where that cannot be."""
    try:
        _prepare_folders(settings)
    except OSError as error:
        raise _unusable(settings, error) from error


def _prepare_folders(settings: Settings) -> list[str]:
    notes: list[str] = []
    if settings.files_dir != settings.home:
        _make_root(settings.files_dir)
    for path, mode in _folders(settings):
        _make(path, mode)
        if mode == _CLOSED:
            notes += _own(path)
    return notes


def _unusable(settings: Settings, error: OSError) -> CommandFailed:
    return CommandFailed(
        say(
            "The state directory {home} cannot be used: {strerror}: {filename}.",
            home=str(settings.home),
            strerror=str(error.strerror),
            filename=error.filename,
        ),
        say("Choose another one with MLP_HOME=PATH, or change its owner."),
    )


def _folders(settings: Settings) -> list[tuple[Path, int]]:
    return [
        # others may pass through to what is theirs by its own mode, but not look around
        (settings.home, 0o711),
        (settings.run_dir, 0o711),
        (settings.private_dir, 0o700),
        (settings.tenant_dir, 0o711),
        (settings.secrets_dir, 0o700),
        (settings.db_dir, 0o700),
        (settings.log_dir, 0o700),
        (settings.homes_dir, 0o711),
        (settings.data_dir, 0o711),
        (settings.jobs_dir, 0o711),
        (settings.data_dir / "datasets", 0o711),
        (settings.data_dir / "models", 0o711),
        (settings.isolation_dir, 0o711),
        (settings.jobs_run_dir, 0o700),
        (settings.servers_run_dir, 0o700),
    ]


def _make_root(path: Path) -> None:
    """Make the directory of all files; the root of a volume may be another's, who let this user write there."""
    try:
        _make(path, 0o711)
    except PermissionError:
        if not path.is_mount() or not os.access(path, os.W_OK | os.X_OK):
            raise


def _make(path: Path, mode: int) -> None:
    with contextlib.suppress(FileExistsError):
        path.mkdir(parents=True, mode=mode)
    # a directory in /tmp might have been put there by somebody else, or be a link to elsewhere
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) and not (path.is_dir() and path.parent != Path("/tmp")):  # noqa: S108
        raise NotADirectoryError(20, "not a directory", str(path))
    if found.st_uid != os.getuid() and path.parent == Path("/tmp"):  # noqa: S108
        raise PermissionError(1, "it belongs to somebody else", str(path))
    if not os.access(path, os.W_OK):
        raise PermissionError(13, "no right to write there", str(path))
    if stat.S_IMODE(found.st_mode) & ~mode & 0o077:
        path.chmod(mode)


def _token() -> str:
    return secrets.token_hex(32)


def _password() -> str:
    groups = ("".join(secrets.choice(_ALPHABET) for _ in range(4)) for _ in range(4))
    return "-".join(groups)


def _is_key(text: str) -> bool:
    return len(text) == 2 * _KEY and all(letter in "0123456789abcdef" for letter in text)


def _is_text(text: str) -> bool:
    return len(text) >= _SHORTEST and text.isascii() and text.isprintable()


class KeptSecret(NamedTuple):
    """Secret of the platform: its generator, its check, and the effect for people if it was recreated."""

    name: str
    make: Callable[[], str] = _token
    is_one: Callable[[str], bool] = _is_text
    lost: Callable[[], str] = lambda: say("nobody needs to do anything")


_SECRETS = (
    KeptSecret("cookie_secret", lost=lambda: say("people log in again")),
    KeptSecret(
        "crypt_key", is_one=_is_key, lost=lambda: say("users who log in with a provider log in again")
    ),
    KeptSecret(
        "secrets_key",
        lost=lambda: say(
            "secrets that people store here cannot be opened any more; restore the key from a backup, or set them again"
        ),
    ),
    KeptSecret("proxy_token"),
    KeptSecret("service_token"),
    KeptSecret("spawner_token"),
    KeptSecret("data_token"),
    KeptSecret("gateway_token"),
    KeptSecret("operator_token"),
    KeptSecret(
        "admin-password",
        _password,
        str.isprintable,
        lost=lambda: say("the administrator's account keeps its password"),
    ),
)


def new_secrets() -> dict[str, str]:
    """Return a new value for each secret of the platform, by name."""
    return {secret.name: secret.make() for secret in _SECRETS}


def unusable(settings: Settings) -> list[tuple[Path, str]]:
    """List the secrets that exist but are not valid, with the content of each."""
    found = ((settings.secret_file(secret.name), secret) for secret in _SECRETS)
    return [(path, what) for path, secret in found if (what := _wrong(path, secret)) is not None]


def _wrong(path: Path, secret: KeptSecret) -> str | None:
    """Say what a secret's file holds if that is none; None where it is one, or not there."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    try:
        text = content.decode().strip()
        good = bool(text) and secret.is_one(text)
    except UnicodeDecodeError:
        good = False
    return None if good else durable.what_it_holds(content)


def _secret(settings: Settings, secret: KeptSecret) -> list[str]:
    """Write a secret unless it exists; an invalid one is kept aside and recreated."""
    path = settings.secret_file(secret.name)
    if not path.exists():
        durable.write(path, secret.make() + "\n")
        return []
    notes = _own(path)
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        path.chmod(0o600)
    what = _wrong(path, secret)
    if what is None:
        return notes
    durable.set_aside(settings.home, str(path))
    durable.write(path, secret.make() + "\n")
    again = say(
        "the secret {path} held {what} and was made again: {lost}",
        path=str(path),
        what=what,
        lost=secret.lost(),
    )
    return [*notes, again]


def _own(path: Path) -> list[str]:
    """Make what only the hub may read the hub's own; root can, another user says that it cannot."""
    owner = path.stat().st_uid
    if owner == os.getuid():
        return []
    os.chown(path, os.getuid(), -1)
    return [
        say(
            "{path} belonged to the system user {owner}, who could read it; it is the hub's own again. If that user cannot be trusted, remove the files in {folder} that the user could read: they are made again",
            path=str(path),
            owner=owner,
            folder=str(path if path.is_dir() else path.parent),
        )
    ]


@contextlib.contextmanager
def exclusive(settings: Settings, say: Callable[[str], None]) -> Iterator[None]:
    """Let only one `up` or `down` work on a state directory at a time; the others wait."""
    fd = os.open(settings.home / "operator.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another up or down is at work on this state directory; waiting for it")
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
