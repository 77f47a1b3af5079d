"""Quota for the files of one request: it is reserved ahead, so that many files need few requests to the service."""

from __future__ import annotations

from mlp_hub.dav.access_client import ServiceAnswer, StorageRoom
from mlp_hub.dav.files.upload import STEP, refusal
from mlp_hub.executors.shared_volume.trees.sizes import ENTRY, FREE_ENTRIES


class QuotaReservation:
    """Room for many files that is taken ahead, and given back only at the end.

    A process that dies meanwhile has taken the room, and the service measures it then. The room taken
    ahead grows with the room taken so far. So many files need few requests, and a few files hold little
    unused room.
    """

    def __init__(self, service: StorageRoom, uid: str, language: str) -> None:
        self._service, self._uid, self._language = service, uid, language
        self.granted = self.grown = self.gone = 0
        self._spare = self._entries = 0

    def entry(self) -> None:
        """Have room for the name of one more file or directory. Raises `DAVError`."""
        self._entries += 1
        if self._entries > FREE_ENTRIES:
            said = self.request_room(self._uid, ENTRY, self._language)
            if said.status != 200:
                raise refusal(said.status, said.body, said.message)

    def reserve(self, size: int) -> ServiceAnswer:
        """Take room for `size` bytes at once."""
        said = self._service.request_room(self._uid, size, self._language)
        if said.status == 200:
            self.granted += size
            self._spare += size
        return said

    def request_room(self, uid: str, size: int, language: str = "") -> ServiceAnswer:
        """Use `size` bytes of the room, which is enlarged where that is not enough."""
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
        """Note what a file took, and what was in its place."""
        del uid, granted
        self.grown += grown
        self.gone += gone
