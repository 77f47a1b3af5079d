"""Models on the wire: versions with their origin, their format, and their use."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta

from mlp_api.localized import Text
from mlp_api.types import Name, Request, Response

MODEL_PATTERN = r"^[a-z]([a-z0-9-]{0,48}[a-z0-9])?(@[1-9][0-9]{0,8})?$(?!\n)"
"""A name of a model, which means its latest version, or `NAME@VERSION`."""
ModelState = Literal["creating", "ready", "error", "deleting"]
ModelUse = Literal["none", "staging", "production", "archived"]
Src = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=4096,
        description="jobs/JOB/PATH or jobs/JOB@RUN/PATH of a job's files, JOB for its checkpoints, home/PATH of the home; also as "
        "/mlp/jobs/USER/JOB/PATH, /mlp/datasets/USER/.home/PATH",
    ),
]


class ModelCreate(Request, kw_only=True):
    """Version of a model to register: `src` is the file, or the directory with all below it, that it is from.

    With `any_files` all files are accepted. Otherwise files that are not a model of a known format are
    an error.
    """

    name: Name
    src: Src
    tenant: Name | None = None
    any_files: bool = False


class FoundModel(Response):
    """A model among the files of a job, as names and headers tell it; `src` is what registers it."""

    src: str
    path: str
    format: str
    pickled: bool


class ModelStageChange(Request):
    """How far a version is used from now on. Of one version of a model it is `production`: the one before is archived."""

    stage: ModelUse


class Lineage(Response):
    """Where a model comes from, as it was when it was registered. Without a job it comes from its owner's home.

    `code_sha256` is of the program's text, null where it is a file of the home, `entry`. `metrics` are the last of each.
    """

    job: str | None
    run: int | None
    job_uid: str | None
    runtime: str | None
    entry: str | None
    code_sha256: str | None
    args: list[str]
    env: dict[str, str]
    workers: int | str | None
    data: list[str]
    metrics: dict[str, float]
    taken_at: datetime


class Model(Response):
    """Version of a model; in paths `NAME` means the latest version, `NAME@VERSION` a certain one.

    `size` is in bytes: the reserved size while the model is created, then the exact size of its files.
    `format` is found by names and headers, and nothing is loaded. To load a `pickled` model runs code
    that is in it. `facts` are the data of its header.
    """

    name: str
    version: int
    user: str
    tenant: str
    uid: str
    size: int
    files: int
    src: str
    state: ModelState
    stage: ModelUse
    format: str
    main: str
    pickled: bool
    facts: dict[str, str]
    message: Text
    lineage: Lineage
    created_at: datetime
