"""The dataset's files as wsgidav's resources."""

from __future__ import annotations

import os
import re
import stat
from typing import Any, BinaryIO
from urllib.parse import quote, unquote

from wsgidav.dav_error import HTTP_FORBIDDEN, HTTP_METHOD_NOT_ALLOWED, DAVError
from wsgidav.dav_provider import DAVCollection, DAVNonCollection, DAVProvider

from mlp_hub.dav.access_client import AccessClient
from mlp_hub.dav.files.dataset_copy import Copy
from mlp_hub.dav.files.tree import Parts, Tree, parts_of
from mlp_hub.dav.files.upload import Upload, digest_in, digest_of, disk_error, entry_room
from mlp_hub.safe_path import DIGEST_ATTRIBUTE as DIGEST
from mlp_hub.safe_path import shown_time
from mlp_language.message import msg

TREE, LENGTH, MADE, LISTED, STILL = "mlp.tree", "mlp.length", "mlp.made", "mlp.listed", "mlp.still"
REFERENCE = "/data"
DIGEST_PROPERTY = "{urn:mlp-hub}digest"
"""Name of the property that says what `Repr-Digest` does."""
MOST_ASKED = 64
"""Safety: properties that one request asks for by their names: each of each file is looked for, and answered."""
MOST_ANSWERED = 2_000_000
"""Safety: properties of all files of a listing together that are asked for by their names: bounds memory."""
NAMES_MAX = 8192
"""Safety: characters of the names of all properties that are asked for: each file's answer repeats them."""

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Given: characters that XML has no place for; names of files may have them."""


def reference(tree: Tree, parts: Parts) -> str:
    """Name a path of a dataset, the same by whatever address it is reached: locks go by it, and end with their dataset."""
    access = tree.access
    return REFERENCE + quote("/".join(("", access.user, f"{access.name}@{access.uid}", *parts)))


class Files(DAVProvider):  # type: ignore[misc]  # wsgidav is untyped
    """Provider of one share: paths are `/{user}/{dataset}/...`, and the request's tree is that dataset's."""

    def __init__(self, service: AccessClient) -> None:
        super().__init__()
        self.service = service

    def ref_url_to_path(self, ref_url: str) -> str:
        """Return the path that a reference means."""
        _, user, dataset, *rest = unquote(ref_url.removeprefix(REFERENCE)).split("/", 3)
        return "/".join(("", user, dataset.partition("@")[0], *rest))

    def get_resource_inst(self, path: str, environ: dict[str, Any]) -> OneFile | Directory | None:
        """Return the file or directory at a path; None for nothing, and for other kinds."""
        tree: Tree = environ[TREE]
        parts = parts_of(path)
        if parts[:2] != (tree.access.user, tree.access.name):
            if len(parts) < 2:
                return None
            raise DAVError(HTTP_FORBIDDEN, msg("files are copied and moved within one dataset only"))
        found = tree.stat(parts[2:])
        if found is None:
            return None
        kind = Directory if stat.S_ISDIR(found.st_mode) else OneFile
        return kind(path, environ, found)


class _Entry:
    """Common part of files and directories."""

    environ: dict[str, Any]
    path: str
    provider: Files
    is_collection: bool
    found: os.stat_result

    @property
    def tree(self) -> Tree:
        """The dataset's files."""
        tree: Tree = self.environ[TREE]
        return tree

    @property
    def parts(self) -> Parts:
        """Its path within the dataset."""
        return parts_of(self.path)[2:]

    def get_ref_url(self) -> str:
        return reference(self.tree, self.parts) + ("/" if self.path.endswith("/") else "")

    def get_creation_date(self) -> float:
        return shown_time(self.found.st_ctime)

    def get_display_name(self) -> str:
        return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", parts_of(self.path)[-1])

    def get_last_modified(self) -> float:
        return shown_time(self.found.st_mtime)

    def get_properties(self, mode: str, *, name_list: list[str] | None = None) -> list[tuple[str, Any]]:
        """Return properties; refuse a request for names whose answer would fill the memory."""
        if name_list is not None:
            files = self.environ.get(LISTED, 1)
            n = len(name_list)
            if n > MOST_ASKED or n * files > MOST_ANSWERED or sum(map(len, name_list)) > NAMES_MAX:
                raise DAVError(
                    HTTP_FORBIDDEN,
                    msg(
                        "{n} properties of {files} files are requested; request fewer at once",
                        n=n,
                        files=files,
                    ),
                )
        found: list[tuple[str, Any]] = super().get_properties(mode, name_list=name_list)  # type: ignore[misc]
        return found

    def get_etag(self) -> str | None:
        return f"{self.found.st_ino:x}-{self.found.st_mtime_ns:x}-{self.found.st_size:x}"

    def support_etag(self) -> bool:
        return True

    def handle_move(self, dest_path: str) -> bool:
        """Move it in one step, whatever its size: after a crash a file is at its old place or at its new one.

        Its locks, and those of its contents, were checked before.
        """
        to = parts_of(dest_path)[2:]
        if not self.parts or not to:
            raise DAVError(HTTP_METHOD_NOT_ALLOWED, msg("a dataset itself is not moved; make another one"))
        there = self.provider.get_resource_inst(dest_path, self.environ)
        in_place = there is not None and not there.is_collection and not self.is_collection
        if there is not None and not in_place:
            there.delete()
        gone = 0
        try:
            gone = self.tree.move(self.parts, to)
        except OSError as error:
            raise disk_error(error) from error
        finally:
            self.provider.service.report_written(self.tree.access.uid, 0, 0, gone or int(in_place))
        if there is not None:
            there.forget_locks()
        self.forget_locks()
        self.environ[MADE] = there is None
        return True

    def delete(self) -> None:
        if not self.parts:
            raise DAVError(
                HTTP_METHOD_NOT_ALLOWED, msg("a dataset itself is deleted by DELETE on its own path")
            )
        gone = 0

        def count(size: int) -> None:
            nonlocal gone
            gone += size

        try:
            self.tree.remove(self.parts, count)
        except OSError as error:
            raise disk_error(error) from error
        finally:
            # an entry is gone at least, of which only a look tells what it took
            self.provider.service.report_written(self.tree.access.uid, 0, 0, gone or 1)
        self.forget_locks()

    def handle_copy(self, dest_path: str, *, depth_infinity: bool) -> bool:
        """Copy it to a place next to the dataset, and move the whole copy into place.

        The old content of the place stays until then. It stays for good if it was locked meanwhile.
        """
        to = parts_of(dest_path)[2:]
        if not to:
            raise DAVError(HTTP_FORBIDDEN, msg("a dataset itself is not copied over; name a directory in it"))
        there = self.provider.get_resource_inst(dest_path, self.environ)
        in_place = there is not None and not there.is_collection and not self.is_collection

        def make_way() -> None:
            # both were checked when the copy began, and a large one takes a while
            self.check_locks(reference(self.tree, to))
            if not self.environ[STILL]():
                raise DAVError(
                    HTTP_FORBIDDEN, msg("you may not write to this dataset any more; nothing was replaced")
                )
            if there is not None and not in_place:
                there.delete()

        copy = Copy(self.tree, self.provider.service, to, make_way)
        try:
            copy.run(self.parts, deep=depth_infinity)
        except OSError as error:
            raise disk_error(error) from error
        if there is not None and in_place:
            there.forget_locks()
        self.environ[MADE] = there is None
        return True

    def check_locks(self, ref_url: str) -> None:
        """Raise `DAVError` where this or something below is locked, and the request does not have the lock of this."""
        locks = self.provider.lock_manager
        if locks is not None:
            locks.check_write_permission(
                url=ref_url,
                depth="infinity",
                token_list=self.environ["wsgidav.ifLockTokenList"],
                principal=self.environ["wsgidav.user_name"],
            )

    def forget_locks(self) -> None:
        """Remove the locks of a removed entry, and of all entries that were below it."""
        locks = self.provider.lock_manager
        if locks is not None:
            locks.remove_all_locks_from_url(self.get_ref_url(), recursive=True)


