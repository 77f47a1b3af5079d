"""Every route by every kind of caller: who gets in, and that the others learn nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from mlp_api.accounts.idle_servers import IdleServerPolicySet, ServerKeep, ServerUseReport
from mlp_api.accounts.people import PeopleImport
from mlp_api.accounts.users import (
    AccountChange,
    AdminRight,
    LoginStanding,
    PasswordReset,
    Preferences,
    ServiceCreate,
    ServiceRotate,
    TokenAsk,
    TokenCreate,
    TokenEnded,
    TokenMade,
    UserClosed,
)
from mlp_api.apps.app_gate import AppAccessSet, AppAdmit, AppEnter, AppKeyCreate
from mlp_api.apps.apps import AppCreate, AppScale
from mlp_api.jobs.idle_jobs import IdleJobPolicySet, JobKeep
from mlp_api.jobs.jobs import Heartbeat, JobCreate, JobNote, JobUpdate, Resubmit
from mlp_api.jobs.metrics import MetricBatch
from mlp_api.jobs.runs import RunsAct, RunUpdate
from mlp_api.jobs.runtimes import RuntimeUpdate
from mlp_api.jobs.sweeps import SweepCreate, SweepExtend
from mlp_api.platform.accounting import BudgetSet, Prices
from mlp_api.platform.alerts import SilenceCreate, TeamSilenceCreate
from mlp_api.platform.announcements import AnnouncementCreate
from mlp_api.platform.nodes import NodeDrainSet
from mlp_api.platform.notices import ChannelTest, NotificationsSet
from mlp_api.stored.datasets import DatasetCreate, DatasetHeartbeat
from mlp_api.stored.environments import EnvironmentCreate
from mlp_api.stored.models import ModelCreate, ModelStageChange
from mlp_api.stored.secrets import SecretSet
from mlp_api.teams.bookings import BookingCreate
from mlp_api.teams.teams import JoinAsk, MemberCapSet, QuotaAnswer, QuotaAsk
from mlp_api.types import MemberUpdate, TenantUpdate
from mlp_hub.api.auth import scopes
from mlp_hub.api.resources.apps.app_gate import tenant_usage, usage
from mlp_hub.api.routes import Relation, Route
from mlp_hub.api.table import all_routes
from support.rigs.api_rig import ONE_ID, Answer, ApiRig, a_model, a_silence, a_window, an_announcement

ROUTES = all_routes()
THERE = {
    "user": "ann",
    "job": "digits",
    "model": "net",
    "tenant": "red",
    "booking": "night",
    "request": "asked",
    "team": "open",
    "runtime": "mine",
    "token": "a-ann-token",
    "service": "ci",
    "dataset": "pets",
    "app": "site",
    "sweep": "search",
    "key": "mine",
    "secret": "mine",
    "node": "n1",
    "announcement": "1",
    "silence": "1",
    "environment": "tools",
}
NEEDS = {
    "/users/{user}/jobs/{job}/files/content": "?path=ckpt/last.pt",
    "/users/{user}/models/{model}/files/content": "?path=last.pt",
}
"""What a route's query must say besides."""
MINUTES = 600
_numbers = itertools.count()


def each(routes: Iterable[Route]) -> pytest.MarkDecorator:
    """Run a test for each of the routes."""
    return pytest.mark.parametrize("route", list(routes), ids=attrgetter("title"))


def path_of(route: Route, values: Mapping[str, str]) -> str:
    path = route.path
    for name, value in values.items():
        path = path.replace("{" + name + "}", value)
    return path + NEEDS.get(route.path, "")


def ask(rig: ApiRig, route: Route, token: str | None, values: Mapping[str, str], body: Any = None) -> Answer:
    """Ask for a route, a WebSocket too: 101 when that opened. All requests have one id, so that answers can be compared."""
    path = path_of(route, values)
    if not route.socket:
        return rig.ask(route.method, path, body, token=token, headers=ONE_ID)
    try:
        with rig.socket(path, token=token, headers=ONE_ID):
            return Answer(101, {}, b"{}")
    except InvalidStatus as err:
        headers = {k.lower(): v for k, v in err.response.headers.raw_items()}
        return Answer(err.response.status_code, headers, err.response.body or b"")


def outcome(rig: ApiRig, route: Route, token: str | None, values: Mapping[str, str]) -> tuple[int, str]:
    """Ask with a body that is never valid, so that no body changes anything; give (status, reason)."""
    answer = ask(rig, route, token, values, {"\0": 1} if route.body is not None else None)
    return answer.status, answer.json.get("reason", "") if answer.status == 403 else ""


