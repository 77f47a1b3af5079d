"""Job tokens: a job's program shows one to report for that job and for nothing else."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

PREFIX = "mlpj-"
"""First characters of each job token, by which it is known."""


@dataclass(frozen=True, slots=True)
class JobToken:
    """A token and what is stored of it."""

    secret: str
    sha256: str


def make_token() -> JobToken:
    """Return a new token of 32 random bytes."""
    secret = PREFIX + secrets.token_urlsafe(32)
    return JobToken(secret, digest(secret))


def digest(secret: str) -> str:
    """Return what is stored of a token: its SHA-256 in hex."""
    return hashlib.sha256(secret.encode()).hexdigest()
