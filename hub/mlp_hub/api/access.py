"""Access of callers to routes: the documentation's matrix, which tests compare with the gatekeeper.

A kind of caller is a row: the scopes of its token, and its relation to the object of the path where
the caller is at home there.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlp_hub.api.auth import scopes
from mlp_hub.api.resources.teams.services import SCOPES as SERVICE_ACCOUNT_SCOPES
from mlp_hub.api.routes import Relation, Route

_OWN = frozenset({Relation.SELF, Relation.OWNED, Relation.VISITOR, Relation.MEMBER})
_ALL = frozenset(Relation)


@dataclass(frozen=True, slots=True)
class Caller:
    """Kind of caller: the scopes of its token (`held`), and its relations to the object."""

    name: str
    meaning: str
    held: tuple[str, ...] = ()
    stands: frozenset[Relation] = frozenset()
    own_routes: bool = False  # gets to those that take a job's token, and to no other

    def may(self, route: Route) -> bool:
        """Whether it gets through to the route's handler."""
        if route.relation is Relation.PUBLIC:
            return True
        if self.own_routes:
            return route.job_token
        if route.title in DECIDES and not DECIDES[route.title].count(self.name):
            return False
        in_scope = route.scope in self.held if route.scope is not None else bool(self.held)
        return in_scope and (route.relation is Relation.ANYBODY or route.relation in self.stands)


CALLERS = (
    Caller("nobody", "no token, or one that is not known"),
    Caller("user", "the user of the path, a member of its tenant", scopes.USER_SCOPES, _OWN),
    Caller("other", "a user of another tenant, its admin too", scopes.USER_SCOPES),
    Caller(
        "tenant admin",
        "an admin of the tenant of the path, or of that of the object",
        scopes.USER_SCOPES,
        frozenset({Relation.OWNED, Relation.VISITOR, Relation.MEMBER, Relation.TENANT_ADMIN}),
    ),
    Caller("service account", "a tenant's account for programs, at its own", SERVICE_ACCOUNT_SCOPES, _OWN),
    Caller("notebook", "a notebook server's token, at its user's own", scopes.SERVER_SCOPES, _OWN),
    Caller("job", "a job's own token, at that job", own_routes=True),
    Caller("spawner", "the hub's own token", scopes.SPAWNER_SCOPES, _ALL),
    Caller("data", "the token of what holds files", scopes.PART_SCOPES[scopes.DATA], _ALL),
    Caller("gateway", "the token of the gateway to apps", scopes.PART_SCOPES[scopes.PROXY], _ALL),
    Caller("platform admin", "an administrator, at anybody's", scopes.ADMIN_SCOPES, _ALL),
)
"""Every kind. A user whose places follow the groups of the login's provider is a `user` as all others are."""

DECIDES = {
    "PUT /users/{user}:approve": ("tenant admin", "platform admin"),
    "DELETE /users/{user}": ("tenant admin", "platform admin"),
    "GET /users/{user}/token": ("user",),
    "DELETE /users/{user}/token": ("user", "notebook", "service account"),
    "POST /users/{user}/token": (),
    "PUT /users/{user}:token_made": ("spawner",),
    "PUT /users/{user}:token_ended": ("spawner",),
    "PUT /users/{user}:changing": ("spawner",),
    "PUT /users/{user}:standing": ("spawner",),
    "GET /users:working": ("spawner",),
    "GET /users/{user}:token_uses": ("spawner",),
    "GET /users/{user}:announced": ("spawner",),
    "PUT /stored:open": ("data",),
    "GET /session": ("user", "other", "tenant admin", "service account", "notebook", "platform admin"),
    "GET /offer": ("user", "other", "tenant admin", "service account", "notebook", "platform admin"),
}
"""Callers of routes whose handler checks more than the scope and the relation.

An admin of the tenant that a sign-up applies for decides on it. Nobody takes or ends a token in
somebody else's name, except with the operator's command. Only the hub reports its knowledge of
people. Only the part that holds files gets the address of a source's files. Services are not
people.
"""