def fresh(rig: ApiRig, route: Route) -> dict[str, str]:
    """Name objects that are there: ann's and red's, but new ones where the route would change them."""
    if route.method == "GET" or route.body is not None:
        return THERE
    name = f"spare{next(_numbers)}"
    if "model" in route.params:
        a_model(rig, name)
        return {**THERE, "model": name}
    if "job" in route.params:
        rig.job("ann", name, rig.ann, cpu=0.1, env={"SIM_DURATION": str(MINUTES)})
        return {**THERE, "job": name}
    if "dataset" in route.params:
        rig.dataset("ann", name, rig.ann)
        return {**THERE, "dataset": name}
    if "app" in route.params:
        rig.app("ann", name, rig.ann)
        if "key" in route.params:
            rig.key("ann", name, THERE["key"], rig.ann)
        return {**THERE, "app": name}
    if "sweep" in route.params:
        rig.sweep("ann", name, rig.ann)
        return {**THERE, "sweep": name}
    if route.path.endswith("/budget"):
        rig.budget(THERE["tenant"])
        return THERE
    if "secret" in route.params:
        whose = f"/tenants/{THERE['tenant']}" if "tenant" in route.params else f"/users/{THERE['user']}"
        kept = rig.ask("PUT", f"{whose}/secrets/mine", {"keys": {"a": "b"}}, token=rig.root_user)
        assert kept.status == 200, kept.body
        return THERE
    if "announcement" in route.params:
        told = rig.ask("POST", path_of_announcements(route), an_announcement(), token=rig.root_user)
        assert told.status == 201, told.body
        return {**THERE, "announcement": str(told.json["id"])}
    if "silence" in route.params:
        return {**THERE, "silence": rig.silence(THERE["tenant"], rig.rita)}
    if "team" in route.params:
        rig.asks(name, "ann", rig.ann)
        return {**THERE, "team": name}
    if "joins" in route.path:
        rig.hub.user(name, f"{name}-token")
        rig.asks(name, name, f"{name}-token")
        return {**THERE, "tenant": name, "user": name}
    if "environment" in route.params:
        rig.environment(name)
        return {**THERE, "environment": name}
    if "tenant" in route.params:
        rig.hub.user(name, f"{name}-token")
        rig.tenant(name, "rita", members=("ann", name))
        if "request" in route.params:
            return {**THERE, "tenant": name, "user": name, "request": rig.asks_for_more(name)}
        if "booking" in route.params:
            made = rig.ask("POST", f"/tenants/{name}/bookings", a_window("night"), token=rig.root_user)
            assert made.status == 201, made.body
        if "service" in route.params:
            made = rig.ask("POST", f"/tenants/{name}/services", {"name": name}, token=rig.root_user)
            assert made.status == 201, made.body
            return {**THERE, "tenant": name, "user": name, "service": name}
        if "runtime" in route.params:
            made = rig.ask("PUT", f"/tenants/{name}/runtimes/mine", {"title": "Mine"}, token=rig.root_user)
            assert made.status == 200, made.body
        return {**THERE, "tenant": name, "user": name}
    return THERE


def path_of_announcements(route: Route) -> str:
    return f"/tenants/{THERE['tenant']}/announcements" if "tenant" in route.params else "/announcements"


def reached(route: Route, status: int, reason: str) -> bool:
    """Whether the handler was reached, or the validation of the body before it, and it found the object."""
    if route.method == "GET":
        if (status, reason) == (403, "WrongState"):
            return route.handler in (usage, tenant_usage)  # nothing is counted here, where no proxy is
        return status == (101 if route.socket else 200)
    if route.body is not None:
        return (status, reason) == (403, "Invalid")
    return status in (200, 201) or (status == 403 and reason in ("Conflict", "WrongState"))


def a_site(rig: ApiRig, route: Route) -> None:
    """Let ann have an app or a sweep where one is asked for: who shuts her out takes it away."""
    if "app" in route.params:
        rig.site("ann", rig.ann)
    if "sweep" in route.params:
        rig.search("ann", rig.ann)
    if route.path == "/prices":
        rig.price_list()
    if route.path.endswith("/budget"):
        rig.budget("red")


@pytest.fixture(autouse=True)
def _as_it_was(rig: ApiRig, request: pytest.FixtureRequest) -> Iterator[None]:
    """Begin each test with what its route asks for, and end it with all people let in."""
    route = getattr(request.node, "callspec", None) and request.node.callspec.params.get("route")
    if route is not None:
        a_site(rig, route)
    with rig.people_as_now():
        yield


