"""Files of the operator's that metrics tell of: the certificate of the public port, and the record of the last backup."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from mlp_hub.durable import UnreadableFile, read_object
from mlp_hub.service.monitoring import table as t
from mlp_hub.service.monitoring.gauges import Family

MOST_BYTES = 1 << 20
"""Safety: bytes of a certificate's file with its chain; a larger one is another file."""
AT, SIZE = "at", "size"
"""Contract: keys of the record of a backup: seconds since the epoch, and bytes."""


@dataclass(frozen=True, slots=True)
class FilesLook:
    """End of the certificate, time and size of the last backup; None where there is none, or it cannot be read."""

    certificate_end: float | None = None
    backup_at: float | None = None
    backup_size: int | None = None


class OperatorFiles:
    """The files; for a thread, because it reads them. A certificate is parsed once for each change of its file."""

    def __init__(self, certificate: Path | None, backup: Path | None) -> None:
        self._certificate, self._backup = certificate, backup
        self._known: tuple[tuple[int, int, int], float | None] | None = None

    def look(self) -> FilesLook:
        """Read what has changed."""
        at, size = self._last_backup()
        return FilesLook(self._end(), at, size)

    def _end(self) -> float | None:
        if self._certificate is None:
            return None
        try:
            found = os.stat(self._certificate)  # noqa: PTH116
            key = found.st_ino, found.st_size, found.st_mtime_ns
            if self._known is None or self._known[0] != key:
                self._known = key, _end_of(self._certificate)
        except OSError:
            return None  # `mlp-hub doctor` has the reason
        return self._known[1]

    def _last_backup(self) -> tuple[float | None, int | None]:
        if self._backup is None:
            return None, None
        try:
            found = read_object(self._backup, AT, SIZE)
            at, size = float(found[AT]), int(found[SIZE])
            return (at, size) if isfinite(at) else (None, None)
        except (OSError, UnreadableFile, TypeError, ValueError, OverflowError):
            return None, None


def of_files(look: FilesLook) -> Iterator[Family]:
    """Yield the metrics; one of a file that is not there has no value."""
    for row, value in (
        (t.CERTIFICATE_END, look.certificate_end),
        (t.BACKUP_AT, look.backup_at),
        (t.BACKUP_SIZE, look.backup_size),
    ):
        yield row, [] if value is None else [((), float(value))]


def _end_of(path: Path) -> float | None:
    from cryptography import x509  # noqa: PLC0415 - only who has a certificate needs it

    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    try:
        return x509.load_pem_x509_certificates(content)[0].not_valid_after_utc.timestamp()
    except (ValueError, IndexError):
        return None
