"""Information of the hub about people from their login's provider, and the people that it has to check.

The hub learns it without a request of theirs.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from mlp_api.accounts.users import HubNews, LoginStanding, ProviderStanding, UserName
from mlp_hub.api.auth.principal import CallerKind
from mlp_hub.api.auth.scopes import LEDGER_WRITE, SPAWNER
from mlp_hub.api.edge.call import Call
from mlp_hub.api.routes import Relation, Route
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.tenants.account_names import THE_HUB
from mlp_hub.service.support.units import utc_text
from mlp_hub.service.tenants.syncing import GROUP
from mlp_language.message import msg, verbatim

PAGE = 10_000
"""Tuning: names in one answer: the size of an answer, for how many are asked for."""


class Working(Struct, kw_only=True, forbid_unknown_fields=True):
    """Which page is asked for."""

    after: str = ""


def _check_hub(call: Call) -> None:
    if call.principal.kind is not CallerKind.SERVICE or call.principal.name != SPAWNER:
        raise Refused(Reason.FORBIDDEN, msg("only the hub may report this"))


async def note_once(
    call: Call, action: str, news: HubNews, *, actor: str, detail: Mapping[str, object]
) -> None:
    """Write down what the hub reports of somebody, with the time of it if the report is late."""
    late = {} if news.at is None else {"at": utc_text(news.at)}
    await call.platform.users.note(action, call.user, actor=actor, detail={**detail, **late}, once=news.once)


async def standing(call: Call) -> str:
    """Let somebody's places follow their groups at once, or deal with an account that was taken away."""
    _check_hub(call)
    report: LoginStanding = call.body
    tenants = call.platform.tenants
    if report.tokens is not None:
        detail = {"why": "disabled", "tokens": report.tokens}
        await note_once(call, "user.login_ended", report, actor=THE_HUB, detail=detail)
    if report.ended == "disabled":
        await tenants.account_ended(call.user)
    elif not report.ended:
        await call.platform.users.ensure(call.user)
        await tenants.left_out.report(call.user, map(verbatim, report.left_out))
        await tenants.sync_groups(call.user, report.groups)
    if report.admin is not None:
        detail = {"admin": report.admin, "source": GROUP}
        await note_once(call, "user.admin", report, actor=THE_HUB, detail=detail)
    call.service.auth.forget_user(call.user)
    return ""


async def provider(call: Call) -> str:
    """Note whether the provider answers, for `/health`."""
    _check_hub(call)
    report: ProviderStanding = call.body
    watch = call.platform.login_provider
    watch.away, watch.refuses = report.away, report.refuses
    return ""


async def working(call: Call) -> list[UserName]:
    """List users with jobs that have not ended, by name, one page at a time."""
    _check_hub(call)
    asked: Working = call.query
    return await call.platform.db.read(lambda tx: tx.jobs.users_active(after=asked.after, limit=PAGE))


ROUTES = (
    Route(
        "PUT",
        "/users/{user}:standing",
        standing,
        "What the hub says of how somebody stands at their login's provider",
        Relation.PLATFORM,
        LEDGER_WRITE,
        body=LoginStanding,
    ),
    Route(
        "PUT",
        "/login:standing",
        provider,
        "What the hub says of whether the login's provider answers",
        Relation.PLATFORM,
        LEDGER_WRITE,
        body=ProviderStanding,
    ),
    Route(
        "GET",
        "/users:working",
        working,
        "Who has jobs that have not ended",
        Relation.PLATFORM,
        LEDGER_WRITE,
        query=Working,
        reply=list[UserName],
    ),
)
