"""Doctor's check of the hub from outside: it asks the public address.

The answer shows the gateways in front of the hub.
"""

from __future__ import annotations

import http.client
import json
import secrets
import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from mlp_hub.cli.doctor.checks import FAIL, OK, WARN, Check
from mlp_hub.cli.http import request
from mlp_hub.settings import Settings
from mlp_hub.settings.origins import Origins, is_local
from mlp_hub.unix_sockets import Place
from mlp_language.render import say

WAIT_S = 10.0
PAGE = "docs/how-to/gateway.md"


@dataclass(frozen=True, slots=True)
class Probe:
    """A word that the proxy knows for a while, and how it is told."""

    api: Place
    token: str
    word: str
    base: str

    @property
    def path(self) -> str:
        """Where the public address tells what came of a request: below the hub's path, where a gateway may hand on no other."""
        return f"{self.base}/_mlp_probe/{self.word}"

    def send_word(self, method: str) -> bool:
        """Have the proxy know the word (POST), or end what was asked with it (DELETE)."""
        headers = {"Authorization": f"token {self.token}"}
        return (
            request(self.api, method, f"/probes/{self.word}", headers=headers, timeout=WAIT_S).status == 204
        )


@contextmanager
def probe(api: Place, token: str, base: str = "") -> Iterator[Probe | None]:
    """Hand out a probe; None where no proxy answers."""
    made = Probe(api, token, secrets.token_hex(16), base)
    try:
        yield made if made.send_word("POST") else None
    finally:
        made.send_word("DELETE")


def gateway(settings: Settings) -> list[Check]:
    """Tell whether requests to the public address arrive as they were sent, where there is one and the hub runs."""
    origins = settings.origins
    if not settings.public_url or is_local(origins.host):
        return []
    away = [Check("gateway", OK, say("not asked: the hub does not run"))]
    try:
        token = settings.secret("proxy_token")
    except FileNotFoundError:  # before the first start
        return away
    with probe(settings.proxy_at, token, settings.base) as asked:
        if asked is None:
            return away
        found = faults(asked, origins, settings)
    return found or [Check("gateway", OK, say("{url} leads here correctly", url=settings.url))]


def faults(asked: Probe, origins: Origins, settings: Settings) -> list[Check]:
    """List what is wrong; where the platform's name does not lead here, that alone."""
    arrived = _arrives(asked, origins, settings)
    if isinstance(arrived, Check):
        return [arrived]
    found = [_known(arrived, settings), _sockets(asked, origins), _wildcard(asked, origins)]
    return [check for check in found if check is not None]


@contextmanager
def _ask(asked: Probe, origin: str, **headers: str) -> Iterator[http.client.HTTPResponse]:
    """Ask for the probe; raise OSError or HTTPException where nobody answers."""
    parts = urlsplit(origin)
    host = parts.hostname or ""
    # without a port it takes the end of an IPv6 address for one
    if parts.scheme == "https":
        link: http.client.HTTPConnection = http.client.HTTPSConnection(
            host, parts.port or 443, timeout=WAIT_S, context=ssl.create_default_context()
        )
    else:
        link = http.client.HTTPConnection(host, parts.port or 80, timeout=WAIT_S)
    with closing(link):
        link.request("GET", asked.path, headers=headers)
        with closing(link.getresponse()) as answer:
            yield answer


def _read_reply(answer: http.client.HTTPResponse) -> dict[str, Any] | None:
    """Return what the proxy says came; None where it is not the proxy that answers."""
    if answer.status != 200:
        return None
    try:
        found = json.loads(answer.readline(10_000))
    except ValueError:
        return None
    return found if isinstance(found, dict) and {"host", "from", "sender"} <= found.keys() else None


def _arrives(asked: Probe, origins: Origins, settings: Settings) -> Check | str:
    """Return from which address a request to the platform's name arrives, or why it does not."""
    try:
        with _ask(asked, origins.platform) as answer:
            reply = _read_reply(answer)
    except TimeoutError:
        return _fault(
            say("answers of the hub arrive only when they are complete: logs and events would not come"),
            say("Switch the gateway's buffering of answers off: {page}", page=PAGE),
        )
    except (OSError, http.client.HTTPException) as error:
        return _fault(
            say("{url} does not answer from here: {error}", url=origins.platform, error=str(error)),
            say("Check where the name leads and whether browsers trust its certificate: {page}", page=PAGE),
            WARN,
        )
    if reply is None:
        place = f"{settings.bind}:{settings.port}"
        return _fault(
            say("{url} does not lead to this hub", url=origins.platform),
            say("Have the gateway pass all paths on to {place}: {page}", place=place, page=PAGE),
        )
    wanted = urlsplit(origins.platform).netloc
    if reply["host"] != wanted:
        return _fault(
            say(
                "the Host header that arrives is {found}; browsers send {wanted}",
                found=reply["host"],
                wanted=wanted,
            ),
            say("Have the gateway pass the Host header on unchanged: {page}", page=PAGE),
        )
    return str(reply["from"])


def _fault(found: str, remedy: str, status: str = FAIL) -> Check:
    return Check("gateway", status, found, remedy)


def _known(from_: str, settings: Settings) -> Check | None:
    """Say where a gateway connects from whose word is not taken."""
    if settings.tls is not None or not settings.public_url.startswith("https:"):
        return None
    address = ip_address(from_.removeprefix("::ffff:").partition("%")[0])
    if any(address in network for network in settings.in_front):
        return None
    return _fault(
        say("the gateway connects from {address}, so all clients count as one", address=str(address)),
        say("Name it: MLP_TRUSTED_PROXIES={address}", address=str(address)),
        WARN,
    )


def _sockets(asked: Probe, origins: Origins) -> Check | None:
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "bWxwLWh1Yi1kb2N0b3ItMQ==",
    }
    try:
        with _ask(asked, origins.platform, **upgrade) as answer:
            if answer.status == HTTPStatus.SWITCHING_PROTOCOLS:
                return None
    except (OSError, http.client.HTTPException):
        pass
    return _fault(
        say("WebSockets do not pass: kernels could not connect"),
        say("Have the gateway pass Upgrade and Connection on: {page}", page=PAGE),
    )


def _wildcard(asked: Probe, origins: Origins) -> Check | None:
    if not origins.apart:
        return None
    name = f"doctor.{origins.users}"
    scheme, _, rest = origins.platform.partition("://")
    try:
        with _ask(asked, f"{scheme}://{name}{rest[len(origins.host) :]}") as answer:
            if _read_reply(answer) is not None:
                return None
        why = say("something else answers")
    except TimeoutError:
        return None  # which was said of the platform's name
    except (OSError, http.client.HTTPException) as error:
        why = str(error)
    return _fault(
        say("{name} does not lead here: {why}", name=name, why=why),
        say(
            "All names below {domain} must lead here, in DNS, in the certificate and in the gateway: {page}",
            domain=origins.users,
            page=PAGE,
        ),
    )
