"""`mlp team`: places in teams and requests for more quota; words after the verb, and what is shown of the answers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mlp.client.rest import Client
from mlp.errors import MLPError, NotAllowed, Refused
from mlp.grammar.job_options import as_sent
from mlp.grammar.team_options import AMOUNTS
from mlp.language import say
from mlp.rendering import tables
from mlp.rendering.format import amount, amounts_of, clock_time, file_size, memory
from mlp.rendering.words import sentences

Json = dict[str, Any]


@contextlib.contextmanager
def naming_own(client: Client, tenant: str | None) -> Iterator[None]:
    """Add the option `--tenant` and the user's teams to the refusal of an act on the whole hub."""
    try:
        yield
    except NotAllowed as error:
        if tenant:
            raise
        own: list[str] = []
        with contextlib.suppress(MLPError):
            own = [str(each["tenant"]["name"]) for each in client.quota()]
        if not own:
            raise
        why = say("Without --tenant this is about the whole hub, and only platform administrators may do it.")
        hint = say(
            "Add --tenant NAME for a team that you administer. Your teams: {names}", names=", ".join(own)
        )
        better = Refused(error.reason, sentences(why, hint))
        better.request_id = error.request_id
        raise better from None


def team(client: Client, names: Sequence[str], given: Mapping[str, Any]) -> Any:
    """Do one of its acts."""
    act, rest = names[0] if names else "ls", list(names[1:])
    if act == "ls":
        return _teams(client.teams())
    return {
        "join": _join,
        "unjoin": _unjoin,
        "ask": _ask,
        "requests": _requests,
        "withdraw": _withdraw,
        "caps": _caps,
        "cap": _cap,
        "joins": _joins,
        "approve": _approve,
        "decline": _decline,
    }[act](client, rest, given)


def _teams(found: Json) -> Any:
    if found["managed_by"]:
        line = say("The groups of {provider} decide who is in which team.", provider=found["managed_by"])
        return tables.Sentences([line], found)
    columns = (say("Team"), say("Description"), say("Asked"))
    rows = [(t["tenant"], t["description"], clock_time(t["asked_at"]) or "") for t in found["teams"]]
    return tables.Table(
        columns, rows, found["teams"], empty=say("No team accepts requests to join from you.")
    )


def _join(client: Client, names: list[str], given: Mapping[str, Any]) -> tables.Sentences:
    made = client.ask_team({"tenant": names[0], "note": given.get("note", "")})
    return tables.Sentences([say("The admins of {tenant} were asked.", tenant=made["tenant"])], made)


def _unjoin(client: Client, names: list[str], given: Mapping[str, Any]) -> tables.Sentences:
    del given
    gone = client.unask_team(names[0])
    return tables.Sentences([say("Request to {tenant} taken back.", tenant=gone["tenant"])], gone)


def _ask(client: Client, names: list[str], given: Mapping[str, Any]) -> tables.Sentences:
    asked = {
        "reason": given["reason"],
        **as_sent({o.name: given[o.name] for o in AMOUNTS if o.name in given}),
    }
    made = client.ask_quota(names[0], asked)
    return tables.Sentences(
        [say("The platform's admins were asked for {amounts}.", amounts=_amounts(made))], made
    )


def _requests(client: Client, names: list[str], given: Mapping[str, Any]) -> Any:
    del given
    found = client.quota_requests(names[0])
    columns = (say("Id"), say("Asked for"), say("State"), say("Purpose"), say("Answer"))
    rows = [(r["id"], _amounts(r), _STATES[r["state"]](), r["reason"], _answer(r)) for r in found]
    return tables.Table(columns, rows, found, empty=say("No requests yet."))


def _withdraw(client: Client, names: list[str], given: Mapping[str, Any]) -> tables.Sentences:
    del given
    gone = client.withdraw_quota(names[0], names[1])
    return tables.Sentences([say("The request was taken back.")], gone)


def _caps(client: Client, names: list[str], given: Mapping[str, Any]) -> Any:
    del given
    return _shown_caps(client.caps(names[0]))


def _cap(client: Client, names: list[str], given: Mapping[str, Any]) -> Any:
    asked = {key: given[key] for key in ("user", "cpu", "gpu", "jobs") if key in given}
    return _shown_caps(client.set_cap(names[0], asked))


def _shown_caps(found: list[Json]) -> Any:
    columns = (say("Member"), say("Cores"), say("Devices"), say("Jobs at once"))
    rows = [
        (
            c["user"] or say("each other"),
            *("" if c[k] is None else amount(c[k]) for k in ("cpu", "gpu", "jobs")),
        )
        for c in found
    ]
    return tables.Table(columns, rows, found, empty=say("Each member can hold as much as the team."))


def _joins(client: Client, names: list[str], given: Mapping[str, Any]) -> Any:
    del given
    found = client.joins(names[0])
    columns = (say("User"), say("Asked"), say("Message"))
    rows = [(j["user"], clock_time(j["asked_at"]), j["note"]) for j in found]
    return tables.Table(columns, rows, found, empty=say("No open requests now."))


def _approve(client: Client, names: list[str], given: Mapping[str, Any]) -> tables.Sentences:
    del given
    tenant, *users = names
    made = [client.answer_join(tenant, user, "approve") for user in users]
    lines = [say("{user} is a member of {tenant} now.", user=m["user"], tenant=tenant) for m in made]
    return tables.Sentences(lines, made)


def _decline(client: Client, names: list[str], given: Mapping[str, Any]) -> tables.Sentences:
    del given
    tenant, *users = names
    gone = [client.answer_join(tenant, user, "decline") for user in users]
    return tables.Sentences([say("{user} was declined.", user=user) for user in users], gone)


_STATES = {
    "open": lambda: say("waits for an answer"),
    "accepted": lambda: say("accepted"),
    "declined": lambda: say("declined"),
    "withdrawn": lambda: say("taken back"),
}


def _answer(request: Json) -> str:
    if not request["decided_by"] or request["state"] == "withdrawn":
        return ""
    if not request["word"]:
        return str(request["decided_by"])
    return say("{what}: {why}", what=request["decided_by"], why=request["word"])


def _amounts(of: Json) -> str:
    found = [say("{amount} cpu", amount=amount(of["cpu"]))] if of["cpu"] is not None else []
    found += [say("{amount} gpu", amount=amount(of["gpu"]))] if of["gpu"] is not None else []
    found += [memory(of["ram"])] if of["ram"] is not None else []
    found += [say("{amount} of storage", amount=file_size(of["rom"]))] if of["rom"] is not None else []
    found += amounts_of(of)
    return say(", ").join(found)