class OneFile(_Entry, DAVNonCollection):  # type: ignore[misc]  # wsgidav is untyped
    """A file, or the place where one is going to be."""

    def __init__(self, path: str, environ: dict[str, Any], found: os.stat_result | None) -> None:
        DAVNonCollection.__init__(self, path, environ)
        self._found = found
        self._upload: Upload | None = None

    @property
    def found(self) -> os.stat_result:  # type: ignore[override]
        """Present status of the file."""
        if self._found is None:
            self._found = self.tree.stat(self.parts)
        if self._found is None:
            raise DAVError(404)
        return self._found

    def get_content_length(self) -> int:
        return self.found.st_size

    def get_content_type(self) -> str:
        return "application/octet-stream"

    def support_ranges(self) -> bool:
        return True

    def get_content(self) -> BinaryIO:
        try:
            return self.tree.read(self.parts)
        except OSError as error:
            raise disk_error(error) from error

    def get_property_value(self, name: str) -> Any:
        """Return a property; the digest is returned when asked for by name, so that a listing compares files."""
        if name != DIGEST_PROPERTY:
            return super().get_property_value(name)
        digest = digest_of(self.tree.attribute(self.parts, DIGEST), self.found)
        if digest is None:
            raise DAVError(404)
        return digest

    def finalize_headers(self, environ: dict[str, Any], response_headers: list[tuple[str, str]]) -> None:
        del environ
        digest = digest_of(self.tree.attribute(self.parts, DIGEST), self.found)
        if digest is not None:
            response_headers.append(("Repr-Digest", digest))

    def begin_write(self, *, content_type: str | None = None) -> Upload:
        del content_type
        environ = self.environ
        self._upload = Upload(
            self.tree, self.provider.service, self.parts, environ[LENGTH], digest_in(environ)
        )
        return self._upload

    def end_write(self, *, with_errors: bool) -> None:
        if self._upload is not None and with_errors:
            self._upload.abort()
        self._found = None


