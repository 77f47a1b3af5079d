"""Datasets on the wire, and messages between the parts of the platform about writes to datasets.

The conventions are those of `types`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta

from mlp_api.localized import Text
from mlp_api.types import Name, Request, Response, Rom

DATASET_PATTERN = r"^[a-z][a-z0-9.-]{0,49}$(?!\n)"
"""Those of all else, with dots in them. One in front would hide a directory, as that of scripts beside the datasets is."""
DatasetName = Annotated[
    str,
    Meta(
        pattern=DATASET_PATTERN,
        max_length=50,
        description="a-z, 0-9, - and ., beginning with a letter, 1 to 50 characters",
    ),
]
DatasetState = Literal["creating", "ready", "error", "deleting"]
SourceMode = Literal["copy", "read-through"]


class DatasetSource(Request):
    """Source of a dataset's objects.

    `url` is s3://BUCKET/PREFIX. `endpoint` is the address of the store, as https://HOST:PORT. Without
    `endpoint` the objects are at Amazon's.

    `secret` is the name of the secret that opens the source: the user's own, or else the tenant's.
    Without `secret` the source is open to everybody. With the `mode` `copy` the platform copies all
    objects. With `read-through` it copies nothing: a reader of a file gets it from the source, and a
    job gets the files that it names. Those files count in the tenant's `rom` until no job needs them.
    """

    url: Annotated[str, Meta(max_length=1200)]
    endpoint: Annotated[str, Meta(max_length=300)] | None = None
    region: Annotated[str, Meta(max_length=40)] | None = None
    secret: Name | None = None
    mode: SourceMode = "copy"


class DatasetCreate(Request):
    """A dataset to upload: `size` bytes are kept for it of its tenant's `rom` until it is ready.

    Where it has a `source` the platform copies what is there; its size is then found by looking.
    """

    name: DatasetName
    size: Rom
    tenant: Name | None = None
    user: Annotated[str, Meta(max_length=255)] | None = None
    source: DatasetSource | None = None


class DatasetHeartbeat(Request):
    """Progress of a dataset's upload, as reported by the uploader."""

    state: Literal["creating", "ready", "error"]
    progress: Annotated[int, Meta(ge=0, le=100)]


class Dataset(Response):
    """Dataset of a user.

    `size` is the number of bytes that the dataset takes of its tenant's `rom`. `used` is the size of
    its files, and `size` becomes equal to it. `path` is the address of its files, below the platform's
    address. The page of phases has the state machine.
    """

    name: str
    user: str
    tenant: str
    size: int
    state: DatasetState
    progress: int
    used: int
    path: str
    message: Text
    made_at: datetime
    source: DatasetSource | None


class DatasetAccess(Response):
    """Access of a token to the files of a dataset, for the part of the platform that holds the files.

    `owner` is the system uid of the files' owner. It is null where the files are the platform's own.
    `through`: the files are those of the dataset's source.
    """

    uid: str
    user: str
    name: str
    tenant: str
    state: DatasetState
    owner: int | None
    through: bool


ONCE_PATTERN = r"^[0-9a-f]+$"
Once = Annotated[str, Meta(min_length=16, max_length=64, pattern=ONCE_PATTERN)]
"""Key of a step: under the same one it is done once, however often it is asked for."""


class StorageTake(Request):
    """Request to write `size` bytes to the dataset with this uid."""

    uid: Annotated[str, Meta(min_length=26, max_length=26)]
    size: Rom
    once: Once | None = None


class StorageGive(Request):
    """End of a write: the bytes that are no longer needed, and the growth of the files.

    `granted` is the part of the taken bytes that is not needed any more. `grown` is negative where the
    files have shrunk. `gone` is the apparent number of removed bytes. The service measures the files
    itself, since the owner of files controls their reported length. `took` is the key of a take that
    got no answer. Its bytes are given back. If that take arrives later, it takes nothing.
    """

    uid: Annotated[str, Meta(min_length=26, max_length=26)]
    granted: Rom
    grown: Annotated[int, Meta(ge=-(2**60), le=2**60)]
    once: Once | None = None
    gone: Rom = 0
    took: Once | None = None


class SourceOpen(Request):
    """Request to read the source of the dataset with this uid: the object at `path`, or a list.

    A list has the objects whose paths begin with `path`. It is one page of at most `limit` objects
    after `after`. `flat`: the list leaves out objects that are deeper than the next `/`.
    """

    uid: Annotated[str, Meta(min_length=26, max_length=26)]
    path: Annotated[str, Meta(max_length=4096)]
    listed: bool = False
    flat: bool = True
    after: Annotated[str, Meta(max_length=4096)] = ""
    limit: Annotated[int, Meta(ge=1, le=1000)] = 1000


class SourceAddress(Response):
    """Address of a source's object or list, valid for a few minutes, without a credential.

    The address is good for the requested object or list only.
    """

    url: str
    host: str
    bucket: str
    prefix: str
    secret: bool
