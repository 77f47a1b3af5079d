"""Properties that clients give to files (RFC 4918's dead ones): kept with the file itself, as one extended attribute.

So they move with the file, are gone with it, and nothing else has to be kept in step.
"""

from __future__ import annotations

import contextlib
import json
from typing import Any

from wsgidav.dav_error import HTTP_INSUFFICIENT_STORAGE, DAVError

from mlp_hub.dav.files.resources import TREE, Files
from mlp_hub.dav.files.tree import PROPERTIES, Parts, Tree, parts_of
from mlp_hub.dav.files.upload import entry_room
from mlp_language.message import msg

MOST_BYTES = 3500
"""Safety: bytes of all properties of one file; file systems have room for this number."""


class Properties:
    """Property manager of wsgidav."""

    def __init__(self, provider: Files) -> None:
        self._provider = provider

    def get_properties(self, norm_url: str, environ: dict[str, Any]) -> list[str]:
        """Return the names of a file's properties."""
        return list(self._of(norm_url, environ))

    def get_property(self, norm_url: str, name: str, environ: dict[str, Any]) -> str | None:
        """Return the value of one, as it was given; None where there is none."""
        return self._of(norm_url, environ).get(name)

    def write_property(
        self, norm_url: str, name: str, value: bytes | str, dry_run: bool = False, environ: Any = None
    ) -> None:
        """Store one."""
        text = value.decode() if isinstance(value, bytes) else value
        found = {**self._of(norm_url, environ), name: text}
        self._put(norm_url, environ, found, dry_run=dry_run)

    def remove_property(self, norm_url: str, name: str, dry_run: bool = False, environ: Any = None) -> None:
        """Forget one."""
        found = {k: v for k, v in self._of(norm_url, environ).items() if k != name}
        self._put(norm_url, environ, found, dry_run=dry_run)

    def remove_properties(self, norm_url: str, environ: Any = None) -> None:
        """Do nothing: they go with their file."""

    def copy_properties(self, src_url: str, dest_url: str, environ: Any = None) -> None:
        """Do nothing: the code that copies files copies them too."""

    def _place(self, norm_url: str, environ: dict[str, Any]) -> tuple[Tree, Parts]:
        return environ[TREE], parts_of(self._provider.ref_url_to_path(norm_url))[2:]

    def _of(self, norm_url: str, environ: dict[str, Any]) -> dict[str, str]:
        tree, parts = self._place(norm_url, environ)
        try:
            found = json.loads(tree.attribute(parts, PROPERTIES) or b"{}")
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _put(self, norm_url: str, environ: dict[str, Any], found: dict[str, str], *, dry_run: bool) -> None:
        value = json.dumps(found).encode() if found else b""
        full = DAVError(
            HTTP_INSUFFICIENT_STORAGE,
            msg("the properties of one file may have {n} bytes together", n=MOST_BYTES),
        )
        if len(value) > MOST_BYTES:
            raise full
        if not dry_run:
            tree, parts = self._place(norm_url, environ)
            with entry_room(tree, self._provider.service) if value else contextlib.nullcontext():
                try:
                    tree.set_attribute(parts, PROPERTIES, value)
                except OSError as error:
                    raise full from error
