"""People who are brought in many at a time, from a file that a spreadsheet wrote."""

from __future__ import annotations

import asyncio
import secrets
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mlp_api.people import ImportedPerson, PeopleImport, PeopleImported
from mlp_api.said import Text
from mlp_hub.api.call import Call
from mlp_hub.api.hubclient import HubAccount
from mlp_hub.api.routes import Relation, Route
from mlp_hub.api.scopes import USERS_WRITE
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.people_file import PersonLine, read_people
from mlp_hub.domain.tenant import DEFAULT_TENANT
from mlp_language.message import NOTHING, Message, msg

AT_ONCE = 50
"""Safety: lines that one request does: each makes the hub work on a password, and the answer is awaited."""
ASKED_AT_ONCE = 16
"""Tuning: accounts that the hub is asked for at a time: sooner with more, for how long others wait behind them."""
State = Literal["new", "joins", "there", "made", "joined", "refused"]
PASSWORD = 14
"""Safety: characters of a password that is made up, about 80 bits."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is to be done for a line."""

    person: PersonLine
    state: State
    note: Message = NOTHING


async def import_(call: Call) -> PeopleImported:
    """Make accounts that are let in, or say what would be made: an account each with a password that is shown once.

    Who is there already is put into the team, and no more: no password and no right is changed. One line's refusal stops no
    other, and the same file again does what is left. Without `dry_run` at most 50 lines are taken.
    """
    asked: PeopleImport = call.body
    if title := call.platform.login_provider.title:
        raise Refused(
            Reason.WRONG_STATE,
            msg("people come with their accounts of {title} here; no account is made by hand", title=title),
        )
    people = read_people(asked.csv)
    if not asked.dry_run and len(people) > AT_ONCE:
        raise Refused(
            Reason.INVALID,
            msg("{n} lines are too many at once; send at most {most}", n=len(people), most=AT_ONCE),
        )
    teams = {tenant.name for tenant in await call.platform.tenants.list()}
    plans = await _planned(call, people, teams)
    told = [_told(plan) if asked.dry_run else await _done(call, plan) for plan in plans]
    refused = sum(one.state == "refused" for one in told)
    return PeopleImported(
        people=told, done=len(told) - refused - sum(one.state == "there" for one in told), refused=refused
    )


async def _planned(call: Call, people: Sequence[PersonLine], teams: set[str]) -> list[_Plan]:
    good = [one.name for one in people if not one.wrong]
    few = asyncio.Semaphore(ASKED_AT_ONCE)

    async def account(name: str) -> HubAccount | None:
        async with few:
            return await call.service.hub.account(name)

    accounts = dict(zip(good, await asyncio.gather(*map(account, good)), strict=True))
    places = {name: one.tenants for name, one in (await call.platform.users.among(good)).items()}
    return [_plan(one, accounts.get(one.name), teams, places) for one in people]


def _plan(  # noqa: PLR0911 - each a way in which a line may stand
    one: PersonLine, account: HubAccount | None, teams: set[str], places: Mapping[str, Sequence[str]]
) -> _Plan:
    if one.wrong:
        return _Plan(one, "refused", one.wrong)
    if one.team and one.team not in teams:
        return _Plan(one, "refused", msg("there is no team {team}; make it first", team=one.team))
    if account is None:
        return _Plan(one, "new")
    if not account.authorized:
        return _Plan(
            one,
            "refused",
            msg("{name} has an account that is not let in; approve or refuse it first", name=one.name),
        )
    if one.admin and not account.admin:
        return _Plan(
            one,
            "refused",
            msg("{name} is there and no administrator; that is changed on the page of users", name=one.name),
        )
    if one.team in {"", DEFAULT_TENANT} or one.team in places.get(one.name, ()):
        return _Plan(one, "there")
    return _Plan(one, "joins")


async def _done(call: Call, plan: _Plan) -> ImportedPerson:
    try:
        if plan.state == "new":
            return await _made(call, plan.person)
        if plan.state == "joins":
            await _joined(call, plan.person)
            return _told(_Plan(plan.person, "joined"))
    except Refused as refused:  # another line is not this one's fault
        return _told(_Plan(plan.person, "refused", refused.message))
    return _told(plan)


async def _made(call: Call, one: PersonLine) -> ImportedPerson:
    """Make an account; as with one that is approved, who had its name before leaves nothing to it, whenever this is killed."""
    password = _password()
    actor = call.principal.name
    await call.platform.departures.come_back(one.name)
    standing = (await call.platform.users.among([one.name]))[one.name]
    if not standing.known and standing.placed:  # of a namesake who was never let in
        await call.platform.tenants.forget_user(one.name, actor=actor)
    await call.service.applications.forget(one.name)
    await call.service.hub.make_account(one.name, password)
    await call.platform.users.approve(one.name, actor=actor)
    if one.admin:  # written down first: of no administrator it is unknown who made them one
        detail: dict[str, object] = {"admin": True, "was": False}
        await call.platform.users.note("user.admin", one.name, actor=actor, detail=detail)
        await call.service.hub.set_admin(one.name, True)
    note = NOTHING
    try:
        await _joined(call, one)
    except Refused as refused:  # the account is there, and its password must not be lost
        note = refused.message
    return _told(_Plan(one, "made", note), password)


async def _joined(call: Call, one: PersonLine) -> None:
    if one.team and one.team != DEFAULT_TENANT:
        await call.platform.tenants.set_member(one.team, one.name, actor=call.principal.name)


def _told(plan: _Plan, password: str | None = None) -> ImportedPerson:
    one = plan.person
    return ImportedPerson(
        line=one.line,
        name=one.name,
        team=one.team,
        admin=one.admin,
        state=plan.state,
        note=Text(plan.note),
        password=password,
    )


def _password() -> str:
    """Make up a password of letters and digits: what is typed from a list, and no formula to a spreadsheet."""
    return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(PASSWORD))


ROUTES = (
    Route(
        "POST",
        "/users:import",
        import_,
        "Make many accounts of a file, or say what would be made",
        Relation.PLATFORM,
        USERS_WRITE,
        body=PeopleImport,
        reply=PeopleImported,
        bucket="change",
        recent=True,
    ),
)
