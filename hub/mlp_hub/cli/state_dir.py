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

from mlp_hub.cli.errors import CommandFailed
from mlp_hub.settings import Settings
from mlp_language.render import say

# no letters that look like others: a person may have to type it
_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"


def prepare(settings: Settings) -> None:
    """Make what is missing and check what is there; raise Failure where that cannot be."""
    try:
        for path, mode in _folders(settings):
            _make(path, mode)
        for name, make in _SECRETS.items():
            _secret(settings.secret_file(name), make)
        # where sessions of browsers were before they were rows of the database
        shutil.rmtree(settings.secrets_dir / "sessions", ignore_errors=True)
    except OSError as error:
        raise CommandFailed(
            say(
                "The state directory {home} cannot be used: {strerror}: {filename}.",
                home=str(settings.home),
                strerror=str(error.strerror),
                filename=error.filename,
            ),
            say("Choose another one with MLP_HOME=PATH, or change who owns it."),
        ) from error


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
        *([(settings.files_dir, 0o711)] if settings.files_dir != settings.home else []),
        (settings.homes_dir, 0o711),
        (settings.data_dir, 0o711),
        (settings.jobs_dir, 0o711),
        (settings.data_dir / "datasets", 0o711),
        (settings.data_dir / "models", 0o711),
        (settings.isolation_dir, 0o711),
        (settings.jobs_run_dir, 0o700),
        (settings.servers_run_dir, 0o700),
    ]


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


_SECRETS: dict[str, Callable[[], str]] = {
    "cookie_secret": _token,
    "crypt_key": _token,
    "secrets_key": _token,
    "proxy_token": _token,
    "service_token": _token,
    "spawner_token": _token,
    "data_token": _token,
    "gateway_token": _token,
    "operator_token": _token,
    "admin-password": _password,
}


def _secret(path: Path, make: Callable[[], str]) -> None:
    """Write a secret unless it is there; a crash never leaves half of one."""
    if path.exists():
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            path.chmod(0o600)
        return
    new = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(make() + "\n")
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


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
