"""A directory page by page, as JSON, for `mlp data` and the panel: `GET DIRECTORY?entries`.

WebDAV has no pages: a listing of it is one answer with all that is there. Here a page is read, answered and forgotten, so a directory
may have any number of files. Directories come first, then files, both by name.
"""

from __future__ import annotations

import json
import os
import stat
from typing import Any
from urllib.parse import parse_qs
from wsgiref.handlers import format_date_time

from wsgidav.dav_error import DAVError

from mlp_hub.dav.files.tree import Parts, Tree
from mlp_hub.dav.files.upload import digest_of, disk_error
from mlp_hub.safe_path import DIGEST_ATTRIBUTE, shown_time
from mlp_language.message import msg

MOST = 10_000
"""Tuning: entries of a page: fewer readings of the directory with more, less memory with fewer."""
CURSOR_MAX = 4096
"""Safety: characters of the cursor that the earlier page returned."""


def is_asked(environ: dict[str, Any]) -> bool:
    """Tell whether a request asks for a page of a directory."""
    return environ["REQUEST_METHOD"] == "GET" and "entries" in _query(environ)


def _query(environ: dict[str, Any]) -> dict[str, list[str]]:
    return parse_qs(
        str(environ.get("QUERY_STRING", ""))[: 4 * CURSOR_MAX], keep_blank_values=True, max_num_fields=8
    )


def page_of(environ: dict[str, Any], tree: Tree, parts: Parts) -> bytes:
    """Return a page of a directory, or the data of a file, as JSON.

    Raises `DAVError`, and ValueError for a text that is not a number.
    """
    try:
        return _page_of(environ, tree, parts)
    except OSError as error:
        raise disk_error(error) from error


def _page_of(environ: dict[str, Any], tree: Tree, parts: Parts) -> bytes:
    found = tree.stat(parts)
    if found is None:
        raise DAVError(404, msg("there is nothing here"))
    if not stat.S_ISDIR(found.st_mode):
        itself = _entry(parts[-1], found, tree.attribute(parts, DIGEST_ATTRIBUTE))
        return json.dumps({"directory": False, "entries": [itself], "next": None}).encode()
    query = _query(environ)
    after = query.get("after", [""])[0]
    limit = min(max(int(query.get("limit", [str(MOST)])[0]), 1), MOST)
    if len(after) > CURSOR_MAX:
        raise ValueError("after is longer than any")
    names, following = tree.page(parts, after, limit)
    entries = [_entry(*each) for each in tree.looked_at(parts, names, DIGEST_ATTRIBUTE)]
    return json.dumps({"directory": True, "entries": entries, "next": following or None}).encode()


def _entry(name: str, found: os.stat_result, digest: bytes | None) -> dict[str, Any]:
    directory = stat.S_ISDIR(found.st_mode)
    return {
        "name": name,
        "directory": directory,
        "size": 0 if directory else found.st_size,
        "tag": "" if directory else f'"{found.st_ino:x}-{found.st_mtime_ns:x}-{found.st_size:x}"',
        "digest": None if directory else digest_of(digest, found),
        "modified": format_date_time(shown_time(found.st_mtime)),
    }