def each_of(rig: ApiRig, route: Route, callers: Iterable[str]) -> Iterator[str]:
    """Give callers of one route after each other, each with all as it was.

    What takes milliseconds is no test of its own: thousands of them took longer to list than to run.
    """
    for who in callers:
        a_site(rig, route)
        with rig.people_as_now():
            yield who


PRIVATE = [r for r in ROUTES if r.relation is not Relation.PUBLIC]
PUBLIC = [r for r in ROUTES if r.relation is Relation.PUBLIC]
RELATED = [r for r in PRIVATE if r.relation is not Relation.ANYBODY]


@each(PRIVATE)
def test_without_a_token_that_is_known_nothing_private_answers(rig: ApiRig, route: Route) -> None:
    assert ask(rig, route, None, THERE).status == 401
    assert ask(rig, route, "not-a-token", THERE).status == 401


@each(PUBLIC)
def test_public_routes_need_no_token(rig: ApiRig, route: Route) -> None:
    assert reached(route, *outcome(rig, route, None, THERE))
    assert reached(route, *outcome(rig, route, "not-a-token", THERE))


@each(r for r in ROUTES if r.scope is not None)
def test_a_token_without_the_scope_is_refused_before_anything_is_looked_up(rig: ApiRig, route: Route) -> None:
    others = tuple(s for s in scopes.SCOPES if s != route.scope)
    token = rig.hub.user("ann", f"without-{route.scope}", held=(scopes.ACCESS, *others))
    answer = ask(rig, route, token, THERE)
    assert answer.status == 403
    assert answer.json["reason"] == "Forbidden"
    assert str(route.scope) in answer.json["msg"]


@each(PRIVATE)
def test_a_token_that_was_made_for_another_service_is_refused(rig: ApiRig, route: Route) -> None:
    token = rig.hub.user("ann", "others-token", held=("access:services!service=other", *scopes.ADMIN_SCOPES))
    assert outcome(rig, route, token, THERE) == (403, "Forbidden")


# who gets in, by relation: owner, somebody else, admin of the owner's tenant, admin of another tenant
PEOPLE = ("ann", "bob", "rita", "blue")
DECIDED_LATER = {"PUT /users/{user}:approve", "DELETE /users/{user}", "GET /metrics"}
"""Open to anybody by the table. The handler knows who may decide on a sign-up, and ann's was decided on long ago; metrics need a scope of no user."""
ALLOWED: dict[Relation, set[str]] = {
    Relation.ANYBODY: set(PEOPLE),
    Relation.SELF: {"ann"},
    Relation.OWNED: {"ann", "rita"},
    Relation.VISITOR: {"ann", "rita"},
    Relation.MEMBER: {"ann", "rita"},
    Relation.TENANT_ADMIN: {"rita"},
    Relation.PLATFORM: set(),
}


@each(r for r in PRIVATE if r.title not in DECIDED_LATER and ALLOWED[r.relation])
def test_callers_with_the_required_relation_get_in(rig: ApiRig, route: Route) -> None:
    for who in each_of(rig, route, [who for who in PEOPLE if who in ALLOWED[route.relation]]):
        status, reason = outcome(rig, route, f"{who}-token", fresh(rig, route))
        assert reached(route, status, reason), (who, status, reason)


@each(r for r in PRIVATE if r.relation is not Relation.ANYBODY or r.title in DECIDED_LATER)
def test_callers_without_the_required_relation_stay_out(rig: ApiRig, route: Route) -> None:
    allowed = set() if route.title in DECIDED_LATER else ALLOWED[route.relation]
    for who in each_of(rig, route, [who for who in PEOPLE if who not in allowed]):
        expected = "NotFound" if route.params and route.scope in (None, *scopes.USER_SCOPES) else "Forbidden"
        if route.relation is Relation.TENANT_ADMIN and who == "ann":
            expected = "Forbidden"  # a member may know that the tenant is there
        assert outcome(rig, route, f"{who}-token", fresh(rig, route)) == (403, expected), who


OWN_ONLY = {"GET /users/{user}/token", "DELETE /users/{user}/token"}
"""Not for a platform admin either: nobody becomes somebody else."""
HUBS_ONLY = {"GET /users:working", "GET /users/{user}:token_uses", "GET /users/{user}:announced"}
"""Nor these, which the hub asks with its own token."""