class Directory(_Entry, DAVCollection):  # type: ignore[misc]  # wsgidav is untyped
    """A directory, or the dataset itself."""

    def __init__(self, path: str, environ: dict[str, Any], found: os.stat_result) -> None:
        DAVCollection.__init__(self, path, environ)
        self.found = found

    def get_etag(self) -> str | None:
        return None

    def support_etag(self) -> bool:
        return False

    def get_member_names(self) -> list[str]:
        """List what is in it by names that an address can have: a program may have made others."""
        try:
            names = self.tree.names(self.parts)
        except OSError as error:
            raise disk_error(error) from error
        return [name for name in names if _is_text(name)]

    def get_member(self, name: str) -> OneFile | Directory | None:
        return self.provider.get_resource_inst(f"{self.path.rstrip('/')}/{name}", self.environ)

    def create_empty_resource(self, name: str) -> OneFile:
        made = OneFile(f"{self.path.rstrip('/')}/{name}", self.environ, None)
        if self.environ["REQUEST_METHOD"] != "PUT":  # of a lock: the name is to be there
            upload = Upload(self.tree, self.provider.service, made.parts, 0, None)
            try:
                upload.close()
            finally:
                upload.abort()
        return made

    def create_collection(self, name: str) -> None:
        with entry_room(self.tree, self.provider.service):
            try:
                self.tree.make_folder((*self.parts, name))
            except FileExistsError as error:  # another request made it meanwhile (RFC 4918, 9.3.1)
                raise DAVError(HTTP_METHOD_NOT_ALLOWED, msg("it already exists")) from error
            except OSError as error:
                raise disk_error(error) from error

    def handle_delete(self) -> bool:
        """Remove it with all that is in it, in one go; nothing of it where something in it is locked. Raises `DAVError`."""
        self.check_locks(self.get_ref_url())
        self.delete()
        return True

    def get_descendants(self, **how: Any) -> list[Any]:
        """Return what is listed: of a directory what is in it, never all that is below."""
        found: list[Any] = super().get_descendants(**how)
        self.environ[LISTED] = len(found)
        return found


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
