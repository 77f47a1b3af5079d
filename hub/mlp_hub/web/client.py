"""The command `mlp` as one file that Python runs, for a machine that has nothing of the hub's: `/services/mlp/client/mlp.pyz`."""

from __future__ import annotations

import asyncio
import hashlib
import io
import zipapp
import zipfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from tornado.web import RequestHandler

from mlp_hub.api.edge import answers

PACKAGES = ("mlp", "mlp_language", "websocket")
"""Packages that the command needs in addition to Python: itself, its texts, and WebSockets, all pure."""
LEFT_OUT = frozenset({"__pycache__", "samples", "tests"})

INTERPRETER = "/usr/bin/env python3"


class ClientFile(RequestHandler):
    """Download of the command for everybody: it has no user's data, and this hub's version."""

    async def get(self) -> None:
        """Send the file; made at the first request."""
        content, etag = await asyncio.to_thread(archive)
        for header, value in answers.SECURITY_HEADERS.items():
            self.set_header(header, value)
        self.clear_header("Server")
        self.set_header("Content-Type", "application/zip")
        self.set_header("Content-Disposition", 'attachment; filename="mlp.pyz"')
        self.set_header("Cache-Control", "no-cache")
        self.set_header("ETag", etag)
        self.finish(content)

    head = get


@cache
def archive() -> tuple[bytes, str]:
    """Return the file and what tells one version of it from another."""
    made = io.BytesIO()
    with TemporaryDirectory() as scratch:
        source = Path(scratch, "source.zip")
        with zipfile.ZipFile(source, "w", zipfile.ZIP_DEFLATED) as out:
            for package in PACKAGES:
                _put(out, package)
            out.writestr("__main__.py", "from mlp.__main__ import run\n\nrun()\n")
        zipapp.create_archive(source, made, interpreter=INTERPRETER)
    content = made.getvalue()
    return content, f'"{hashlib.sha256(content).hexdigest()[:16]}"'


def _put(out: zipfile.ZipFile, package: str) -> None:
    spec = find_spec(package)
    assert spec is not None  # noqa: S101 - installed with the hub
    for place in spec.submodule_search_locations or ():
        root = Path(place)
        for path in sorted(root.rglob("*")):
            inside = path.relative_to(root)
            if path.is_file() and not LEFT_OUT & set(inside.parts) and path.suffix != ".po":
                # without the time, so that all replicas send the same
                entry = zipfile.ZipInfo(f"{package}/{inside}")
                entry.compress_type = zipfile.ZIP_DEFLATED
                out.writestr(entry, path.read_bytes())