@each(r for r in PRIVATE if r.title not in OWN_ONLY | HUBS_ONLY)
def test_a_platform_admin_gets_in_everywhere(rig: ApiRig, route: Route) -> None:
    status, reason = outcome(rig, route, rig.root_user, fresh(rig, route))
    assert reached(route, status, reason), (status, reason)


@each(r for r in PRIVATE if r.title in HUBS_ONLY)
def test_routes_of_the_hub_are_closed_to_everybody_else(rig: ApiRig, route: Route) -> None:
    assert outcome(rig, route, rig.root_user, THERE) == (403, "Forbidden")
    assert ask(rig, route, rig.spawner, THERE).status == 200


@each(r for r in PRIVATE if r.title in OWN_ONLY)
def test_a_platform_admin_is_nobody_else(rig: ApiRig, route: Route) -> None:
    assert outcome(rig, route, rig.root_user, THERE) == (403, "Forbidden")


@each(RELATED)
def test_a_notebooks_token_reaches_its_owners_jobs_only_even_an_admins(rig: ApiRig, route: Route) -> None:
    token = rig.hub.user("admin", "admins-notebook", held=scopes.SERVER_SCOPES)
    assert outcome(rig, route, token, THERE)[0] == 403


@pytest.fixture(scope="module")
def jobs_own(rig: ApiRig) -> str:
    """Give the token of ann's job digits."""
    return rig.job_token(rig.ask("GET", "/users/ann/jobs/digits", token=rig.ann).json["uid"])


@each(r for r in PRIVATE if r.job_token)
def test_a_jobs_token_reports_for_its_own_job_and_no_other(rig: ApiRig, route: Route, jobs_own: str) -> None:
    assert reached(route, *outcome(rig, route, jobs_own, THERE))
    for values in ({"job": "other"}, {"user": "bob"}):
        assert outcome(rig, route, jobs_own, {**THERE, **values}) == (403, "NotFound")
    assert not any(jobs_own in asked for asked in rig.hub.requests), "the hub was asked about it"


@each(r for r in PRIVATE if not r.job_token)
def test_a_jobs_token_does_nothing_else(rig: ApiRig, route: Route, jobs_own: str) -> None:
    assert outcome(rig, route, jobs_own, THERE) == (403, "Forbidden")
    assert not any(jobs_own in asked for asked in rig.hub.requests), "the hub was asked about it"


@each(r for r in RELATED if r.scope in (None, *scopes.SPAWNER_SCOPES) and r.title not in OWN_ONLY)
def test_the_spawners_token_reaches_the_ledger_and_languages_and_reads_tenants(
    rig: ApiRig, route: Route
) -> None:
    status, reason = outcome(rig, route, rig.spawner, fresh(rig, route))
    assert reached(route, status, reason), (status, reason)


@each(r for r in RELATED if r.scope not in (None, *scopes.SPAWNER_SCOPES))
def test_the_spawners_token_does_nothing_else(rig: ApiRig, route: Route) -> None:
    assert outcome(rig, route, rig.spawner, THERE) == (403, "Forbidden")


@each(r for r in RELATED if r.title not in OWN_ONLY)
def test_the_tokens_of_the_platforms_parts_reach_their_own_routes_and_nothing_else(
    rig: ApiRig, route: Route
) -> None:
    for part in each_of(rig, route, scopes.PART_SCOPES):
        token, held = f"{part}-token", scopes.PART_SCOPES[part]
        if route.scope is None or route.scope in held:
            assert reached(route, *outcome(rig, route, token, fresh(rig, route))), part
        else:
            assert outcome(rig, route, token, THERE) == (403, "Forbidden"), part


