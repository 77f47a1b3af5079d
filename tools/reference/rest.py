"""The reference page of the REST routes, from the route table and the structs that validate requests."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any

import msgspec

from mlp_api.localized import schema_of
from mlp_hub.api.access import CALLERS
from mlp_hub.api.edge.call import API_BASES
from mlp_hub.api.openapi import RELATIONS
from mlp_hub.api.routes import BODY_LIMIT, Route
from mlp_hub.api.table import all_routes

_ACCESS = """# Who may what

Each [route](rest.md) by each kind of caller; tests ask for all of it. Who is not let in is told the same whether the object is there
or not. A token may hold fewer [scopes](scopes.md) than its owner, and then does less. Who logged in by the company's login, and whose
places follow groups there, is a user as all others are.

"""
_REF = "#/{name}"
_PAGE = """# REST routes

Below `{bases[0]}` (and `{bases[1]}`); the same as OpenAPI 3.1 is at [`/openapi.json`](#get-openapijson). Requests and
answers are JSON. A request carries `Authorization: Bearer TOKEN`, or a browser's session cookie and, to change
something or to get a token, the `X-XSRFToken` header that `/session` gives.

| status | means | body |
|---|---|---|
| 200, 201 | done | as below |
| 401 | the token is missing or not valid | `{{"msg": "...", "detail": {{...}}}}` |
| 403 | refused, nothing was changed | `{{"msg": "...", "detail": {{...}}, "reason": "..."}}`, see [reasons](reasons.md); where it waits, `facts` are what is behind the reason and `Retry-After` says when the same request may succeed |
| 429 | too many requests; `Retry-After` says how long to wait | `{{"msg": "...", "detail": {{...}}}}` |
| 503 | the fault is the server's, or passes by itself | `{{"msg": "...", "detail": {{...}}}}` |

Every refusal is 403; a script tells them apart by `reason`, never by `msg`, which is for people:

| `reason` | what to do | Python (`mlp.errors`) |
|---|---|---|
| `Invalid` | correct the value that `msg` names; the same request is refused again | `InvalidRequest` |
| `WrongState` | wait until the object is in another state, then ask again | `WrongState` |
| `NotFound` | nothing is there, or not for you | `NotThere` |
| `Conflict` | take another name, or another `Idempotency-Key` | `Conflict` |
| `Forbidden` | get the right, or a token with its scope | `NotAllowed` |
| any other | of quotas and queues; with `Retry-After` the same request may succeed later | `Refused` |

`msg` is written in the language of the cookie `mlp-language`, else of `Accept-Language`; times in it are those of the zone
that the header `Time-Zone: Europe/Berlin` names (of a WebSocket: `?zone=Europe/Berlin`), else UTC. `detail` is the same as data:
the sentence in English as `id`, with holes, and `args` that fill them.

A `POST`, and `:resubmit`, may carry `Idempotency-Key: TEXT`: the same key with the same body gives the first answer again, for
a day (what is no job: until the service starts anew), and is refused where that job is deleted meanwhile. Bodies may have {limit:,} bytes where nothing else is said; unknown fields are refused. Units: cpu in cores, gpu in devices, ram
in MiB, rom in bytes, durations in seconds, times in RFC 3339 UTC.

A name that ends in `:word` is an action on the object before it. WebSockets are marked WS; each message is one object.

"""
_TITLES = {
    "session": "Who asks",
    "people": "Many people at once",
    "users": "Users",
    "tokens": "Tokens",
    "identity": "People of a login's provider",
    "services": "Accounts of tenants",
    "tenants": "Tenants and quotas",
    "teams": "What teams and people ask for",
    "bookings": "Booked windows",
    "runtimes": "Runtimes",
    "jobs": "Jobs",
    "runs": "Runs",
    "datasets": "Datasets",
    "secrets": "Secrets",
    "environments": "Environments",
    "notices": "Notices of jobs",
    "idle_servers": "Idle notebook servers",
    "idle_jobs": "Idle GPUs of jobs",
    "announcements": "Announcements",
    "alerts": "Alerts and silences",
    "metrics": "Metrics of jobs",
    "monitoring": "Metrics of the platform",
    "over_time": "Curves over time",
    "models": "Models",
    "sweeps": "Sweeps",
    "apps": "Apps",
    "app_gate": "Ways into apps",
    "streams": "WebSockets",
    "cluster": "Cluster and ledger",
    "accounting": "Use and cost",
    "audit": "Who changed what, and what was decided",
    "whatif": "What-if",
}


def rest_page() -> str:
    """Return the page as Markdown: an overview, each route, then the objects that they take and give."""
    routes = all_routes()
    kinds = [k for r in routes for k in (r.body, r.query, r.reply) if k not in (None, str, dict)]
    _, objects = msgspec.json.schema_components(
        list(dict.fromkeys(kinds)), ref_template=_REF, schema_hook=schema_of
    )
    queries = {r.query.__name__ for r in routes if r.query}
    page = _PAGE.format(bases=API_BASES, limit=BODY_LIMIT)
    page += markdown_table(
        ("method", "path", "scope", "what"),
        ((r.wire_method, f"[`{r.path}`](#{_anchor(r)})", _scope(r), r.summary) for r in routes),
    )
    for module, group in groupby(routes, lambda r: r.handler.__module__.rsplit(".", 1)[-1]):
        if module not in _TITLES:
            raise ValueError(
                f"routes of {module} have no heading; add one to _TITLES of tools/reference/rest.py"
            )
        page += f"\n## {_TITLES[module]}\n"
        page += "".join(_route(r, objects) for r in group)
    page += "\n## Objects\n\nA field with no default is needed in a request; an answer has all fields.\n"
    for name, schema in sorted(objects.items()):
        if name not in queries:
            page += f"\n### {name}\n\n{_prose(schema.get('description', ''))}\n\n{_fields(schema)}"
    return page


def access_page() -> str:
    """Return the matrix of routes and kinds of callers as Markdown."""
    page = _ACCESS + markdown_table(("caller", "is"), ((c.name, c.meaning) for c in CALLERS))
    page += "\n## Routes\n\n"
    rows = ((f"`{r.title}`", *("yes" if c.may(r) else "" for c in CALLERS)) for r in all_routes())
    return page + markdown_table(("route", *(c.name for c in CALLERS)), rows)


def _anchor(route: Route) -> str:
    return re.sub(r"[^a-z0-9_ -]", "", route.title.lower()).replace(" ", "-")


def _scope(route: Route) -> str:
    return f"`{route.scope}`" if route.scope else ""


def _route(route: Route, objects: dict[str, Any]) -> str:
    who = RELATIONS[route.relation] + (" Also the job's own token." if route.job_token else "")
    lines = [f"\n### {route.title}\n", f"{_prose(route.handler.__doc__ or route.summary)}\n"]
    lines.append(f"- For: {who}" + (f" Scope: {_scope(route)}." if route.scope else ""))
    if route.recent:
        lines.append(
            "- From a browser's session: only in the half hour after its person has entered the password."
        )
    if route.body is not None:
        limit = f", at most {route.body_limit:,} bytes" if route.body_limit != BODY_LIMIT else ""
        optional = " (may be left out)" if route.body_optional else ""
        lines.append(f"- Request: {_kind(_schema(route.body))}{optional}{limit}")
    lines.append(f"- {'Messages' if route.socket else f'Response {route.status}'}: {_reply(route)}")
    if route.query is not None:
        lines.append(f"\n{_fields(objects[route.query.__name__], 'query')}".rstrip())
    return "\n".join(lines) + "\n"


def _reply(route: Route) -> str:
    if route.media != "application/json":
        return f"{route.media}"
    return "an object" if route.reply is dict else _kind(_schema(route.reply))


def _schema(kind: Any) -> dict[str, Any]:
    (schema,), _ = msgspec.json.schema_components([kind], ref_template=_REF, schema_hook=schema_of)
    return dict(schema)


def _fields(schema: dict[str, Any], head: str = "field") -> str:
    needed: Sequence[str] = schema.get("required", ())
    rows = []
    for name, spec in schema.get("properties", {}).items():
        given = "default" in spec and name not in needed
        default = f"`{msgspec.json.encode(spec['default']).decode()}`" if given else ""
        rows.append((f"`{name}`", _kind(spec), default))
    return markdown_table((head, "type", "default"), rows)


def _kind(spec: dict[str, Any]) -> str:
    """Describe a schema in words: `whole number from 1 to 100`, `list of Job`."""
    if "$ref" in spec:
        name = spec["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    said = f" ({spec['description']})" if "description" in spec else ""
    if "anyOf" in spec:
        return " or ".join(_kind(option) for option in spec["anyOf"]) + said
    if "enum" in spec:
        return "one of " + ", ".join(f"`{word}`" for word in spec["enum"]) + said
    describe = _TYPES.get(spec.get("type", ""))
    return describe(spec) if describe else "anything"


def _text(spec: dict[str, Any]) -> str:
    if spec.get("format") == "date-time":
        return "time"
    if "description" in spec:
        return f"text ({spec['description']})"
    pattern = f" like `{spec['pattern'].removesuffix(_NO_NEWLINE)}`" if "pattern" in spec else ""
    return f"text{pattern}{_up_to(spec, 'maxLength', 'characters')}"


def _list(spec: dict[str, Any]) -> str:
    inner = _kind(spec["items"]) if spec.get("items") else "values"
    return f"list of {inner}{_up_to(spec, 'maxItems', 'of them')}"


def _object(spec: dict[str, Any]) -> str:
    inner = spec.get("additionalProperties")
    what = f"object of {_kind(inner)}" if isinstance(inner, dict) and inner else "object"
    return what + _up_to(spec, "maxProperties", "of them")


_NO_NEWLINE = r"(?!\n)"  # of no interest to a reader
_TYPES: dict[str, Callable[[dict[str, Any]], str]] = {
    "array": _list,
    "object": _object,
    "string": _text,
    "integer": lambda spec: "whole number" + _range(spec),
    "number": lambda spec: "number" + _range(spec),
    "boolean": lambda _: "true or false",
    "null": lambda _: "null",
}


def _up_to(spec: dict[str, Any], key: str, what: str) -> str:
    return f", at most {spec[key]:,} {what}" if key in spec else ""


def _range(spec: dict[str, Any]) -> str:
    low = f" from {spec['minimum']:,}" if "minimum" in spec else ""
    above = f" above {spec['exclusiveMinimum']:,}" if "exclusiveMinimum" in spec else ""
    return f"{low}{above}" + (f" to {spec['maximum']:,}" if "maximum" in spec else "")


def _prose(text: str) -> str:
    """Join the lines of a docstring's paragraphs."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n"))


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table; cells may hold `|`."""
    lines = [_row(head), "|" + "---|" * len(head) + "\n"]
    return "".join(lines + [_row([cell.replace("|", "\\|") for cell in row]) for row in rows])


def _row(cells: Sequence[str]) -> str:
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells) + "\n"
