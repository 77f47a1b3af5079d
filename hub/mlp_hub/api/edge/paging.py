"""Lists in pages: `limit` and `cursor` in the query, the next page's cursor in `X-Next-Cursor`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, TypedDict, TypeVar

from msgspec import Meta, Struct

from mlp_hub.api.edge.call import Call, Reply

T = TypeVar("T")


class PageAsked(TypedDict):
    """Arguments by which services are asked for a page."""

    limit: int
    cursor: str | None


class ListPage(Struct, kw_only=True):
    """Which page of a list."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    cursor: Annotated[str, Meta(min_length=1, max_length=500)] | None = None

    @property
    def asked(self) -> PageAsked:
        """Return the page's arguments for a service."""
        return {"limit": self.limit, "cursor": self.cursor}


def listed(call: Call, found: Sequence[object], cursor: str | None) -> Reply:
    """Answer with a page; `cursor` is where the next one begins, if there is one."""
    return Reply(call.encode(found), headers={"X-Next-Cursor": cursor} if cursor else {})


def listed_by(call: Call, found: Sequence[T], key: Callable[[T], str], asked: ListPage) -> Reply:
    """Return a page of a list that is in order of its keys; a cursor is the key of the last one shown."""
    rest = [one for one in found if asked.cursor is None or key(one) > asked.cursor]
    page = rest[: asked.limit]
    return listed(call, page, key(page[-1]) if len(rest) > len(page) else None)