VALID: dict[Any, dict[str, Any]] = {
    UserClosed: {},
    EnvironmentCreate: {"name": "theirs", "requirements": "iniconfig"},
    SecretSet: {"keys": {"a": "b"}},
    NotificationsSet: {"browser": ["failed"]},
    ChannelTest: {"channel": "team"},
    MetricBatch: {"source": "0.0.a", "points": []},
    Heartbeat: {"state": "running", "progress": 1},
    Resubmit: {"workers": 1},
    JobUpdate: {"priority": "low"},
    QuotaAsk: {"cpu": 10**6, "reason": "theirs"},
    QuotaAnswer: {"word": "theirs"},
    MemberCapSet: {"jobs": 1},
    IdleServerPolicySet: {"after_minutes": 5, "grace_minutes": 5},
    ServerUseReport: {"idle_s": 1e6},
    ServerKeep: {"hours": 1},
    IdleJobPolicySet: {"after_minutes": 5, "grace_minutes": 5},
    JobKeep: {"hours": 1},
    BudgetSet: {"amount": "1000"},
    JoinAsk: {"tenant": "theirs"},
    JobCreate: {"name": "theirs", "code": "x"},
    SweepCreate: {"name": "theirs", "code": "x", "grid": {"lr": [0.1]}},
    SweepExtend: {"trials": 1},
    DatasetCreate: {"name": "theirs", "size": 1},
    DatasetHeartbeat: {"state": "error", "progress": 1},
    MemberUpdate: {"role": "admin"},
    ModelCreate: {"name": "theirs", "src": "jobs/digits/ckpt"},
    ModelStageChange: {"stage": "production"},
    RunUpdate: {"note": "mine"},
    JobNote: {"note": "mine"},
    RunsAct: {"act": "cancel", "runs": ["theirs"]},
    TenantUpdate: {"weight": 9},
    TokenCreate: {"note": "theirs"},
    TokenAsk: {"note": "theirs"},
    ServiceCreate: {"name": "theirs"},
    ServiceRotate: {"grace": 1},
    LoginStanding: {"groups": ["/ml/red"]},
    TokenEnded: {"actor": "bob", "note": "theirs", "token": "a1"},
    AccountChange: {"actor": "ann", "action": "user.logout"},
    TokenMade: {"actor": "bob", "note": "theirs", "scopes": "", "expires": "never"},
    PasswordReset: {"password": "another long one"},
    AdminRight: {"admin": True},
    AppCreate: {"name": "theirs", "model_name": "net"},
    AppScale: {"replicas": 2},
    AppKeyCreate: {"name": "theirs"},
    AppAccessSet: {"access": "private"},
    AppAdmit: {"kind": "token", "secret": "x", "user": "ann", "app": "site"},
    AppEnter: {"label": "a-site--x", "code": "x"},
    BookingCreate: a_window("theirs"),
    RuntimeUpdate: {"title": "Theirs"},
    Preferences: {"language": "en"},
    AnnouncementCreate: an_announcement(),
    SilenceCreate: a_silence(tenant="red"),
    TeamSilenceCreate: a_silence(),
    Prices: {"currency": "EUR", "periods": [{"begins": "2031-01-01", "core_hour": "0.05"}]},
    NodeDrainSet: {"reason": "theirs"},
    PeopleImport: {"csv": "theirs"},
}
"""A body that each of these routes would take from who may; a new route's is added here."""


def compared(there: Answer, missing: Answer, word: str, absent: str) -> None:
    """Check that two refusals differ in the name that was asked for and in nothing else."""
    assert there.status == missing.status == 403
    assert there.body == missing.body.replace(absent.encode(), word.encode())
    assert [(k, v) for k, v in there.headers.items() if k != "date"] == [
        (k, v) for k, v in missing.headers.items() if k != "date"
    ]


@each(r for r in ROUTES if "job" in r.params)
@pytest.mark.parametrize("who", ["bob-token", "blue-token", "notebook-of-bob"])
def test_anothers_job_answers_byte_for_byte_as_one_that_is_not_there(
    rig: ApiRig, route: Route, who: str
) -> None:
    rig.hub.user("bob", "notebook-of-bob", held=scopes.SERVER_SCOPES)
    body = None if route.body is None else VALID[route.body]
    there = ask(rig, route, who, THERE, body)
    compared(there, ask(rig, route, who, {**THERE, "job": "digitz"}, body), "digits", "digitz")
    # as their own that is not there
    own = ask(rig, route, "bob-token", {**THERE, "user": "bob"}, body)
    if there.json["reason"] == "NotFound":
        assert own.body == there.body
    else:  # refused for the scope, whatever it is about
        assert (there.json["reason"], own.json["reason"]) == ("Forbidden", "Forbidden")
        assert route.relation is Relation.PLATFORM


@each(r for r in ROUTES if "model" in r.params)
@pytest.mark.parametrize("who", ["bob-token", "blue-token"])
def test_anothers_model_answers_byte_for_byte_as_one_that_is_not_there(
    rig: ApiRig, route: Route, who: str
) -> None:
    body = None if route.body is None else VALID[route.body]
    there = ask(rig, route, who, THERE, body)
    compared(there, ask(rig, route, who, {**THERE, "model": "nex"}, body), "net", "nex")
    assert there.body == ask(rig, route, "bob-token", {**THERE, "user": "bob"}, body).body


