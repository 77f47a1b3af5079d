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

from mlp_hub.dav.service import ServiceAnswer, StorageRoom
from mlp_hub.dav.tree import MOST_NAMES, PROPERTIES, Aside, Parts, TooDeepError, Tree
from mlp_hub.dav.upload import STEP, Upload, refusal
from mlp_hub.executors.shared_volume.sizes import ENTRY, FREE_ENTRIES
from mlp_language.message import msg

COPIED = 1 << 20
"""Tuning: bytes that are copied at a time."""
DEEPEST_COPIED = 100
"""Safety: directories in each other that are copied at once."""


class _HeldRoom:
    """Room that is taken ahead, and given back only at the end.

    A process that dies meanwhile has taken the room, and the service measures it then. The room taken
    ahead grows with the room taken so far. So many files need few requests, and a few files hold little
    unused room.
    """

    def __init__(self, service: StorageRoom, uid: str, language: str) -> None:
        self._service, self._uid, self._language = service, uid, language
        self.granted = self.grown = 0
        self._spare = self._entries = 0

    def entry(self) -> None:
        """Have room for the name of one more file or directory. Raises `DAVError`."""
        self._entries += 1
        if self._entries > FREE_ENTRIES:
            said = self.request_room(self._uid, ENTRY, self._language)
            if said.status != 200:
                raise refusal(said.status, said.body, said.message)

    def request_room(self, uid: str, size: int, language: str = "") -> ServiceAnswer:
        if size > self._spare:
            ahead = min(self.granted, STEP)
            said = self._service.request_room(uid, size + ahead, language)
            if said.status != 200 and ahead:  # there may be room for this one
                ahead = 0
                said = self._service.request_room(uid, size, language)
            if said.status != 200:
                return said
            self.granted += size + ahead
            self._spare += size + ahead
        self._spare -= size
        return ServiceAnswer(200, None)

    def report_written(self, uid: str, granted: int, grown: int, gone: int = 0) -> None:
        del uid, granted, gone  # nothing lies there yet
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
        access = self._tree.access
        held, placed = _HeldRoom(self._service, access.uid, access.language), False
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

    def _all(self, held: _HeldRoom, parts: Parts, aside: Aside, to: Parts) -> None:
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

    def _copy_file(self, held: _HeldRoom, here: Parts, aside: Aside, there: Parts) -> None:
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
