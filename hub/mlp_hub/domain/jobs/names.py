"""Names of jobs: their syntax, the reference to a certain run, and their short forms.

A name is shown as it was written. In a path, or in the name of a cluster object, no two names may
become the same one. This is also true on targets that ignore the case of letters.
"""

from __future__ import annotations

import base64
import hashlib
import re

_PLAIN = re.compile(r"[a-z]([a-z0-9-]{0,48}[a-z0-9])?")
_FORBIDDEN = re.compile(r"[^a-z0-9]+")
_SLUG = 30
_DIGEST = 20
"""Characters of five bits each: with a thousand million names of one user none would meet another."""


def reference(name: str, run: int) -> str:
    """Write a certain run of a name: `digits@2`."""
    return f"{name}@{run}"


def title(name: str, run: int) -> str:
    """Write a run as sentences name it: the first one by its name alone, `digits@2` for a later one."""
    return name if run == 1 else reference(name, run)


def parse_reference(text: str) -> tuple[str, int | None] | None:
    """Return the name and the run (None: the latest) of a reference; None for other texts."""
    name, at, run = text.partition("@")
    if not at:
        return name, None
    if not (run.isascii() and run.isdecimal()) or run.startswith("0") or len(run) > 9:
        return None
    return name, int(run)


def directory_name(name: str, run: int) -> str:
    """Return the directory of a run: `digits`, `digits@2`, `_big__run`.

    A capital letter becomes `_` and the small one, `_` becomes `__`, so that none is left that a file system might not tell
    from its small one; names in small letters without `_` are their own directory.
    """
    safe = "".join("__" if c == "_" else f"_{c.lower()}" if c.isupper() else c for c in name)
    return title(safe, run)


def label_name(name: str, run: int) -> str:
    """Return the name of a run as a label of DNS for clusters (RFC 1123: a-z, 0-9 and -, at most 63).

    The first run of a name that is such a label, and begins with a letter, has its name. All others
    begin with 0, with the readable part of the name, the run, and a digest of both.
    """
    if run == 1 and _PLAIN.fullmatch(name):
        return name
    digest = base64.b32encode(hashlib.sha256(reference(name, run).encode()).digest()).decode().lower()
    slug = _FORBIDDEN.sub("-", name.lower()).strip("-")[:_SLUG].strip("-")
    return "-".join(filter(None, ("0", slug, str(run), digest[:_DIGEST])))
