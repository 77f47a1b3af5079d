"""Copies within a dataset: made beside it, and moved into place whole; what has their name is removed only then."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable

from mlp_hub.dav.service import ServiceAnswer, StorageRoom
from mlp_hub.dav.tree import PROPERTIES, Aside, Parts, Tree
from mlp_hub.dav.upload import Upload

COPIED = 1 << 20
"""Tuning: bytes that are copied at a time."""
DEEPEST_COPIED = 100
"""Safety: directories in each other that are copied at once."""


class _HeldRoom:
    """Room that is taken as it is needed, and told of at the end only: who dies on the way has taken it, and is looked at."""

    def __init__(self, service: StorageRoom) -> None:
        self._service = service
        self.granted = self.grown = 0

    def take(self, uid: str, size: int, language: str = "") -> ServiceAnswer:
        return self._service.take(uid, size, language)

    def give(self, uid: str, granted: int, grown: int, gone: int = 0) -> None:
        del uid, gone  # nothing lies there yet
        self.granted += granted
        self.grown += grown


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
        held, placed = _HeldRoom(self._service), False
        try:
            with self._tree.aside() as aside:
                self._properties(parts, aside, ())
                if deep:
                    self._all(held, parts, aside, ())
                self._make_way()
                aside.put_all(self._to)
                placed = True
        finally:
            self._service.give(self._tree.access.uid, held.granted, held.grown if placed else 0)

    def _all(self, held: _HeldRoom, parts: Parts, aside: Aside, to: Parts) -> None:
        if len(to) > DEEPEST_COPIED:
            raise OSError(errno.ELOOP, "directories are too deep in each other to be copied at once")
        for name in self._tree.names(parts):
            here, there = (*parts, name), (*to, name)
            found = self._tree.stat(here)
            if found is None:  # it was removed meanwhile
                continue
            if stat.S_ISREG(found.st_mode):
                self._file(held, here, aside, there)
            else:
                aside.make_folder(there)
                self._properties(here, aside, there)
                self._all(held, here, aside, there)

    def _file(
        self,
        room: StorageRoom,
        parts: Parts,
        tree: Tree,
        to: Parts,
        make_way: Callable[[], None] = lambda: None,
    ) -> None:
        with self._tree.read(parts) as source:
            left = os.fstat(source.fileno()).st_size
            upload = Upload(tree, room, to, left, None, fresh=True)
            try:
                while left and (data := source.read(min(COPIED, left))):
                    upload.write(data)
                    left -= len(data)
                upload.close(make_way)
            finally:
                upload.abort()
        self._properties(parts, tree, to)

    def _properties(self, parts: Parts, tree: Tree, to: Parts) -> None:
        value = self._tree.attribute(parts, PROPERTIES)
        if value is not None:
            tree.set_attribute(to, PROPERTIES, value)
