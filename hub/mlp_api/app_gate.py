"""Ways into apps on the wire: their keys, who may open them, what was asked of them, and what the gateway asks."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta

from mlp_api.apps import AppAccess
from mlp_api.said import Text
from mlp_api.types import Name, Request, Response

AppVerdict = Literal["may", "unknown", "refused", "often"]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Seconds = Annotated[float, Meta(ge=0, le=10**12)]
Secret = Annotated[str, Meta(min_length=1, max_length=1024)]


class AppKeyCreate(Request):
    """A key of an app to make, by a name that says who uses it."""

    name: Name


class AppKeyShown(Response):
    """A key of an app. `key` is there in the answer that made it, and never again; `used_at` is exact to a minute or so."""

    name: str
    made_by: str
    made_at: datetime
    used_at: datetime | None
    key: str | None = None


class AppAccessSet(Request):
    """Who may open an app with an account of the hub, besides its owner: nobody, members of its tenant, or everybody."""

    access: AppAccess


class AppAccessNow(Response):
    """Who may open an app with an account of the hub."""

    access: AppAccess


class AppMinute(Response):
    """What was asked in the minute that begins at `time`; `errors` are answers of 500 and above."""

    time: datetime
    requests: int
    errors: int
    bytes_in: int
    bytes_out: int


class AppUsage(Response):
    """What was asked of an app, or of all of a tenant's, since it was first asked.

    `latency` counts answers by the first of `bounds_ms` within which they began, and in its last place slower ones; `p50_ms` and
    `p99_ms` are such bounds, null where nothing was asked or it took longer than all. `minutes` are of the last hour, those without
    a request left out.
    """

    since: datetime
    requests: int
    errors: int
    bytes_in: int
    bytes_out: int
    open: int
    last: datetime | None
    bounds_ms: list[int]
    latency: list[int]
    p50_ms: int | None
    p99_ms: int | None
    minutes: list[AppMinute]


class AppAdmit(Request):
    """A request for an app, as the gateway asks about it: by user and app or by its host's label, with what it brought.

    `again`: it was let in, is open still, and is asked about once more, which is no guess whatever else comes from its address.
    """

    kind: Literal["key", "token", "cookie"]
    secret: Secret
    user: Annotated[str, Meta(max_length=255)] = ""
    app: Annotated[str, Meta(max_length=255)] = ""
    label: Annotated[str, Meta(max_length=63)] = ""
    address: Annotated[str, Meta(max_length=64)] = ""
    again: bool = False


class AppAdmission(Response):
    """What the gateway does with a request. But for `may` all else is empty: what is not there and what is not open are one."""

    verdict: AppVerdict
    uid: str = ""
    user: str = ""
    app: str = ""
    tenant: str = ""
    visitor: str = ""
    key: str = ""
    key_name: str = ""
    state: str = ""
    reason: Text | None = None
    wakes: bool = False
    replicas: tuple[str, ...] = ()


class AppEnter(Request):
    """A code that a browser brought to an app's own origin; `way` is the digest of what that browser had when it asked for it."""

    label: Annotated[str, Meta(max_length=63)]
    code: Secret
    way: Annotated[str, Meta(min_length=1, max_length=64)]


class AppEntered(Response):
    """The cookie of that browser for this app, and for how many seconds; empty where the code is not good."""

    cookie: str = ""
    lasts_s: int = 0


class CountedMinute(Request):
    """What the gateway counted in one minute, by its number since the epoch."""

    minute: Count
    requests: Count
    errors: Count
    bytes_in: Count
    bytes_out: Count


class CountedUse(Request):
    """What a process of the gateway counted of an app, by its uid, or of a tenant's apps, since it began to (`run`).

    `under_way` is how many requests were, on average, since it was told last; `minutes` are those that have changed.
    """

    kind: Literal["app", "tenant"]
    name: Annotated[str, Meta(min_length=1, max_length=50)]
    run: Annotated[str, Meta(min_length=1, max_length=32)]
    since: Seconds
    last: Seconds
    under_way: Seconds
    requests: Count
    errors: Count
    bytes_in: Count
    bytes_out: Count
    bounds_ms: Annotated[list[Count], Meta(max_length=32)]
    latency: Annotated[list[Count], Meta(max_length=33)]
    minutes: Annotated[list[CountedMinute], Meta(max_length=60)]


class AppsUsed(Request):
    """What was asked of apps, as the gateway tells it; told again it counts once."""

    counted: Annotated[list[CountedUse], Meta(max_length=100)]
