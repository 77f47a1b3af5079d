"""Lists in pages: `limit` and `cursor` in the query, the next page's cursor in `X-Next-Cursor`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class ListPage(Struct, kw_only=True):
    """Which page of a list."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    cursor: Annotated[str, Meta(min_length=1, max_length=500)] | None = None
