"""Datasets on the wire, and what the parts of the platform tell each other of what is written. Conventions are those of `types`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta

from mlp_api.said import Text
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
    """Objects that a dataset is made of. `url`: s3://BUCKET/PREFIX. `endpoint`: where, as https://HOST:PORT; none: at Amazon's.

    `secret`: name of the secret of the user's own, or else of the tenant's, that opens it; none: it is open to everybody.
    `mode`: `copy` has the platform copy all of it; with `read-through` nothing is copied: who reads a file gets it from there, and
    a job what it names of it, which counts in the tenant's `rom` until no job needs it.
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
    """How far the upload of a dataset is, by the word of who uploads it."""

    state: Literal["creating", "ready", "error"]
    progress: Annotated[int, Meta(ge=0, le=100)]


class Dataset(Response):
    """A dataset. `size`: bytes that it takes of its tenant's `rom`; what its files take is `used`, which becomes the same.

    `path` is where its files are, below the platform's address. Its machine of states is on the page of phases.
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
    """What a token may do with a dataset's files: told to the part of the platform that holds them.

    `owner` is the system uid whose files they are; null: the platform's own. `through`: they are those of its source.
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
    """So many bytes are going to be written to what has this uid."""

    uid: Annotated[str, Meta(min_length=26, max_length=26)]
    size: Rom
    once: Once | None = None


class StorageGive(Request):
    """Writing is over: of what was taken so much is not needed any more, and the files have grown by so much, or shrunk.

    `gone` are bytes that were removed as it seems: the service has a look, since who owns files says how long they are. `took` is
    the key of a take that nobody answered: what it took is given back, and it takes nothing where it comes later.
    """

    uid: Annotated[str, Meta(min_length=26, max_length=26)]
    granted: Rom
    grown: Annotated[int, Meta(ge=-(2**60), le=2**60)]
    once: Once | None = None
    gone: Rom = 0
    took: Once | None = None


class SourceOpen(Request):
    """What is read of the source of the dataset with this uid: the object at a path of it, or a list of what has that in front.

    A list is one page of at most `limit`, behind `after`; `flat`: without what lies deeper than the next `/`.
    """

    uid: Annotated[str, Meta(min_length=26, max_length=26)]
    path: Annotated[str, Meta(max_length=4096)]
    listed: bool = False
    flat: bool = True
    after: Annotated[str, Meta(max_length=4096)] = ""
    limit: Annotated[int, Meta(ge=1, le=1000)] = 1000


class SourceAddress(Response):
    """Where that is to be had for a few minutes, without a credential; what it was asked for, and no more."""

    url: str
    host: str
    bucket: str
    prefix: str
    secret: bool
