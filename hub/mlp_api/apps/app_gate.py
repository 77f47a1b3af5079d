"""Ways into apps on the wire: their keys, who may open them, what was asked of them, and what the gateway asks."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta

from mlp_api.apps.apps import AppAccess
from mlp_api.localized import Text
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
    """Access to an app with an account of the hub: only its owner, the members of its tenant, or everybody."""

    access: AppAccess


class AppAccessNow(Response):
    """Present access to an app with an account of the hub."""

    access: AppAccess


class AppMinute(Response):
    """Requests to an app in the minute that begins at `time`.

    `errors` counts answers with a status of 500 or above.
    """

    time: datetime
    requests: int
    errors: int
    bytes_in: int
    bytes_out: int


class AppUsage(Response):
    """Requests to an app, or to all apps of a tenant, since the first request.

    `latency` counts answers by the first of `bounds_ms` within which they began. Its last item counts
    slower answers. `p50_ms` and `p99_ms` are values of `bounds_ms`. They are null without requests, or
    where the time was above all bounds. `minutes` covers the last hour, without the minutes that had no
    requests.
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
    """Question of the gateway about a request for an app, with the secret that the request brought.

    The app is given by user and app, or by the label of its host. `again`: the request was admitted and
    is still open, and the gateway checks it again. Such a check is not a guess, even if other requests
    from its address are guesses.
    """

    kind: Literal["key", "token", "cookie"]
    secret: Secret
    user: Annotated[str, Meta(max_length=255)] = ""
    app: Annotated[str, Meta(max_length=255)] = ""
    label: Annotated[str, Meta(max_length=63)] = ""
    address: Annotated[str, Meta(max_length=64)] = ""
    again: bool = False


class AppAdmission(Response):
    """Verdict of the hub about a request for an app.

    The other fields are empty unless the verdict is `may`. An app that does not exist and an app that
    is not open get the same answer.
    """

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
    """Code that a browser brought to an app's own origin.

    `way` is the digest of the secret that the browser had when it asked for the code.
    """

    label: Annotated[str, Meta(max_length=63)]
    code: Secret
    way: Annotated[str, Meta(min_length=1, max_length=64)]


class AppEntered(Response):
    """The cookie of that browser for this app, and for how many seconds; empty where the code is not good."""

    cookie: str = ""
    lasts_s: int = 0


class CountedMinute(Request):
    """Counts of the gateway for one minute, which is given by its number since the epoch."""

    minute: Count
    requests: Count
    errors: Count
    bytes_in: Count
    bytes_out: Count


class CountedUse(Request):
    """Counts of one gateway process (`run`) for an app, by its uid, or for the apps of a tenant.

    The counts begin with the process. `under_way` is the mean number of requests in progress since the
    last report. `minutes` are the minutes that have changed.
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
    """Requests to apps, as the gateway reports them.

    A repeated report counts once.
    """

    counted: Annotated[list[CountedUse], Meta(max_length=100)]
