"""Files of jobs and models on the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from mlp_api.types import Response

EntryKindName = Literal["file", "directory", "link", "other"]


class FileEntry(Response):
    """An entry of a directory. `size` is a file's, in bytes; links are shown and never followed.

    `other` is what cannot be fetched: a device, a pipe, a socket, or what has no name that is text.
    """

    name: str
    kind: EntryKindName
    size: int
    modified: datetime
