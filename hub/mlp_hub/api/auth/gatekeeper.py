"""Single entry for requests and WebSockets, which are checked in one fixed order.

The order is: find, identify, check the browser, limit, authorise. Nothing is read or looked up for
a caller without access. An unknown caller never learns whether an object exists.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, urlsplit

from tornado.httputil import HTTPServerRequest

from mlp_hub.api.auth.authentication import Credential, TooMany, Unauthorized, check_browser
from mlp_hub.api.auth.authorize import authorize
from mlp_hub.api.auth.principal import CallerKind, Principal
from mlp_hub.api.auth.recent import check_recent, check_token
from mlp_hub.api.edge import decode
from mlp_hub.api.edge.call import Service
from mlp_hub.api.edge.connections import network_of
from mlp_hub.api.routes import Found, Relation, Route, RouteTable
from mlp_hub.domain.errors import Reason, Refused, Unavailable
from mlp_hub.domain.tenants.tenant_context import NOBODY, TenantContext
from mlp_language.message import msg

log = logging.getLogger(__name__)
ANONYMOUS = Principal(CallerKind.USER, "")


@dataclass(frozen=True, slots=True)
class Admitted:
    """A request that may be served: its route with the values of its path, whose it is, and which owned objects it may come to.

    The gatekeeper alone makes the context. Public routes have no credential, and nothing is within their context.
    """

    route: Route
    params: dict[str, str]
    principal: Principal = ANONYMOUS
    context: TenantContext = NOBODY
    credential: Credential | None = None


class Gatekeeper:
    """Lets requests in, or raises `Unauthorized`, `TooMany`, `Refused` or `Unavailable`."""

    def __init__(self, service: Service, table: RouteTable) -> None:
        self._service = service
        self._table = table

    async def admit(
        self,
        request: HTTPServerRequest,
        path: str,
        address: str,
        *,
        socket: bool,
        on_identified: Callable[[Principal], None] = lambda _: None,
    ) -> Admitted:
        """Admit a request for a path below the API's base; `socket`: for a WebSocket there.

        `on_identified` is called with the caller as soon as it is known, also if the request is then refused.
        """
        found = self._find(request, path, socket=socket)
        if found is not None and found.route.relation is Relation.PUBLIC:
            self._take(found.route.bucket, network_of(address))
            return Admitted(found.route, found.params)
        credential = await self._service.auth.credential(request.headers)
        principal = await self._service.auth.identify(credential, address)
        on_identified(principal)
        self._check_browser(request, principal, socket=socket)
        self._take(_bucket(found, principal), principal.key)
        if found is None:
            what = "WebSocket" if socket else request.method or ""
            text = msg("{method} {path} does not exist here", method=what, path=decode.clip(request.path))
            raise Refused(Reason.NOT_FOUND, text)
        context = await self._authorize(found.route, principal, found.params)
        admitted = Admitted(found.route, found.params, principal, context, credential)
        if found.route.recent:
            service = self._service
            config = service.config
            if config.hub_attached:
                check_token(principal)
            else:
                check_recent(
                    request.headers, principal, config.cookie_secret, config.recent_cookie, service.clock()
                )
        return admitted

    async def watch(
        self,
        admitted: Admitted,
        address: str,
        every_s: float,
        on_admitted: Callable[[Admitted], Awaitable[None]] | None = None,
    ) -> None:
        """Return once an admitted caller would not be admitted any more; open connections end then.

        `on_admitted`, if given, is called each time with the caller's present state. A hub that cannot be asked
        does not count as a refusal.
        """
        while True:
            await asyncio.sleep(every_s)
            try:
                now = await self.admit_again(admitted, address)
                if on_admitted is not None:
                    await on_admitted(now)
            except (Unauthorized, Refused):
                return
            except Unavailable:
                continue
            except Exception:  # this was no answer either; the next look may go better
                log.exception("whether %s goes on could not be found out", admitted.route.operation)

    async def admit_again(self, admitted: Admitted, address: str) -> Admitted:
        """Return an admitted caller's present state, while the caller would be admitted.

        An open connection stays open no longer than that.
        """
        credential, auth = admitted.credential, self._service.auth
        assert credential is not None  # noqa: S101 - what is open for longer is not public
        if not await auth.stands(credential):
            raise Unauthorized
        principal = await auth.identify(credential, address, again=True)
        context = await self._authorize(admitted.route, principal, admitted.params)
        return replace(admitted, principal=principal, context=context)

    def _find(self, request: HTTPServerRequest, path: str, *, socket: bool) -> Found | None:
        if not socket:
            return self._table.find(request.method or "", path)
        return self._table.find("WS", path) if request.method == "GET" else None

    def _check_browser(self, request: HTTPServerRequest, principal: Principal, *, socket: bool) -> None:
        method = "WS" if socket else request.method or ""
        check_browser(request.headers, method, principal, _xsrf_of(request.query))
        origin = request.headers.get("Origin") if socket else None
        if origin is not None and urlsplit(origin).netloc.lower() != request.host.lower():
            raise Refused(Reason.FORBIDDEN, msg("WebSockets from another site are refused"))

    async def _authorize(self, route: Route, principal: Principal, params: dict[str, str]) -> TenantContext:
        return await authorize(route, principal, params, self._service.platform)

    def _take(self, bucket: str, key: str) -> None:
        wait = self._service.limiter.take_token(bucket, key)
        if wait:
            raise TooMany(wait)


def _bucket(found: Found | None, principal: Principal) -> str:
    """Return from which bucket a request is taken."""
    if principal.kind is CallerKind.SERVICE:
        return "service"
    bucket = found.route.bucket if found else "api"
    return "api" if bucket == "change" and principal.is_platform_admin else bucket


def _xsrf_of(query: str) -> str:
    if "_xsrf=" not in query:
        return ""
    return dict(parse_qsl(query, max_num_fields=100)).get("_xsrf", "")
