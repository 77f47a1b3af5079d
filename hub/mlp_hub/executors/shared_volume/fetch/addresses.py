"""Allowed addresses: those of the internet, and the endpoints that the operator named.

A name is looked up once, and the connection goes to exactly the address that was checked. A later
change of the name has no effect, and neither has a redirect in an answer.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from typing import Any

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError
from urllib3.util import Retry, Timeout

from mlp_hub.domain.public_addresses import is_allowed, is_public
from mlp_hub.executors.shared_volume.fetch.patience import patience

CONNECT_S = 10.0
"""Safety: seconds for which a connection is waited for."""
SILENT_S = 60.0
"""Limit of data: seconds for which a source may send nothing."""
HEAD_S = 90.0
"""Safety: seconds in which the head of an answer has to be whole, however it drips and whatever else is said before it."""
BODY_MAX = 8 << 20
"""Safety: bytes of an answer that is not an object: a page of a thousand long keys, with properties."""
BODY_S = 60.0
"""Safety: seconds in which it has to be whole, however it drips."""
RETRIES = 2
"""Tuning: how often a request is made again."""
MOST_REQUESTS = 2_000_000
"""Safety: requests of one copy: for each of its objects some, which may be cut or change."""


class ForbiddenAddressError(Exception):
    """An endpoint that is not to be spoken to."""

    def __init__(self, host: str) -> None:
        super().__init__(host)
        self.host = host


class TooLongError(Exception):
    """Answer of an endpoint that is longer than any page of a list."""


class TooManyRequestsError(Exception):
    """An endpoint has had more requests than any copy needs."""


def reachable(host: str, port: int, allowed: Sequence[str]) -> list[tuple[int, Any]]:
    """Look a name up; return the families and addresses that may be spoken to. Raises `ForbiddenAddressError`, `OSError`."""
    found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    named = is_allowed(host, port, allowed)
    right: list[tuple[int, Any]] = [
        (family, where) for family, _, _, _, where in found if named or is_public(str(where[0]))
    ]
    if not right:
        raise ForbiddenAddressError(host)
    return right


def client(
    allowed: Sequence[str],
    certificates: str,
    *,
    most: int | None = MOST_REQUESTS,
    before: Callable[[str], None] = lambda _: None,
) -> urllib3.PoolManager:
    """Make an HTTP client that speaks to such addresses only, and follows no redirect.

    `most`: requests, in all; `before` is told the address of each.
    """

    class Plain(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            return _connect(self, allowed)

        def getresponse(self) -> Any:
            return _answered(self.sock, super().getresponse)

    class Encrypted(HTTPSConnection):
        def _new_conn(self) -> socket.socket:
            return _connect(self, allowed)

        def getresponse(self) -> Any:
            return _answered(self.sock, super().getresponse)

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class EncryptedPool(HTTPSConnectionPool):
        ConnectionCls = Encrypted

    class Checked(urllib3.PoolManager):
        made = 0

        def urlopen(self, method: str, url: str, *more: Any, **kw: Any) -> Any:
            self.made += 1
            if most is not None and self.made > most:
                raise TooManyRequestsError
            before(url)
            whole = kw.pop("preload_content", True)
            found = super().urlopen(method, url, *more, **{**kw, "redirect": False, "preload_content": False})
            if whole:
                _read_whole(found)
            return found

    made = Checked(
        maxsize=8,
        timeout=Timeout(connect=CONNECT_S, read=SILENT_S),
        retries=Retry(
            total=RETRIES, redirect=False, backoff_factor=0.5, status_forcelist=(500, 502, 503, 504)
        ),
        cert_reqs="CERT_REQUIRED",
        ca_certs=certificates,
    )
    made.pool_classes_by_scheme = {"http": PlainPool, "https": EncryptedPool}
    return made


def _read_whole(answer: Any) -> None:
    """Read an answer's body into memory, as it was sent: a packed body could be unpacked to any length."""
    with patience.within(getattr(answer, "line", None), BODY_S):
        data = answer.read(BODY_MAX + 1, decode_content=False)
    if len(data) > BODY_MAX:
        answer.close()
        raise TooLongError
    answer._body = data  # noqa: SLF001 - where it has what it read ahead, as `preload_content` says
    answer.release_conn()


def _answered(line: Any, wait: Callable[[], Any]) -> Any:
    """Return an answer whose head has come, with its connection as `line`.

    The reader of the rest sets its own time limit.
    """
    with patience.within(line, HEAD_S):
        found = wait()
    found.line = line
    return found


def _connect(of: HTTPConnection, allowed: Sequence[str]) -> socket.socket:
    host, port = str(of.host), int(of.port or of.default_port)
    try:
        found = reachable(host, port, allowed)
    except socket.gaierror as error:
        raise NameResolutionError(host, of, error) from error
    last: OSError | None = None
    for family, where in found:
        made = socket.socket(family, socket.SOCK_STREAM)
        try:
            made.settimeout(CONNECT_S)
            made.connect(where)
        except TimeoutError as error:
            made.close()
            raise ConnectTimeoutError(of, f"{host} does not answer") from error
        except OSError as error:
            made.close()
            last = error
        else:
            made.settimeout(of.timeout if isinstance(of.timeout, int | float) else SILENT_S)
            return made
    raise NewConnectionError(of, f"{host} cannot be reached: {last}")