@each(r for r in ROUTES if "dataset" in r.params)
@pytest.mark.parametrize("who", ["bob-token", "blue-token"])
def test_anothers_dataset_answers_as_one_that_is_not_there(rig: ApiRig, route: Route, who: str) -> None:
    body = None if route.body is None else VALID[route.body]
    there = ask(rig, route, who, THERE, body)
    compared(there, ask(rig, route, who, {**THERE, "dataset": "petz"}, body), "pets", "petz")


@each(r for r in ROUTES if "app" in r.params)
@pytest.mark.parametrize("who", ["bob-token", "blue-token"])
def test_anothers_app_answers_as_one_that_is_not_there(rig: ApiRig, route: Route, who: str) -> None:
    body = None if route.body is None else VALID[route.body]
    there = ask(rig, route, who, THERE, body)
    compared(there, ask(rig, route, who, {**THERE, "app": "sitz"}, body), "site", "sitz")


@each(r for r in ROUTES if "sweep" in r.params)
@pytest.mark.parametrize("who", ["bob-token", "blue-token"])
def test_anothers_sweep_answers_as_one_that_is_not_there(rig: ApiRig, route: Route, who: str) -> None:
    body = None if route.body is None else VALID[route.body]
    there = ask(rig, route, who, THERE, body)
    compared(there, ask(rig, route, who, {**THERE, "sweep": "searcx"}, body), "search", "searcx")


@each(r for r in ROUTES if "tenant" in r.params)
def test_anothers_tenant_answers_as_one_that_is_not_there(rig: ApiRig, route: Route) -> None:
    body = None if route.body is None else VALID[route.body]
    there = ask(rig, route, rig.bob, THERE, body)
    compared(there, ask(rig, route, rig.bob, {**THERE, "tenant": "ree"}, body), "red", "ree")
    assert there.json["reason"] == "NotFound"


@each(r for r in ROUTES if r.params == ("user",))
def test_a_user_cannot_be_told_from_one_that_is_not_there(rig: ApiRig, route: Route) -> None:
    body = None if route.body is None else VALID[route.body]
    there = ask(rig, route, rig.bob, THERE, body)
    compared(there, ask(rig, route, rig.bob, {**THERE, "user": "anx"}, body), "ann", "anx")


def test_a_tenants_admin_gives_themselves_nothing_and_takes_nobody_from_others(rig: ApiRig) -> None:
    quota = rig.ask("PUT", "/tenants/red", {"cpu": 1000}, token=rig.rita)
    assert (quota.status, quota.json["reason"]) == (403, "NotFound")
    assert rig.ask("POST", "/tenants", {"name": "own"}, token=rig.rita).json["reason"] == "Forbidden"
    assert rig.ask("DELETE", "/tenants/red", token=rig.rita).status == 403
    assert (
        rig.ask("PUT", "/tenants/blue/members/rita", {"role": "admin"}, token=rig.rita).json["reason"]
        == "NotFound"
    )
    moved = rig.ask("PUT", "/tenants/red/members/bob", {"role": "member"}, token=rig.rita)
    assert (moved.status, moved.json["reason"]) == (403, "NotFound")  # as for nobody
    # somebody without a tenant may be taken in, and stays where they were besides: nobody asked them
    rig.hub.user("new", "new-token")
    assert rig.ask("PUT", "/tenants/red/members/new", {"role": "member"}, token=rig.rita).status == 200
    assert rig.ask("GET", "/tenants/default/members/new", token=rig.root_user).json["role"] == "member"
    for who in (rig.ann, rig.notebook):
        assert (
            rig.ask("PUT", "/tenants/red/members/ann", {"role": "admin"}, token=who).json["reason"]
            == "Forbidden"
        )


def test_forged_headers_make_nobody_else_of_a_caller(rig: ApiRig) -> None:
    forged = {
        "X-Forwarded-User": "admin",
        "X-Remote-User": "admin",
        "X-Tenant-ID": "red",
        "X-Forwarded-For": "127.0.0.1",
        "X-Forwarded-Host": "127.0.0.1",
        "X-Original-URL": "/services/mlp/api/v1/health",
        "X-HTTP-Method-Override": "DELETE",
    }
    assert rig.ask("GET", "/auth", token=rig.bob, headers=forged).json == "bob"
    assert rig.ask("GET", "/auth", headers=forged).status == 401
    assert rig.ask("GET", "/users/ann/jobs/digits", token=rig.bob, headers=forged).status == 403
    assert rig.ask("GET", "/tenants/red", token=rig.bob, headers=forged).status == 403
