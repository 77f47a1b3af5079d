"""Copies within a dataset: made next to it, and moved into place whole.

A file of the same name is removed only then.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable
from typing import BinaryIO

from wsgidav.dav_error import HTTP_INSUFFICIENT_STORAGE, DAVError

from mlp_hub.dav.access_client import StorageRoom
from mlp_hub.dav.files.quota_reservation import QuotaReservation
from mlp_hub.dav.files.tree import MOST_NAMES, PROPERTIES, Aside, Parts, TooDeepError, Tree
from mlp_hub.dav.files.upload import Upload
from mlp_language.message import msg

COPIED = 1 << 20
"""Tuning: bytes that are copied at a time."""
DEEPEST_COPIED = 100
"""Safety: directories in each other that are copied at once."""


class Copy:
    """One copy, to a path that `make_way` frees."""

    def __init__(self, tree: Tree, service: StorageRoom, to: Parts, make_way: Callable[[], None]) -> None:
        self._tree, self._service, self._to, self._make_way = tree, service, to, make_way

    def run(self, parts: Parts, *, deep: bool) -> None:
        """Copy what lies at a path of the dataset; of a directory all that is in it, where it shall be `deep`."""
        found = self._tree.stat(parts)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "it is gone")
        if stat.S_ISREG(found.st_mode):
            self._file(self._service, parts, self._tree, self._to, self._make_way)
            return
        access = self._tree.access
        held, placed = QuotaReservation(self._service, access.uid, access.language), False
        try:
            with self._tree.aside() as aside:
                self._properties(parts, aside, ())
                if deep:
                    self._all(held, parts, aside, ())
                self._make_way()
                aside.put_all(self._to)
                placed = True
        finally:
            # what the names take is found by looking
            self._service.report_written(access.uid, held.granted, held.grown if placed else 0, int(placed))

    def _all(self, held: QuotaReservation, parts: Parts, aside: Aside, to: Parts) -> None:
        if len(to) > DEEPEST_COPIED:
            raise TooDeepError(f"more than {DEEPEST_COPIED} directories lie in each other")
        below: list[str] = []
        with self._tree.folder(parts) as folder, folder.entries() as entries:
            for entry in entries:  # one after the other: there may be more than memory has room for
                if entry.is_dir(follow_symlinks=False):
                    below.append(entry.name)
                    if len(below) > MOST_NAMES:
                        raise DAVError(
                            HTTP_INSUFFICIENT_STORAGE,
                            msg("more than {n} directories next to each other", n=MOST_NAMES),
                        )
                elif entry.is_file(follow_symlinks=False):
                    self._copy_file(held, (*parts, entry.name), aside, (*to, entry.name))
        for name in below:  # no directory is held open meanwhile
            here, there = (*parts, name), (*to, name)
            if self._tree.stat(here) is None:
                continue
            held.entry()
            aside.make_folder(there)
            self._properties(here, aside, there)
            self._all(held, here, aside, there)

    def _copy_file(self, held: QuotaReservation, here: Parts, aside: Aside, there: Parts) -> None:
        with contextlib.ExitStack() as opened:
            try:
                source = opened.enter_context(self._tree.read(here))
            except FileNotFoundError:  # it was removed meanwhile
                return
            held.entry()
            self._content(held, source, aside, there)
        self._properties(here, aside, there)

    def _file(
        self,
        room: StorageRoom,
        parts: Parts,
        tree: Tree,
        to: Parts,
        make_way: Callable[[], None] = lambda: None,
    ) -> None:
        with self._tree.read(parts) as source:
            self._content(room, source, tree, to, make_way)
        self._properties(parts, tree, to)

    def _content(
        self,
        room: StorageRoom,
        source: BinaryIO,
        tree: Tree,
        to: Parts,
        make_way: Callable[[], None] = lambda: None,
    ) -> None:
        left = os.fstat(source.fileno()).st_size
        upload = Upload(tree, room, to, left, None, fresh=True)
        try:
            while left and (data := source.read(min(COPIED, left))):
                upload.write(data)
                left -= len(data)
            upload.close(make_way)
        finally:
            upload.abort()

    def _properties(self, parts: Parts, tree: Tree, to: Parts) -> None:
        value = self._tree.attribute(parts, PROPERTIES)
        if value is not None:
            tree.set_attribute(to, PROPERTIES, value)
