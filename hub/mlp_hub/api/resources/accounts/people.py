"""People who are brought in many at a time, from a file that a spreadsheet wrote."""

from __future__ import annotations

import asyncio
import secrets
import string
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

from mlp_api.accounts.people import ImportedPerson, PeopleImport, PeopleImported
from mlp_api.localized import Text
from mlp_hub.api.auth.scopes import USERS_WRITE
from mlp_hub.api.edge.call import Call
from mlp_hub.api.hubclient import HubAccount
from mlp_hub.api.routes import Relation, Route
from mlp_hub.domain.errors import Reason, Refused, Unavailable
from mlp_hub.domain.tenants.people_file import PersonLine, read_people
from mlp_hub.domain.tenants.tenant import DEFAULT_TENANT
from mlp_language.message import NOTHING, Message, msg

AT_ONCE = 50
"""Safety: lines that one request does: the answer is awaited, and others wait behind it."""
State = Literal["new", "joins", "there", "made", "joined", "refused"]
PASSWORD = 14
"""Safety: characters of a password that is made up, about 80 bits."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """Plan for one line."""

    person: PersonLine
    state: State
    note: Message = NOTHING


async def import_(call: Call) -> PeopleImported:
    """Make accounts that are let in, or say what would be made: an account each with a password that is shown once.

    Who is there already is put into the team, and no more: no password and no right is changed. One line's refusal stops no
    other, and the same file again does what is left. Without `dry_run` at most 50 lines are taken. The same request again with the
    same Idempotency-Key has the same answer, passwords included.
    """
    asked: PeopleImport = call.body
    if title := call.platform.login_provider.title:
        raise Refused(
            Reason.WRONG_STATE,
            msg("people use their accounts of {title} here; accounts cannot be made by hand", title=title),
        )
    people = read_people(asked.csv)
    if not asked.dry_run and len(people) > AT_ONCE:
        raise Refused(
            Reason.INVALID,
            msg("{n} lines are too many at once; send at most {most}", n=len(people), most=AT_ONCE),
        )
    teams = {tenant.name for tenant in await call.platform.tenants.list()}
    plans = await _planned(call, people, teams)
    imported = list(map(_to_wire, plans)) if asked.dry_run else await _done(call, plans)
    refused = sum(one.state == "refused" for one in imported)
    return PeopleImported(
        people=imported,
        done=len(imported) - refused - sum(one.state == "there" for one in imported),
        refused=refused,
    )


async def _planned(call: Call, people: Sequence[PersonLine], teams: set[str]) -> list[_Plan]:
    good = [one.name for one in people if not one.wrong]
    accounts = await call.service.hub.find_accounts(good)
    places = {name: one.tenants for name, one in (await call.platform.users.among(good)).items()}
    return [_plan(one, accounts.get(one.name), teams, places) for one in people]


def _plan(  # noqa: PLR0911 - each a way in which a line may stand
    one: PersonLine, account: HubAccount | None, teams: set[str], places: Mapping[str, Sequence[str]]
) -> _Plan:
    if one.wrong:
        return _Plan(one, "refused", one.wrong)
    if one.team and one.team not in teams:
        return _Plan(one, "refused", msg("team {team} does not exist; make it first", team=one.team))
    if account is None:
        return _Plan(one, "new")
    if not account.authorized:
        return _Plan(
            one,
            "refused",
            msg("{name} has an account that is not approved; approve or refuse it first", name=one.name),
        )
    if one.admin and not account.admin:
        return _Plan(
            one,
            "refused",
            msg("{name} exists and is not an administrator; change that on the page of users", name=one.name),
        )
    if one.team in {"", DEFAULT_TENANT} or one.team in places.get(one.name, ()):
        return _Plan(one, "there")
    return _Plan(one, "joins")


async def _done(call: Call, plans: Sequence[_Plan]) -> list[ImportedPerson]:
    """Carry out the plans of all lines together.

    So the database and the hub are waited for only a few times in all.
    """
    new = [plan.person for plan in plans if plan.state == "new"]
    refused = {one.name: why for one, why in zip(new, await _each(call, _cleared, new), strict=True) if why}
    passwords = {one.name: _password() for one in new if one.name not in refused}
    if passwords:
        refused |= await _made(call, passwords)
    made = [one for one in new if one.name not in refused]
    joining = [plan.person for plan in plans if plan.state == "joins"]
    notes = dict(zip([one.name for one in made], await _each(call, _admitted, made), strict=True))
    refused |= {
        one.name: why for one, why in zip(joining, await _each(call, _joined, joining), strict=True) if why
    }

    def imported(plan: _Plan) -> ImportedPerson:
        name = plan.person.name
        if plan.state not in ("new", "joins"):
            return _to_wire(plan)
        if name in refused:
            return _to_wire(replace(plan, state="refused", note=refused[name].message))
        if plan.state == "joins":
            return _to_wire(replace(plan, state="joined"))
        note = notes[name]  # the account is there, and its password must not be lost
        return _to_wire(replace(plan, state="made", note=note.message if note else NOTHING), passwords[name])

    return list(map(imported, plans))


async def _made(call: Call, passwords: Mapping[str, str]) -> dict[str, Refused]:
    """Make accounts that are let in; return why some are not. First it is written down by whom, and afterwards what failed."""
    users, actor = call.platform.users, call.principal.name
    await users.note_all("user.approve", dict.fromkeys(passwords, NOTHING), actor=actor)
    try:
        refused = await call.service.hub.make_accounts(passwords)
    except Unavailable as error:
        with suppress(Unavailable):
            await users.note_all("user.approve", dict.fromkeys(passwords, error.message), actor=actor)
        raise
    failed = {name: why.message for name, why in refused.items()}
    if failed:
        await users.note_all("user.approve", failed, actor=actor)
    return refused


async def _each(
    call: Call, work: Callable[[Call, PersonLine], Awaitable[None]], people: Sequence[PersonLine]
) -> list[Refused | None]:
    """Do it for all of them at once; return each one's refusal: another line is not this one's fault."""

    async def one_of(person: PersonLine) -> Refused | None:
        try:
            await work(call, person)
        except Refused as refused:
            return refused
        return None

    return await asyncio.gather(*map(one_of, people))


async def _cleared(call: Call, one: PersonLine) -> None:
    """Take away what a former owner of the name left; as with one that is approved, whenever this is killed."""
    await call.platform.offboarding.come_back(one.name)
    standing = (await call.platform.users.among([one.name]))[one.name]
    if not standing.known and standing.placed:  # of a namesake who was never let in
        await call.platform.tenants.forget_user(one.name, actor=call.principal.name)
    await call.service.applications.forget(one.name)


async def _admitted(call: Call, one: PersonLine) -> None:
    """Make a user of a person who now has an account."""
    actor = call.principal.name
    await call.platform.users.ensure(one.name, msg("when approved"))
    if one.admin:  # written down first: of no administrator it is unknown who made them one
        detail: dict[str, object] = {"admin": True, "was": False}
        async with call.platform.users.changing("user.admin", one.name, actor=actor, detail=detail):
            await call.service.hub.set_admin(one.name, True)
    await _joined(call, one)


async def _joined(call: Call, one: PersonLine) -> None:
    if one.team and one.team != DEFAULT_TENANT:
        await call.platform.tenants.set_member(one.team, one.name, actor=call.principal.name)


def _to_wire(plan: _Plan, password: str | None = None) -> ImportedPerson:
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
    """Return a random password of letters and digits.

    It can be typed from a list, and a spreadsheet does not take it for a formula.
    """
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
        idempotent=True,
    ),
)
